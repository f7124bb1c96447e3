// SPDX-License-Identifier: Apache-2.0
// 256 bits over bytes, for the identity of files that have no build-id. Tells different contents apart, not forged
// ones: it is no cryptographic hash. Signal-safe.
#ifndef QUT_CONTENT_HASH_H
#define QUT_CONTENT_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { QUT_CONTENT_HASH_BYTES = 32 };

struct qut_content_hash {
    uint64_t lane[4];
    uint64_t size_bytes;
};

void qut_content_hash_begin(struct qut_content_hash *hash);
// A piece whose size is no multiple of 32 counts as filled up with zeros.
void qut_content_hash_add(struct qut_content_hash *hash, const void *bytes, size_t size);
void qut_content_hash_end(struct qut_content_hash *hash, uint8_t result[QUT_CONTENT_HASH_BYTES]);

#endif

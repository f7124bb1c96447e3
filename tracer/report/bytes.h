// SPDX-License-Identifier: Apache-2.0
// Bytes that grow, and numbers in them.
#ifndef TRACER_REPORT_BYTES_H
#define TRACER_REPORT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t *data;
    size_t size, capacity;
    bool has_failed; // no memory: what was added since is missing
};

void bytes_add(struct bytes *bytes, const void *data, size_t size);
void bytes_varint(struct bytes *bytes, uint64_t value); // LEB128
void bytes_zigzag(struct bytes *bytes, int64_t value);
void bytes_free(struct bytes *bytes);

#endif

// SPDX-License-Identifier: Apache-2.0
// Bytes that grow, and numbers in them.
#ifndef TRACER_REPORT_BYTES_H
#define TRACER_REPORT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

struct bytes {
    BASE_VECTOR(uint8_t);
    bool has_failed; // no memory: what was added since is missing
};

void report_bytes_add(struct bytes *bytes, const void *data, size_t size);
void report_bytes_varint(struct bytes *bytes, uint64_t value); // LEB128
void report_bytes_zigzag(struct bytes *bytes, int64_t value);
void report_bytes_free(struct bytes *bytes);

#endif

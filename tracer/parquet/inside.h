// SPDX-License-Identifier: Apache-2.0
// What the writer's files share: bytes that grow, headers, encodings, one column of one row group.
#ifndef TRACER_PARQUET_INSIDE_H
#define TRACER_PARQUET_INSIDE_H

#include "base/codec.h"
#include "base/vector.h"
#include "tracer/parquet/parquet.h"
#include "tracer/parquet/parquet_format.h"

// ---- bytes.c

struct parquet_bytes {
    BASE_VECTOR(uint8_t);
    bool has_failed; // no memory: what is put is dropped
};

// `size` bytes at the end, to be filled; NULL: no memory.
uint8_t *parquet_room(struct parquet_bytes *bytes, size_t size);
void parquet_put(struct parquet_bytes *bytes, const void *from, size_t size);
void parquet_put_little(struct parquet_bytes *bytes, uint64_t value, unsigned size);
void parquet_put_varint(struct parquet_bytes *bytes, uint64_t value);
void parquet_put_zigzag(struct parquet_bytes *bytes, int64_t value);

// ---- thrift.c: the compact protocol. `before` is the number of the field before in the same struct, 0 at first.

void parquet_thrift_field(struct parquet_bytes *bytes, int *before, int field, unsigned type);
void parquet_thrift_i32(struct parquet_bytes *bytes, int *before, int field, int32_t value);
void parquet_thrift_i64(struct parquet_bytes *bytes, int *before, int field, int64_t value);
void parquet_thrift_binary(struct parquet_bytes *bytes, int *before, int field, const void *from, size_t size);
void parquet_thrift_list(struct parquet_bytes *bytes, int *before, int field, unsigned type, size_t count);
void parquet_thrift_end(struct parquet_bytes *bytes); // of a struct

// ---- encode.c

// The number of bits that hold a value.
static inline unsigned parquet_bits(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}
// A data page of RLE_DICTIONARY: the width, then runs of equal ones and groups of eight.
void parquet_encode_indices(struct parquet_bytes *to, const uint32_t *indices, size_t count, unsigned width);
// DELTA_BINARY_PACKED; is_32: differences wrap in 32 bits.
void parquet_encode_deltas(struct parquet_bytes *to, const int64_t *values, size_t count, bool is_32);

// ---- column.c

struct parquet_slot {
    int64_t value;  // of text: its hash
    uint32_t index; // + 1; 0: free
};

// What a row group's columns are made in, one after the other.
struct parquet_work {
    int64_t *numbers;
    struct parquet_text *texts;
    uint32_t *indices;
    struct parquet_slot *slots;
    uint32_t slot_mask;
    int64_t *distinct;                   // numbers, in the order in which they came
    struct parquet_text *distinct_texts; // likewise
    struct parquet_bytes dictionary, data, other, packed, header;
    struct base_zstd_room *zstd;
};

struct parquet_chunk {                       // what the footer says of a column in a row group
    uint64_t dictionary_offset, data_offset; // in the file; dictionary 0: it has none
    uint64_t bytes, packed_bytes;            // of pages with their headers
    int encoding;
    bool has_range;
    int64_t min, max;
    struct parquet_text min_text, max_text;
};

// The work has the column's values. Appends its pages to `to`, which begins at `offset` in the file.
int parquet_make_chunk(struct parquet_work *work, enum parquet_type type, size_t count, struct parquet_bytes *to,
                       uint64_t offset, struct parquet_chunk *chunk, struct base_error *error);

#endif

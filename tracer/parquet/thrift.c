// SPDX-License-Identifier: Apache-2.0
#include "tracer/parquet/inside.h"

void parquet_thrift_field(struct parquet_bytes *bytes, int *before, int field, unsigned type)
{
    // All of ours come in rising order, less than 16 apart: the short form.
    parquet_put_little(bytes, (uint64_t)(field - *before) << 4 | type, 1);
    *before = field;
}

void parquet_thrift_i32(struct parquet_bytes *bytes, int *before, int field, int32_t value)
{
    parquet_thrift_field(bytes, before, field, THRIFT_I32);
    parquet_put_zigzag(bytes, value);
}

void parquet_thrift_i64(struct parquet_bytes *bytes, int *before, int field, int64_t value)
{
    parquet_thrift_field(bytes, before, field, THRIFT_I64);
    parquet_put_zigzag(bytes, value);
}

void parquet_thrift_binary(struct parquet_bytes *bytes, int *before, int field, const void *from, size_t size)
{
    parquet_thrift_field(bytes, before, field, THRIFT_BINARY);
    parquet_put_varint(bytes, size);
    parquet_put(bytes, from, size);
}

void parquet_thrift_list(struct parquet_bytes *bytes, int *before, int field, unsigned type, size_t count)
{
    parquet_thrift_field(bytes, before, field, THRIFT_LIST);
    if (count < 15) {
        parquet_put_little(bytes, count << 4 | type, 1);
    } else {
        parquet_put_little(bytes, 0xf0 | type, 1);
        parquet_put_varint(bytes, count);
    }
}

void parquet_thrift_end(struct parquet_bytes *bytes)
{
    parquet_put_little(bytes, 0, 1);
}

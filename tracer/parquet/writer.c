// SPDX-License-Identifier: Apache-2.0
// A file: row groups one after the other, and a footer that says where all is.
#include <stdlib.h>
#include <string.h>

#include "tracer/parquet/inside.h"

struct group {
    uint64_t rows, offset, bytes, packed_bytes;
};

struct writer {
    const struct parquet_source *source;
    struct sink *sink;
    struct parquet_work work;
    struct parquet_bytes out; // of one row group
    uint64_t offset;          // in the file
    struct {
        BASE_VECTOR(struct group);
    } groups;
    struct {
        BASE_VECTOR(struct parquet_chunk);
    } chunks; // of all groups
};

static int32_t type_of(enum parquet_type type)
{
    return type == PARQUET_TEXT    ? PARQUET_TYPE_BYTE_ARRAY
           : type == PARQUET_INT32 ? PARQUET_TYPE_INT32
                                   : PARQUET_TYPE_INT64;
}

// ---- the footer

static void put_schema(struct parquet_bytes *to, const struct parquet_source *source)
{
    int root = 0;
    parquet_thrift_binary(to, &root, SCHEMA_NAME, "schema", strlen("schema"));
    parquet_thrift_i32(to, &root, SCHEMA_CHILDREN, (int32_t)source->column_count);
    parquet_thrift_end(to);
    for (size_t i = 0; i < source->column_count; i++) {
        const struct parquet_column *column = &source->columns[i];
        int before = 0, logical = 0;
        parquet_thrift_i32(to, &before, SCHEMA_TYPE, type_of(column->type));
        parquet_thrift_i32(to, &before, SCHEMA_REPETITION, PARQUET_REQUIRED);
        parquet_thrift_binary(to, &before, SCHEMA_NAME, column->name, strlen(column->name));
        if (column->type == PARQUET_TEXT) {
            parquet_thrift_i32(to, &before, SCHEMA_CONVERTED_TYPE, PARQUET_CONVERTED_UTF8);
            parquet_thrift_field(to, &before, SCHEMA_LOGICAL_TYPE, THRIFT_STRUCT);
            parquet_thrift_field(to, &logical, LOGICAL_TYPE_STRING, THRIFT_STRUCT);
            parquet_thrift_end(to);
            parquet_thrift_end(to);
        }
        parquet_thrift_end(to);
    }
}

static void put_value(struct parquet_bytes *to, int *before, int field, enum parquet_type type, int64_t number,
                      const struct parquet_text *text)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)((uint64_t)number >> (8 * i));
    if (type == PARQUET_TEXT)
        parquet_thrift_binary(to, before, field, text->bytes, text->size);
    else
        parquet_thrift_binary(to, before, field, bytes, type == PARQUET_INT32 ? 4 : 8);
}

static void put_statistics(struct parquet_bytes *to, enum parquet_type type, const struct parquet_chunk *chunk)
{
    int before = 0;
    parquet_thrift_i64(to, &before, STATISTICS_NULLS, 0);
    if (chunk->has_range) {
        put_value(to, &before, STATISTICS_MAX, type, chunk->max, &chunk->max_text);
        put_value(to, &before, STATISTICS_MIN, type, chunk->min, &chunk->min_text);
    }
    parquet_thrift_end(to);
}

static void put_encodings(struct parquet_bytes *to, int *before, const struct parquet_chunk *chunk)
{
    parquet_thrift_list(to, before, META_ENCODINGS, THRIFT_I32, chunk->dictionary_offset ? 2 : 1);
    if (chunk->dictionary_offset)
        parquet_put_zigzag(to, PARQUET_PLAIN);
    parquet_put_zigzag(to, chunk->encoding);
}

static void put_chunk(struct parquet_bytes *to, const struct parquet_column *column, const struct parquet_chunk *chunk,
                      uint64_t rows)
{
    int outer = 0, before = 0;
    const uint64_t begin = chunk->dictionary_offset ? chunk->dictionary_offset : chunk->data_offset;
    parquet_thrift_i64(to, &outer, CHUNK_FILE_OFFSET, (int64_t)begin);
    parquet_thrift_field(to, &outer, CHUNK_META, THRIFT_STRUCT);
    parquet_thrift_i32(to, &before, META_TYPE, type_of(column->type));
    put_encodings(to, &before, chunk);
    parquet_thrift_list(to, &before, META_PATH, THRIFT_BINARY, 1);
    parquet_put_varint(to, strlen(column->name));
    parquet_put(to, column->name, strlen(column->name));
    parquet_thrift_i32(to, &before, META_CODEC, PARQUET_CODEC_ZSTD);
    parquet_thrift_i64(to, &before, META_VALUES, (int64_t)rows);
    parquet_thrift_i64(to, &before, META_BYTES, (int64_t)chunk->bytes);
    parquet_thrift_i64(to, &before, META_PACKED_BYTES, (int64_t)chunk->packed_bytes);
    parquet_thrift_i64(to, &before, META_DATA_OFFSET, (int64_t)chunk->data_offset);
    if (chunk->dictionary_offset)
        parquet_thrift_i64(to, &before, META_DICTIONARY_OFFSET, (int64_t)chunk->dictionary_offset);
    parquet_thrift_field(to, &before, META_STATISTICS, THRIFT_STRUCT);
    put_statistics(to, column->type, chunk);
    parquet_thrift_end(to);
    parquet_thrift_end(to);
}

static void put_group(struct parquet_bytes *to, const struct writer *writer, size_t index)
{
    const struct parquet_source *source = writer->source;
    const struct group *group = &writer->groups.items[index];
    int before = 0;
    parquet_thrift_list(to, &before, GROUP_COLUMNS, THRIFT_STRUCT, source->column_count);
    for (size_t i = 0; i < source->column_count; i++)
        put_chunk(to, &source->columns[i], &writer->chunks.items[index * source->column_count + i], group->rows);
    parquet_thrift_i64(to, &before, GROUP_BYTES, (int64_t)group->bytes);
    parquet_thrift_i64(to, &before, GROUP_ROWS, (int64_t)group->rows);
    parquet_thrift_i64(to, &before, GROUP_FILE_OFFSET, (int64_t)group->offset);
    parquet_thrift_i64(to, &before, GROUP_PACKED_BYTES, (int64_t)group->packed_bytes);
    parquet_thrift_end(to);
}

static void put_footer(struct parquet_bytes *to, const struct writer *writer)
{
    const struct parquet_source *source = writer->source;
    int before = 0;
    parquet_thrift_i32(to, &before, FILE_VERSION, 2);
    parquet_thrift_list(to, &before, FILE_SCHEMA, THRIFT_STRUCT, source->column_count + 1);
    put_schema(to, source);
    parquet_thrift_i64(to, &before, FILE_ROWS, (int64_t)source->row_count);
    parquet_thrift_list(to, &before, FILE_ROW_GROUPS, THRIFT_STRUCT, writer->groups.count);
    for (size_t i = 0; i < writer->groups.count; i++)
        put_group(to, writer, i);
    parquet_thrift_binary(to, &before, FILE_CREATED_BY, source->created_by, strlen(source->created_by));
    // Without these, readers do not trust least and largest values.
    parquet_thrift_list(to, &before, FILE_COLUMN_ORDERS, THRIFT_STRUCT, source->column_count);
    for (size_t i = 0; i < source->column_count; i++) {
        int order = 0;
        parquet_thrift_field(to, &order, COLUMN_ORDER_OF_TYPE, THRIFT_STRUCT);
        parquet_thrift_end(to);
        parquet_thrift_end(to);
    }
    parquet_thrift_end(to);
    const size_t size = to->count;
    parquet_put_little(to, size, 4);
    parquet_put(to, PARQUET_MAGIC, strlen(PARQUET_MAGIC));
}

// ---- row groups

static bool begin(struct writer *writer)
{
    struct parquet_work *work = &writer->work;
    const size_t rows = writer->source->row_count < PARQUET_GROUP_ROWS ? (size_t)writer->source->row_count + 1
                                                                       : (size_t)PARQUET_GROUP_ROWS;
    size_t slots = 1024; // half of them may be in use: of a whole group up to 32,768 different values
    while (slots < rows / 2)
        slots *= 2;
    work->slot_mask = (uint32_t)slots - 1;
    work->numbers = calloc(rows, sizeof *work->numbers);
    work->texts = calloc(rows, sizeof *work->texts);
    work->indices = calloc(rows, sizeof *work->indices);
    work->slots = calloc(slots, sizeof *work->slots);
    work->distinct = calloc(slots, sizeof *work->distinct);
    work->distinct_texts = calloc(slots, sizeof *work->distinct_texts);
    work->zstd = base_zstd_room_new();
    return work->numbers && work->texts && work->indices && work->slots && work->distinct && work->distinct_texts;
}

static void end(struct writer *writer)
{
    struct parquet_work *work = &writer->work;
    free(work->numbers);
    free(work->texts);
    free(work->indices);
    free(work->slots);
    free(work->distinct);
    free(work->distinct_texts);
    base_zstd_room_free(work->zstd);
    base_vector_free(&work->dictionary.vector);
    base_vector_free(&work->data.vector);
    base_vector_free(&work->other.vector);
    base_vector_free(&work->packed.vector);
    base_vector_free(&work->header.vector);
    base_vector_free(&writer->out.vector);
    base_vector_free(&writer->groups.vector);
    base_vector_free(&writer->chunks.vector);
}

static int write_group(struct writer *writer, uint64_t first, size_t count, struct base_error *error)
{
    const struct parquet_source *source = writer->source;
    struct group *group = BASE_ADD(&writer->groups);
    if (!group)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "Parquet");
    *group = (struct group){.rows = count, .offset = writer->offset};
    writer->out.count = 0;
    for (size_t i = 0; i < source->column_count; i++) {
        struct parquet_chunk *chunk = BASE_ADD(&writer->chunks);
        if (!chunk)
            return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "Parquet");
        if (source->columns[i].type == PARQUET_TEXT)
            source->texts(source->context, i, first, count, writer->work.texts);
        else
            source->numbers(source->context, i, first, count, writer->work.numbers);
        if (parquet_make_chunk(&writer->work, source->columns[i].type, count, &writer->out, writer->offset, chunk,
                               error) != 0)
            return -1;
        group->bytes += chunk->bytes;
        group->packed_bytes += chunk->packed_bytes;
    }
    sink_bytes(writer->sink, writer->out.items, writer->out.count);
    writer->offset += writer->out.count;
    return 0;
}

int parquet_write(const struct parquet_source *source, struct sink *sink, struct base_error *error)
{
    struct writer writer = {.source = source, .sink = sink, .offset = strlen(PARQUET_MAGIC)};
    int status = begin(&writer) ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "Parquet");
    sink_text(sink, PARQUET_MAGIC);
    for (uint64_t first = 0; status == 0 && first < source->row_count && !sink_failed(sink);) {
        const uint64_t left = source->row_count - first;
        const size_t count = left < PARQUET_GROUP_ROWS ? (size_t)left : (size_t)PARQUET_GROUP_ROWS;
        status = write_group(&writer, first, count, error);
        first += count;
    }
    if (status == 0) {
        writer.out.count = 0;
        put_footer(&writer.out, &writer);
        if (writer.out.has_failed)
            status = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "Parquet");
        else
            sink_bytes(sink, writer.out.items, writer.out.count);
    }
    end(&writer);
    return status;
}

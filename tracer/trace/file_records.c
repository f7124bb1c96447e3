// SPDX-License-Identifier: Apache-2.0
#include "tracer/trace/file_records.h"

#include <stdlib.h>
#include <string.h>

#include "formats/qut_table_check.h"
#include "tracer/trace/file_columns.h"

enum {
    REST = QUT_TRACE_FILE_STREAM_REST,
    NODE = QUT_TRACE_FILE_STREAM_NODE_LOW,
    TIME = QUT_TRACE_FILE_STREAM_TIME_LOW,
    CPU = QUT_TRACE_FILE_STREAM_CPU_LOW,
    NUMBER_BYTES_MAX = 10,
};

// One way through the records (formats/qut_trace_record.h) for both directions.
struct pass {
    struct base_cursor *rest; // all of the record, or what is left of it
    bool has_cpu_time, failed;
    uint32_t recent[QUT_TRACE_RECENT_COUNT]; // of the records in one piece
    // Taking apart.
    struct trace_records_out *to;
    const struct trace_node_ids *ids;
    // Putting together.
    struct trace_records_in *from;
    uint8_t *out, *tag; // of the record
};

// The number that stands next, as it is written. Returns its size; 0: there is none.
static size_t take_number(struct base_cursor *low, struct base_cursor *high, uint8_t to[NUMBER_BYTES_MAX])
{
    size_t size = 0;
    uint8_t byte = base_read_u8(low);
    to[size++] = byte;
    while (byte & 0x80 && size < NUMBER_BYTES_MAX && !high->failed)
        to[size++] = byte = base_read_u8(high);
    return low->failed || high->failed || byte & 0x80 ? 0 : size;
}

// As it is, into a pair of streams, or from one.
static void pass_number(struct pass *pass, unsigned stream)
{
    uint8_t bytes[NUMBER_BYTES_MAX];
    struct base_cursor *low = pass->to || stream == REST ? pass->rest : &pass->from->streams[stream];
    struct base_cursor *high = pass->to || stream == REST ? pass->rest : &pass->from->streams[stream + 1];
    const size_t size = take_number(low, high, bytes);
    pass->failed |= !size;
    for (size_t i = 0; i < size; i++) {
        if (pass->to)
            *pass->to->streams[stream == REST || i == 0 ? stream : stream + 1]++ = bytes[i];
        else
            *pass->out++ = bytes[i];
    }
}

static uint8_t pass_byte(struct pass *pass)
{
    const uint8_t byte = base_read_u8(pass->rest);
    pass->failed |= pass->rest->failed;
    if (pass->failed)
        return 0;
    if (pass->to)
        *pass->to->streams[REST]++ = byte;
    else
        *pass->out++ = byte;
    return byte;
}

static void split_node(struct pass *pass, uint64_t id)
{
    const uint32_t to = id < pass->ids->count ? pass->ids->of[id] : 0;
    pass->failed |= pass->rest->failed || (id && !to);
    if (pass->failed)
        return;
    const int64_t distance = (int64_t)to - (int64_t)pass->to->last_node;
    uint64_t folded = (uint64_t)distance << 1 ^ (uint64_t)(distance >> 63);
    unsigned stream = NODE;
    for (; folded >= 0x80; folded >>= 7, stream = NODE + 1)
        *pass->to->streams[stream]++ = (uint8_t)(folded | 0x80);
    *pass->to->streams[stream]++ = (uint8_t)folded;
    pass->to->last_node = to;
}

// 0 as well where it failed.
static uint32_t join_node(struct pass *pass)
{
    uint8_t bytes[NUMBER_BYTES_MAX];
    const size_t size = take_number(&pass->from->streams[NODE], &pass->from->streams[NODE + 1], bytes);
    struct base_cursor number = base_cursor((struct base_bytes){bytes, size});
    const uint64_t folded = base_read_uleb(&number);
    const uint64_t id = pass->from->last_node + ((folded >> 1) ^ -(folded & 1));
    pass->failed |= !size || number.overlong || id >> QUT_TRACE_NODE_BITS_MAX;
    if (pass->failed)
        return 0;
    return pass->from->last_node = (uint32_t)id;
}

static void put_node(struct pass *pass, uint32_t id)
{
    for (; id >= 0x80; id >>= 7)
        *pass->out++ = (uint8_t)(id | 0x80);
    *pass->out++ = (uint8_t)id;
}

// The node of a run, which its writer may have said by its place among the recent ones, and is said so again.
static void pass_node(struct pass *pass, unsigned tag)
{
    uint64_t id;
    if (pass->to) {
        id = tag & QUT_TRACE_TAG_RECENT ? pass->recent[base_read_u8(pass->rest)] : base_read_uleb(pass->rest);
        split_node(pass, id);
    } else {
        id = join_node(pass);
    }
    if (pass->failed)
        return;
    const uint32_t index = qut_trace_recent_index((uint32_t)id);
    const bool is_recent = id && pass->recent[index] == id;
    pass->recent[index] = (uint32_t)id;
    if (pass->to)
        return;
    if (!is_recent) {
        put_node(pass, (uint32_t)id);
        return;
    }
    *pass->tag |= QUT_TRACE_TAG_RECENT;
    *pass->out++ = (uint8_t)index;
}

static void pass_extras(struct pass *pass)
{
    const unsigned count = pass_byte(pass);
    for (unsigned i = 0; i < count && !pass->failed; i++) {
        if (pass_byte(pass) != QUT_TRACE_EXTRA_BEGIN_NODE)
            pass_number(pass, REST);
        else if (pass->to)
            split_node(pass, base_read_uleb(pass->rest));
        else
            put_node(pass, join_node(pass));
    }
}

static void pass_run(struct pass *pass, unsigned tag)
{
    if (tag & QUT_TRACE_TAG_KIND) {
        pass_byte(pass);
        pass_byte(pass);
    }
    pass_node(pass, tag);
    pass_number(pass, TIME);
    if (tag & QUT_TRACE_TAG_COUNT) {
        pass_number(pass, REST);
        pass_number(pass, TIME);
    }
    if (pass->has_cpu_time)
        pass_number(pass, CPU);
    if (tag & QUT_TRACE_TAG_METRICS)
        for (unsigned mask = pass_byte(pass); mask; mask &= mask - 1)
            pass_number(pass, REST);
    if (tag & QUT_TRACE_TAG_TOLD)
        pass_number(pass, REST);
    if (tag & QUT_TRACE_TAG_EXTRAS)
        pass_extras(pass);
}

static void pass_mark(struct pass *pass)
{
    pass_byte(pass);
    pass_number(pass, TIME);
    pass_number(pass, REST);
    pass_number(pass, REST);
}

static void put_tag(struct pass *pass, uint8_t tag)
{
    const bool is_run = (tag & QUT_TRACE_TAG_TYPE_MASK) == QUT_TRACE_TAG_RUN;
    if (pass->to)
        *pass->to->streams[REST]++ = is_run ? tag & (uint8_t)~QUT_TRACE_TAG_RECENT : tag;
    else
        *(pass->tag = pass->out++) = tag;
    // In streams all nodes stand for themselves.
    pass->failed |= !pass->to && is_run && tag & QUT_TRACE_TAG_RECENT;
}

static bool pass_all(struct pass *pass)
{
    while (base_cursor_left(pass->rest) && !pass->failed) {
        const uint8_t tag = base_read_u8(pass->rest);
        put_tag(pass, tag);
        switch (tag & QUT_TRACE_TAG_TYPE_MASK) {
        case QUT_TRACE_TAG_RUN: pass_run(pass, tag); break;
        case QUT_TRACE_TAG_MARK: pass_mark(pass); break;
        default: return false;
        }
    }
    return !pass->failed && !pass->rest->failed && !pass->rest->overlong;
}

bool trace_records_split(struct trace_records_out *to, struct base_bytes records, bool has_cpu_time,
                         const struct trace_node_ids *ids)
{
    struct base_cursor all = base_cursor(records);
    struct pass pass = {.rest = &all, .has_cpu_time = has_cpu_time, .to = to, .ids = ids};
    return pass_all(&pass);
}

bool trace_records_join(struct trace_records_in *from, bool has_cpu_time, uint8_t **end)
{
    struct pass pass = {.rest = &from->streams[REST], .has_cpu_time = has_cpu_time, .from = from, .out = *end};
    const bool is_good = pass_all(&pass);
    *end = pass.out;
    return is_good;
}

// ---- blocks

struct planes {
    struct qut_trace_file_planes head;
    struct qut_trace_file_chunk told[QUT_TRACE_FILE_PLANES_CHUNKS_MAX];
    struct qut_trace_chunk headers[QUT_TRACE_FILE_PLANES_CHUNKS_MAX];
    struct base_cursor rest; // of all chunks
    struct trace_records_in records;
    uint8_t *to;
};

static bool read_planes(struct planes *planes, struct base_bytes contents)
{
    struct base_cursor cursor = base_cursor(contents);
    struct base_bytes head = base_read_bytes(&cursor, sizeof planes->head);
    if (cursor.failed)
        return false;
    memcpy(&planes->head, head.data, sizeof planes->head);
    const uint32_t count = planes->head.count;
    if (count > QUT_TRACE_FILE_PLANES_CHUNKS_MAX)
        return false;
    struct base_bytes told = base_read_bytes(&cursor, count * sizeof *planes->told);
    struct base_bytes headers = base_read_bytes(&cursor, count * sizeof *planes->headers);
    for (unsigned i = 0; i < QUT_TRACE_FILE_STREAM_COUNT; i++)
        planes->records.streams[i] = base_cursor(base_read_bytes(&cursor, planes->head.stream_bytes[i]));
    if (cursor.failed)
        return false;
    planes->rest = planes->records.streams[QUT_TRACE_FILE_STREAM_REST];
    trace_planes_read(planes->told, told.data, count, sizeof *planes->told);
    trace_planes_read(planes->headers, headers.data, count, sizeof *planes->headers);
    return base_cursor_left(&cursor) == 0;
}

static bool are_at_end(const struct planes *planes)
{
    for (unsigned i = QUT_TRACE_FILE_STREAM_REST + 1; i < QUT_TRACE_FILE_STREAM_COUNT; i++)
        if (base_cursor_left(&planes->records.streams[i]))
            return false;
    return !base_cursor_left(&planes->rest);
}

// What sealing wrote was of other records: the block's checksum is theirs.
static void seal(struct qut_trace_chunk *header, uint32_t used_bytes)
{
    header->used_bytes = used_bytes;
    header->checksum = 0;
    header->checksum = qut_table_checksum(header, sizeof *header + used_bytes);
}

static bool add_chunk(struct image *image, struct planes *planes, uint32_t index, bool *no_memory)
{
    const struct qut_trace_file_chunk *told = &planes->told[index];
    struct qut_trace_chunk *header = (void *)planes->to;
    planes->records.streams[QUT_TRACE_FILE_STREAM_REST] = base_cursor(base_read_bytes(&planes->rest, told->used_bytes));
    uint8_t *begin = planes->to + sizeof *header, *end = begin;
    if (planes->rest.failed)
        return false;
    memcpy(header, &planes->headers[index], sizeof *header);
    if (!trace_records_join(&planes->records, header->flags & QUT_TRACE_HAS_CPU_TIME, &end))
        return false;
    const uint32_t used_bytes = (uint32_t)(end - begin);
    if (!told->is_open)
        seal(header, used_bytes);
    struct image_chunk *chunk = trace_vector_add(&image->chunks);
    if (!chunk) {
        *no_memory = true;
        return false;
    }
    *chunk = (struct image_chunk){
        .bytes = planes->to, .used_bytes = used_bytes, .slot = told->slot, .is_open = told->is_open != 0};
    planes->to += (sizeof *header + used_bytes + 7) & ~(size_t)7;
    return true;
}

static bool add_chunks(struct image *image, struct planes *planes, size_t contents_bytes, bool *no_memory)
{
    planes->to = trace_memory_take(image->memory,
                                   planes->head.count * (sizeof(struct qut_trace_chunk) + 8) + 4 * contents_bytes, 1);
    if (!planes->to) {
        *no_memory = true;
        return false;
    }
    for (uint32_t i = 0; i < planes->head.count; i++)
        if (!add_chunk(image, planes, i, no_memory))
            return false;
    return are_at_end(planes);
}

bool trace_chunk_planes_read(struct image *image, struct base_bytes contents, bool *no_memory)
{
    struct planes *planes = calloc(1, sizeof *planes);
    *no_memory |= !planes;
    const bool is_good = planes && read_planes(planes, contents) && add_chunks(image, planes, contents.size, no_memory);
    free(planes);
    return is_good;
}

bool trace_calls_read(struct image *image, unsigned type, struct base_bytes contents, bool *no_memory)
{
    image->calls = image->calls ? image->calls : call_events_new();
    *no_memory |= !image->calls;
    return image->calls && call_events_take(image->calls, type, contents, no_memory);
}

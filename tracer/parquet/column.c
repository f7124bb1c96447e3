// SPDX-License-Identifier: Apache-2.0
// One column of one row group: a dictionary where values come again, else deltas of numbers and texts as they are;
// packed by zstd.
#include <string.h>

#include "base/hash_index.h"
#include "tracer/parquet/inside.h"

// Level 1 takes a third of the time of level 3, and one part in thirty more room, of samples of real programs.
enum { LEVEL = 1, LOOK_ROWS = 4096, RANGE_TEXT_MAX = 128 };

static bool is_same_text(const struct parquet_text *a, const struct parquet_text *b)
{
    return a->size == b->size && (a->bytes == b->bytes || memcmp(a->bytes, b->bytes, a->size) == 0);
}

// Fills work->indices and what is distinct. 0: too much is for a dictionary to be worth it.
static size_t find_distinct(struct parquet_work *work, bool is_text, size_t count)
{
    size_t found = 0;
    const size_t most = (work->slot_mask + 1) / 2;
    memset(work->slots, 0, (work->slot_mask + 1) * sizeof *work->slots);
    for (size_t row = 0; row < count; row++) {
        const struct parquet_text *text = &work->texts[row];
        const int64_t value =
            is_text ? (int64_t)base_hash_bytes(text->size, text->bytes, text->size) : work->numbers[row];
        uint32_t at = (uint32_t)(base_hash_word(0, (uint64_t)value) >> 20) & work->slot_mask;
        while (work->slots[at].index &&
               (work->slots[at].value != value ||
                (is_text && !is_same_text(&work->distinct_texts[work->slots[at].index - 1], text))))
            at = (at + 1) & work->slot_mask;
        if (!work->slots[at].index) {
            if (found == most || (row == LOOK_ROWS && found > LOOK_ROWS / 4 * 3))
                return 0;
            if (is_text)
                work->distinct_texts[found] = *text;
            else
                work->distinct[found] = value;
            work->slots[at] = (struct parquet_slot){.value = value, .index = (uint32_t)++found};
        }
        work->indices[row] = work->slots[at].index - 1;
        // Most columns stay as they are for many rows.
        for (; row + 1 < count; row++) {
            const struct parquet_text *next = &work->texts[row + 1];
            if (is_text ? next->bytes != text->bytes || next->size != text->size : work->numbers[row + 1] != value)
                break;
            work->indices[row + 1] = work->indices[row];
        }
    }
    return found;
}

static int compare_texts(const struct parquet_text *a, const struct parquet_text *b)
{
    const size_t size = a->size < b->size ? a->size : b->size;
    const int order = size ? memcmp(a->bytes, b->bytes, size) : 0;
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

static void find_range(struct parquet_chunk *chunk, const int64_t *numbers, size_t count)
{
    int64_t min = numbers[0], max = numbers[0];
    for (size_t i = 1; i < count; i++) {
        min = numbers[i] < min ? numbers[i] : min;
        max = numbers[i] > max ? numbers[i] : max;
    }
    chunk->min = min;
    chunk->max = max;
    chunk->has_range = true;
}

static void find_text_range(struct parquet_chunk *chunk, const struct parquet_text *texts, size_t count)
{
    chunk->min_text = chunk->max_text = texts[0];
    for (size_t i = 1; i < count; i++) {
        if (compare_texts(&texts[i], &chunk->min_text) < 0)
            chunk->min_text = texts[i];
        if (compare_texts(&texts[i], &chunk->max_text) > 0)
            chunk->max_text = texts[i];
    }
    // A long one says little for its room; without both, none is said.
    chunk->has_range = chunk->min_text.size <= RANGE_TEXT_MAX && chunk->max_text.size <= RANGE_TEXT_MAX;
}

static void put_plain_numbers(struct parquet_bytes *to, const int64_t *numbers, size_t count, unsigned size)
{
    uint8_t *at = parquet_room(to, count * size);
    for (size_t i = 0; at && i < count; i++)
        for (unsigned byte = 0; byte < size; byte++)
            *at++ = (uint8_t)((uint64_t)numbers[i] >> (8 * byte));
}

static void put_plain_texts(struct parquet_bytes *to, const struct parquet_text *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        parquet_put_little(to, texts[i].size, 4);
        parquet_put(to, texts[i].bytes, texts[i].size);
    }
}

static void put_page_header(struct parquet_bytes *to, int type, size_t bytes, size_t packed_bytes, size_t values,
                            int encoding)
{
    int page = 0, data = 0;
    parquet_thrift_i32(to, &page, PAGE_TYPE, type);
    parquet_thrift_i32(to, &page, PAGE_BYTES, (int32_t)bytes);
    parquet_thrift_i32(to, &page, PAGE_PACKED_BYTES, (int32_t)packed_bytes);
    parquet_thrift_field(to, &page, type == PARQUET_DATA_PAGE ? PAGE_DATA : PAGE_DICTIONARY, THRIFT_STRUCT);
    parquet_thrift_i32(to, &data, DATA_VALUES, (int32_t)values); // the first two are the same in both
    parquet_thrift_i32(to, &data, DATA_ENCODING, encoding);
    if (type == PARQUET_DATA_PAGE) { // there are no levels, since all is required
        parquet_thrift_i32(to, &data, DATA_DEFINITION_ENCODING, PARQUET_RLE);
        parquet_thrift_i32(to, &data, DATA_REPETITION_ENCODING, PARQUET_RLE);
    }
    parquet_thrift_end(to);
    parquet_thrift_end(to);
}

static int put_page(struct parquet_work *work, struct parquet_bytes *to, int type, const struct parquet_bytes *from,
                    size_t values, int encoding, struct parquet_chunk *chunk, struct base_error *error)
{
    size_t packed = 0;
    if (from->count > INT32_MAX / 2)
        return base_fail(error, BASE_ERR_LIMIT, "", 0, "%zu bytes in one page of Parquet", from->count);
    work->packed.count = work->header.count = 0;
    const size_t bound = base_zstd_bound(from->count);
    if (from->has_failed || !parquet_room(&work->packed, bound ? bound : 1))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "Parquet");
    const struct base_bytes bytes = {.data = from->items, .size = from->count};
    if (base_zstd_pack_in(work->zstd, bytes, LEVEL, work->packed.items, bound, &packed, error) != 0)
        return -1;
    put_page_header(&work->header, type, from->count, packed, values, encoding);
    parquet_put(to, work->header.items, work->header.count);
    parquet_put(to, work->packed.items, packed);
    chunk->bytes += work->header.count + from->count;
    chunk->packed_bytes += work->header.count + packed;
    return to->has_failed || work->header.has_failed ? base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "Parquet") : 0;
}

// What the data page is, in work->data, and the dictionary, if any, in work->dictionary. Returns the dictionary's size.
static size_t encode(struct parquet_work *work, enum parquet_type type, size_t count, struct parquet_chunk *chunk)
{
    const bool is_text = type == PARQUET_TEXT;
    const unsigned size = type == PARQUET_INT32 ? 4 : 8;
    size_t distinct = find_distinct(work, is_text, count);
    work->dictionary.count = work->data.count = work->other.count = 0;
    chunk->encoding = PARQUET_RLE_DICTIONARY;
    if (distinct) {
        parquet_encode_indices(&work->data, work->indices, count, parquet_bits(distinct - 1));
        if (is_text)
            put_plain_texts(&work->dictionary, work->distinct_texts, distinct);
        else
            put_plain_numbers(&work->dictionary, work->distinct, distinct, size);
    }
    if (is_text) {
        find_text_range(chunk, distinct ? work->distinct_texts : work->texts, distinct ? distinct : count);
        if (!distinct) {
            put_plain_texts(&work->data, work->texts, count);
            chunk->encoding = PARQUET_PLAIN;
        }
        return distinct;
    }
    find_range(chunk, distinct ? work->distinct : work->numbers, distinct ? distinct : count);
    if (distinct == 1)
        return 1;
    parquet_encode_deltas(&work->other, work->numbers, count, type == PARQUET_INT32);
    if (distinct && work->data.count + work->dictionary.count <= work->other.count)
        return distinct;
    const struct parquet_bytes data = work->data;
    work->data = work->other;
    work->other = data;
    chunk->encoding = PARQUET_DELTA_BINARY_PACKED;
    return 0;
}

int parquet_make_chunk(struct parquet_work *work, enum parquet_type type, size_t count, struct parquet_bytes *to,
                       uint64_t offset, struct parquet_chunk *chunk, struct base_error *error)
{
    *chunk = (struct parquet_chunk){0};
    const size_t distinct = encode(work, type, count, chunk);
    if (distinct) {
        chunk->dictionary_offset = offset + to->count;
        if (put_page(work, to, PARQUET_DICTIONARY_PAGE, &work->dictionary, distinct, PARQUET_PLAIN, chunk, error) != 0)
            return -1;
    }
    chunk->data_offset = offset + to->count;
    return put_page(work, to, PARQUET_DATA_PAGE, &work->data, count, chunk->encoding, chunk, error);
}

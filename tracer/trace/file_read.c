// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/trace/file_blocks.h"
#include "tracer/trace/file_columns.h"
#include "tracer/trace/file_notes.h"
#include "tracer/trace/file_records.h"
#include "tracer/trace/file_tree.h"
#include "tracer/trace/segment_view.h"

struct reader {
    struct image *image;
    uint64_t unpacked_bytes, unpacked_bytes_max; // of all blocks so far
    struct file_blocks blocks;
    struct file_room *room;      // of_slot: the index of its last thread in image->threads + 1
    struct trace_vector modules; // struct qut_trace_module
    size_t raw_end, node_end;    // behind the last index that is in use
    struct qut_trace_file_trailer trailer;
    bool has_trailer;
    bool no_memory;
};

static bool read_segment(struct reader *reader, struct base_bytes contents)
{
    struct image *image = reader->image;
    if (contents.size != sizeof image->header + sizeof image->counters)
        return false;
    struct qut_trace_header header;
    memcpy(&header, contents.data, sizeof header);
    if (memcmp(header.magic, QUT_TRACE_MAGIC, sizeof header.magic) != 0 ||
        trace_segment_check_numbers(&header, NULL) != 0)
        return false;
    image->header = header;
    memcpy(&image->counters, contents.data + sizeof header, sizeof image->counters);
    return true;
}

static int compare_uids(const void *a, const void *b)
{
    const struct qut_trace_file_thread *left = a, *right = b;
    return left->uid < right->uid ? -1 : left->uid > right->uid;
}

// Of the states of a uid the last; and of the uids of a slot only the last one still has it.
static void settle_threads(const struct reader *reader)
{
    struct image *image = reader->image;
    struct qut_trace_file_thread *threads = image->threads.items;
    uint32_t *owner = reader->room->of_slot;
    size_t kept = 0;
    for (size_t i = 0; i < image->threads.count; i++)
        owner[threads[i].slot] = threads[i].uid;
    for (size_t i = 0; i < image->threads.count; i++) {
        if (owner[threads[i].slot] != threads[i].uid)
            threads[i].state = QUT_TRACE_THREAD_NONE;
        // Stable: those of one uid stay in the order of the file.
        threads[i].zero = (uint32_t)i;
    }
    for (size_t i = 0; i < image->threads.count; i++)
        owner[threads[i].slot] = 0; // for the next part
    if (image->threads.count)
        qsort(threads, image->threads.count, sizeof *threads, compare_uids);
    for (size_t i = 0; i < image->threads.count; i++) {
        if (kept && threads[kept - 1].uid == threads[i].uid) {
            if (threads[kept - 1].zero < threads[i].zero)
                threads[kept - 1] = threads[i];
            continue;
        }
        threads[kept++] = threads[i];
    }
    image->threads.count = kept;
}

static bool read_threads(struct reader *reader, struct base_bytes contents)
{
    struct qut_trace_file_thread thread;
    if (contents.size % sizeof thread)
        return false;
    for (size_t at = 0; at < contents.size; at += sizeof thread) {
        memcpy(&thread, contents.data + at, sizeof thread);
        if (!thread.uid || thread.slot >= QUT_TRACE_THREADS_MAX)
            return false;
        // A state of the same thread takes the place of the one before: there is one for each look.
        struct trace_vector *threads = &reader->image->threads;
        uint32_t *last = &reader->room->of_slot[thread.slot];
        struct qut_trace_file_thread *place = *last ? (struct qut_trace_file_thread *)threads->items + *last - 1 : NULL;
        if (!place || place->uid != thread.uid) {
            place = trace_vector_add(threads);
            *last = (uint32_t)threads->count;
        }
        if (!place) {
            reader->no_memory = true;
            return false;
        }
        *place = thread;
    }
    return true;
}

static bool read_thread_planes(struct reader *reader, struct base_bytes contents)
{
    const size_t item_bytes = sizeof(struct qut_trace_file_thread);
    if (contents.size % item_bytes)
        return false;
    uint8_t *threads = malloc(contents.size + 1);
    if (!threads) {
        reader->no_memory = true;
        return false;
    }
    trace_planes_read(threads, contents.data, contents.size / item_bytes, item_bytes);
    bool is_good = read_threads(reader, (struct base_bytes){threads, contents.size});
    free(threads);
    return is_good;
}

static bool read_modules(struct reader *reader, struct base_bytes contents)
{
    struct base_cursor cursor = base_cursor(contents);
    uint32_t first = base_read_u32(&cursor);
    base_read_u32(&cursor);
    size_t count = base_cursor_left(&cursor) / sizeof(struct qut_trace_module);
    if (cursor.failed || first > reader->image->header.module_capacity ||
        count > reader->image->header.module_capacity - first)
        return false;
    size_t need = first + count;
    if (!need)
        return true;
    if (need > reader->modules.count) {
        size_t more = need - reader->modules.count;
        if (!trace_vector_reserve(&reader->modules, more)) {
            reader->no_memory = true;
            return false;
        }
        struct qut_trace_module *modules = reader->modules.items;
        memset(modules + reader->modules.count, 0, more * sizeof *modules); // of blocks that are missing
        reader->modules.count = need;
    }
    memcpy((struct qut_trace_module *)reader->modules.items + first, cursor.at,
           count * sizeof(struct qut_trace_module));
    return true;
}

static bool read_strings(struct reader *reader, struct base_bytes contents)
{
    struct image *image = reader->image;
    struct base_cursor cursor = base_cursor(contents);
    uint32_t offset = base_read_u32(&cursor);
    base_read_u32(&cursor);
    size_t size = base_cursor_left(&cursor);
    uint64_t room = image->header.strings.size_bytes < UINT32_MAX ? image->header.strings.size_bytes : UINT32_MAX;
    if (cursor.failed || offset > room || size > room - offset)
        return false;
    if (!image->strings)
        image->strings = trace_memory_take(image->memory, (size_t)room, 1);
    if (!image->strings) {
        reader->no_memory = true;
        return false;
    }
    memcpy(image->strings + offset, cursor.at, size);
    if (offset + size > image->string_bytes)
        image->string_bytes = offset + size;
    return true;
}

static bool read_raw(struct reader *reader, struct base_bytes contents)
{
    return trace_columns_read(contents, reader->room->raw.words, reader->image->header.raw_capacity, &reader->raw_end);
}

static bool read_nodes(struct reader *reader, struct base_bytes contents)
{
    return trace_columns_read(contents, reader->room->nodes.words, reader->image->header.node_capacity,
                              &reader->node_end);
}

static bool read_tree(struct reader *reader, struct base_bytes contents)
{
    return trace_tree_read(contents, reader->room->nodes.words, reader->image->header.node_capacity, &reader->node_end,
                           &reader->no_memory);
}

static bool read_chunk_planes(struct reader *reader, struct base_bytes contents)
{
    return trace_chunk_planes_read(reader->image, contents, &reader->no_memory);
}

static bool add_chunk(struct reader *reader, const struct qut_trace_file_chunk *told, const uint8_t *header,
                      const uint8_t *records, uint8_t *to)
{
    struct image_chunk *chunk = trace_vector_add(&reader->image->chunks);
    if (!chunk)
        return false;
    memcpy(to, header, sizeof(struct qut_trace_chunk));
    memcpy(to + sizeof(struct qut_trace_chunk), records, told->used_bytes);
    *chunk = (struct image_chunk){
        .bytes = to, .used_bytes = told->used_bytes, .slot = told->slot, .is_open = told->is_open != 0};
    return true;
}

static bool read_chunks(struct reader *reader, struct base_bytes contents)
{
    struct base_cursor cursor = base_cursor(contents);
    uint32_t count = base_read_u32(&cursor);
    base_read_u32(&cursor);
    if (count > QUT_TRACE_FILE_BLOCK_CHUNKS_MAX)
        return false;
    struct base_bytes table = base_read_bytes(&cursor, count * sizeof(struct qut_trace_file_chunk));
    struct base_bytes headers = base_read_bytes(&cursor, count * sizeof(struct qut_trace_chunk));
    if (cursor.failed)
        return false;
    struct qut_trace_file_chunk told[QUT_TRACE_FILE_BLOCK_CHUNKS_MAX];
    memcpy(told, table.data, table.size);
    size_t room = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (told[i].used_bytes > CHUNK_RECORD_BYTES)
            return false;
        room += (sizeof(struct qut_trace_chunk) + told[i].used_bytes + 7) & ~(size_t)7;
    }
    uint8_t *to = trace_memory_take(reader->image->memory, room, 1);
    if (!to) {
        reader->no_memory = true;
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct base_bytes records = base_read_bytes(&cursor, told[i].used_bytes);
        if (cursor.failed)
            return false;
        if (!add_chunk(reader, &told[i], headers.data + i * sizeof(struct qut_trace_chunk), records.data, to)) {
            reader->no_memory = true;
            return false;
        }
        to += (sizeof(struct qut_trace_chunk) + told[i].used_bytes + 7) & ~(size_t)7;
    }
    return true;
}

static bool read_notes(struct reader *reader, struct base_bytes contents)
{
    return trace_file_notes_read(contents, &reader->image->notes, &reader->no_memory);
}

static bool read_trailer(struct reader *reader, struct base_bytes contents)
{
    if (contents.size != sizeof reader->trailer)
        return false;
    memcpy(&reader->trailer, contents.data, sizeof reader->trailer);
    reader->has_trailer = true;
    return true;
}

// Blocks of one kind, or of all others.
static void read_blocks(struct reader *reader, bool segments)
{
    static bool (*const read[QUT_TRACE_FILE_TYPE_END])(struct reader *, struct base_bytes) = {
        [QUT_TRACE_FILE_SEGMENT] = read_segment,
        [QUT_TRACE_FILE_THREADS] = read_threads,
        [QUT_TRACE_FILE_MODULES] = read_modules,
        [QUT_TRACE_FILE_STRINGS] = read_strings,
        [QUT_TRACE_FILE_RAW] = read_raw,
        [QUT_TRACE_FILE_NODES] = read_nodes,
        [QUT_TRACE_FILE_CHUNKS] = read_chunks,
        [QUT_TRACE_FILE_TRAILER] = read_trailer,
        [QUT_TRACE_FILE_NOTES] = read_notes,
        [QUT_TRACE_FILE_TREE] = read_tree,
        [QUT_TRACE_FILE_THREAD_PLANES] = read_thread_planes,
        [QUT_TRACE_FILE_CHUNK_PLANES] = read_chunk_planes,
    };
    const struct file_block *blocks = reader->blocks.blocks.items;
    for (size_t i = 0; i < reader->blocks.blocks.count && !reader->no_memory; i++) {
        if ((blocks[i].type == QUT_TRACE_FILE_SEGMENT) != segments)
            continue;
        struct base_bytes contents;
        struct base_error error = {0};
        // No file of ours packs this well: one that does is made to take all memory.
        reader->unpacked_bytes += blocks[i].unpacked_bytes;
        if (reader->unpacked_bytes > reader->unpacked_bytes_max)
            base_fail(&error, BASE_ERR_LIMIT, "", 0, "the file unpacks to more than it can have been made of");
        else if (trace_file_block_contents(&blocks[i], reader->room, &contents, &error) &&
                 (trace_is_of_calls(blocks[i].type)
                      ? trace_calls_read(reader->image, blocks[i].type, contents, &reader->no_memory)
                      : read[blocks[i].type](reader, contents)))
            continue;
        reader->no_memory |= error.reason == BASE_ERR_NO_MEMORY;
        if (reader->no_memory)
            return;
        char text[224];
        reader->image->damaged_blocks++;
        trace_image_damage(reader->image, "block %" PRIu32 " at 0x%" PRIx64 ": %s", blocks[i].index, blocks[i].offset,
                           error.reason ? base_error_text(&error, text, sizeof text) : "malformed");
    }
}

static size_t count_words(const uint64_t *words, size_t capacity)
{
    size_t count = 0;
    for (size_t i = 0; i < capacity; i++)
        count += words[i] != 0;
    return count;
}

static void check_count(struct image *image, const char *what, uint64_t found, uint64_t told)
{
    if (found == told)
        return;
    trace_image_damage(image, "%" PRIu64 " of %" PRIu64 " %s are here", found, told, what);
    image->is_complete = false;
}

// A process that calls _exit or exec does not close its trace; but its recorder knows that it went on purpose: by exec,
// or by the counts that it told in its last moment.
static bool ends_in_order(struct image *image)
{
    const struct trace_note *notes = image->notes.items;
    bool has_counts = false;
    for (size_t i = 0; i < image->notes.count; i++) {
        if (notes[i].text && strcmp(notes[i].name, "recording-ended") == 0 && strcmp(notes[i].text, "exec") == 0 &&
            image->end == QUT_TRACE_FILE_END_DIED)
            image->end = QUT_TRACE_FILE_END_EXEC;
        has_counts = has_counts || (!notes[i].text && strcmp(notes[i].name, "ticks-due") == 0);
    }
    return image->end != QUT_TRACE_FILE_END_DIED || has_counts;
}

static void check_trailer(struct reader *reader, size_t size)
{
    struct image *image = reader->image;
    const struct qut_trace_file_trailer *trailer = &reader->trailer;
    const struct file_block *blocks = reader->blocks.blocks.items;
    bool is_last = reader->has_trailer && blocks[reader->blocks.blocks.count - 1].type == QUT_TRACE_FILE_TRAILER &&
                   reader->blocks.end == size;
    if (!is_last || trailer->file_bytes != size) {
        image->is_truncated = true;
        trace_image_damage(image, reader->has_trailer
                                      ? "the file goes on behind its trailer, or is shorter than that says"
                                      : "the file has no trailer: its end is missing");
        return;
    }
    image->end = (uint8_t)trailer->end;
    image->is_complete = ends_in_order(image);
    if (!image->is_complete)
        trace_image_damage(image, "%s", TRACE_DIED_TEXT);
    // Then what is not here is missing, and has not been overwritten.
    image->may_miss_chunks = trailer->failed_writes != 0;
    if (trailer->failed_writes)
        trace_image_damage(
            image, "%" PRIu64 " times the file could not be written: what had no room meanwhile is counted as lost",
            trailer->failed_writes);
    check_count(image, "chunks", image->chunks.count, trailer->chunk_count);
    check_count(image, "nodes", count_words(image->nodes, reader->node_end), trailer->node_count);
    check_count(image, "addresses", count_words(image->raw, reader->raw_end), trailer->raw_count);
    check_count(image, "modules", reader->modules.count, trailer->module_count);
    check_count(image, "threads", image->threads.count, trailer->thread_count);
    check_count(image, "bytes of strings", image->string_bytes, trailer->string_bytes);
}

static bool make_tables(const struct reader *reader)
{
    const struct qut_trace_header *header = &reader->image->header;
    return trace_file_words_reserve(&reader->room->raw, header->raw_capacity) &&
           trace_file_words_reserve(&reader->room->nodes, header->node_capacity);
}

// What is behind was never used; of a process with a few frames that is nearly all.
static bool take_tables(const struct reader *reader)
{
    struct image *image = reader->image;
    image->raw_capacity = reader->raw_end;
    image->node_capacity = reader->node_end > 1 ? reader->node_end : 1; // the root is always there
    image->raw = trace_file_words_take(&reader->room->raw, image->raw_capacity, image->memory);
    image->nodes = trace_file_words_take(&reader->room->nodes, image->node_capacity, image->memory);
    return image->raw && image->nodes;
}

static void set_overwritten(struct image *image)
{
    const struct qut_trace_counters *counters = &image->counters;
    const struct qut_trace_file_thread *threads = image->threads.items;
    image->overwritten_most = counters->retired[counters->retired_version & 1].overwritten;
    for (size_t i = 0; i < image->threads.count; i++)
        for (unsigned level = 0; level < QUT_TRACE_LEVELS && threads[i].state != QUT_TRACE_THREAD_NONE; level++)
            image->overwritten_most += threads[i].writers[level].overwritten;
    // The collector may have been there before.
    image->overwritten_least = 0;
}

// Or calls.
static bool has_notes_only(const struct reader *reader)
{
    const struct file_block *blocks = reader->blocks.blocks.items;
    for (size_t i = 0; i < reader->blocks.blocks.count; i++)
        if (blocks[i].type != QUT_TRACE_FILE_NOTES && blocks[i].type != QUT_TRACE_FILE_TRAILER &&
            !trace_is_of_calls(blocks[i].type))
            return false;
    return reader->blocks.blocks.count != 0;
}

static int read_all(struct reader *reader, size_t size, struct base_error *error)
{
    enum { RATIO_MAX = 256, ROOM_BYTES = 64 << 20 };
    struct image *image = reader->image;
    reader->unpacked_bytes_max = (uint64_t)size * RATIO_MAX + ROOM_BYTES;
    read_blocks(reader, true);
    if (!reader->no_memory && !image->header.version && has_notes_only(reader)) {
        read_blocks(reader, false);
        check_trailer(reader, size);
        if (image->calls && !reader->no_memory)
            return 0; // as far as it goes
        image->is_notes_only = !reader->no_memory && reader->has_trailer && !image->is_truncated;
        if (image->is_notes_only)
            return 0;
    }
    if (reader->no_memory)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the trace");
    // Or none that this build can unpack.
    if (!image->header.version && image->damages.count)
        return base_fail(error, BASE_ERR_MALFORMED, "", 0, "no block can be read; the first: %s",
                         *(char **)image->damages.items);
    if (!image->header.version)
        return base_fail(error, BASE_ERR_TRUNCATED, "file", size, "no block says what the trace is of");
    if (!make_tables(reader))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the trace");
    read_blocks(reader, false);
    if (reader->no_memory || !take_tables(reader))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the trace");
    settle_threads(reader);
    image->modules = reader->modules.items;
    image->module_count = reader->modules.count;
    check_trailer(reader, size);
    set_overwritten(image);
    return 0;
}

int trace_image_of_file(struct image *image, struct file_room *room, const uint8_t *bytes, size_t size,
                        struct base_error *error)
{
    struct reader reader = {
        .image = image, .room = room, .modules = trace_vector(image->memory, sizeof(struct qut_trace_module))};
    image->file_bytes = size;
    if (trace_file_blocks_find(image, bytes, size, &reader.blocks, error) != 0)
        return -1;
    int result = read_all(&reader, size, error);
    if (result == 0 && image->no_memory)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the trace");
    return result;
}

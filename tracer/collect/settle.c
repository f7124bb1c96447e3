// SPDX-License-Identifier: Apache-2.0
#include "tracer/collect/settle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/codec.h"
#include "tracer/collect/file_copy.h"
#include "tracer/collect/notes_write.h"
#include "tracer/trace/file_blocks.h"
#include "tracer/trace/file_columns.h"
#include "tracer/trace/file_records.h"
#include "tracer/trace/file_tree.h"

enum {
    HEAD_BYTES = 8, // before modules and strings: where they belong
    MODULE_BLOCK_COUNT = 4096,
    THREAD_BLOCK_COUNT = 1024,
    STRING_BLOCK_BYTES = 1 << 20,
    LEVEL_SETTLED = 9, // once, so it may take longer: 30 ms for 38,000 stacks of a compiler
};
// All of it is in memory at once: of a longer recording the file stays as it was written.
static const uint64_t unpacked_bytes_most = (uint64_t)512 << 20;

struct settler {
    struct trace_file file; // behind the one that is settled
    struct image image;
    struct trace_tree tree;
    struct chunk_list chunks;
    uint8_t *contents; // of a block
    struct base_error error;
};

static bool write_block(struct settler *settler, enum qut_trace_file_type type, size_t size)
{
    return collect_trace_file_block(&settler->file, type, settler->contents, size, 0, &settler->error) == 0;
}

static bool write_segment(struct settler *settler)
{
    const struct image *image = &settler->image;
    memcpy(settler->contents, &image->header, sizeof image->header);
    memcpy(settler->contents + sizeof image->header, &image->counters, sizeof image->counters);
    return write_block(settler, QUT_TRACE_FILE_SEGMENT, sizeof image->header + sizeof image->counters);
}

static bool write_pieces(struct settler *settler, enum qut_trace_file_type type, const void *items, size_t count,
                         size_t item_bytes, size_t block_count)
{
    for (size_t first = 0; first < count; first += block_count) {
        const size_t size = (count - first < block_count ? count - first : block_count) * item_bytes;
        const uint32_t head[2] = {(uint32_t)first, 0};
        static_assert(sizeof head == HEAD_BYTES, "shared");
        memcpy(settler->contents, head, sizeof head);
        memcpy(settler->contents + HEAD_BYTES, (const uint8_t *)items + first * item_bytes, size);
        if (!write_block(settler, type, HEAD_BYTES + size))
            return false;
    }
    return true;
}

static bool write_raw(struct settler *settler)
{
    const struct image *image = &settler->image;
    uint32_t *indices = trace_memory_take(image->memory, COLUMNS_COUNT_MAX, sizeof *indices);
    uint64_t *words = trace_memory_take(image->memory, COLUMNS_COUNT_MAX, sizeof *words);
    size_t count = 0;
    if (!indices || !words)
        return false;
    for (size_t i = 1; i <= image->raw_capacity; i++) {
        if (i < image->raw_capacity && image->raw[i]) {
            indices[count] = (uint32_t)i;
            words[count++] = image->raw[i];
        }
        if (count == COLUMNS_COUNT_MAX || (count && i == image->raw_capacity)) {
            if (!write_block(settler, QUT_TRACE_FILE_RAW,
                             trace_columns_write(settler->contents, indices, words, count)))
                return false;
            count = 0;
        }
    }
    return true;
}

static bool write_tree(struct settler *settler)
{
    for (size_t next = 1; next < settler->tree.count;) {
        const size_t size = trace_tree_write(settler->contents, &settler->tree, next, &next, settler->image.memory);
        if (!size || !write_block(settler, QUT_TRACE_FILE_TREE, size))
            return false;
    }
    return true;
}

// Open records name nodes, too.
static bool renumber_runs(struct settler *settler)
{
    struct qut_trace_file_thread *threads = settler->image.threads.items;
    for (size_t i = 0; i < settler->image.threads.count; i++) {
        threads[i].zero = 0;
        for (unsigned level = 0; level < QUT_TRACE_LEVELS; level++) {
            struct qut_trace_run *run = &threads[i].writers[level].commit.run;
            const uint32_t id = run->node < settler->image.node_capacity ? settler->tree.ids[run->node] : 0;
            if (run->count && run->node && !id)
                return false;
            run->node = id;
        }
    }
    return true;
}

static bool write_threads(struct settler *settler)
{
    const struct qut_trace_file_thread *threads = settler->image.threads.items;
    const size_t all = settler->image.threads.count;
    for (size_t first = 0; first < all; first += THREAD_BLOCK_COUNT) {
        const size_t count = all - first < THREAD_BLOCK_COUNT ? all - first : THREAD_BLOCK_COUNT;
        trace_planes_write(settler->contents, threads + first, count, sizeof *threads);
        if (!write_block(settler, QUT_TRACE_FILE_THREAD_PLANES, count * sizeof *threads))
            return false;
    }
    return true;
}

// ---- chunks

// Where a block has so many bytes of records it is full.
enum { PLANES_RECORD_BYTES = 64 * QUT_TRACE_CHUNK_BYTES };

struct chunk_planes {
    uint32_t count;
    uint64_t sample_count;
    size_t record_bytes;
    struct qut_trace_file_chunk told[QUT_TRACE_FILE_PLANES_CHUNKS_MAX];
    struct qut_trace_chunk headers[QUT_TRACE_FILE_PLANES_CHUNKS_MAX];
    struct trace_records_out records;
    uint8_t streams[QUT_TRACE_FILE_STREAM_COUNT][4 * (PLANES_RECORD_BYTES + QUT_TRACE_CHUNK_BYTES)];
};

static void begin_planes(struct chunk_planes *planes)
{
    planes->count = 0;
    planes->sample_count = 0;
    planes->record_bytes = 0;
    planes->records.last_node = 0;
    for (unsigned i = 0; i < QUT_TRACE_FILE_STREAM_COUNT; i++)
        planes->records.streams[i] = planes->streams[i];
}

// The reader puts in what sealing wrote of the records' form.
static bool add_chunk(const struct settler *settler, struct chunk_planes *planes, const struct image_chunk *chunk)
{
    const struct trace_node_ids ids = {settler->tree.ids, settler->image.node_capacity};
    const uint8_t *rest_begin = planes->records.streams[QUT_TRACE_FILE_STREAM_REST];
    struct qut_trace_chunk *header = &planes->headers[planes->count];
    memcpy(header, chunk->bytes, sizeof *header);
    if (chunk->used_bytes > QUT_TRACE_CHUNK_BYTES - sizeof *header ||
        !trace_records_split(&planes->records, (struct base_bytes){chunk->bytes + sizeof *header, chunk->used_bytes},
                             header->flags & QUT_TRACE_HAS_CPU_TIME, &ids))
        return false;
    header->used_bytes = 0;
    header->checksum = 0;
    const uint8_t *rest_end = planes->records.streams[QUT_TRACE_FILE_STREAM_REST];
    planes->told[planes->count++] =
        (struct qut_trace_file_chunk){.used_bytes = (uint32_t)(rest_end - rest_begin),
                                      .is_open = chunk->is_open,
                                      .slot = chunk->slot,
                                      .record_count = chunk->is_open ? 0 : header->record_count};
    planes->sample_count += chunk->is_open ? 0 : header->sample_count;
    planes->record_bytes += chunk->used_bytes;
    return true;
}

static bool write_planes(struct settler *settler, struct chunk_planes *planes)
{
    struct base_bytes pieces[1 + QUT_TRACE_FILE_STREAM_COUNT];
    struct qut_trace_file_planes head = {.count = planes->count};
    uint8_t *at = settler->contents + sizeof head;
    for (unsigned i = 0; i < QUT_TRACE_FILE_STREAM_COUNT; i++) {
        head.stream_bytes[i] = (uint32_t)(planes->records.streams[i] - planes->streams[i]);
        pieces[1 + i] = (struct base_bytes){planes->streams[i], head.stream_bytes[i]};
    }
    memcpy(settler->contents, &head, sizeof head);
    trace_planes_write(at, planes->told, planes->count, sizeof *planes->told);
    at += planes->count * sizeof *planes->told;
    trace_planes_write(at, planes->headers, planes->count, sizeof *planes->headers);
    at += planes->count * sizeof *planes->headers;
    pieces[0] = (struct base_bytes){settler->contents, (size_t)(at - settler->contents)};
    return collect_trace_file_pieces(&settler->file, QUT_TRACE_FILE_CHUNK_PLANES, pieces,
                                     1 + QUT_TRACE_FILE_STREAM_COUNT, (uint32_t)planes->sample_count,
                                     &settler->error) == 0;
}

static bool write_chunks(struct settler *settler)
{
    struct chunk_planes *planes = trace_memory_take(settler->image.memory, 1, sizeof *planes);
    bool is_good = planes;
    if (planes)
        begin_planes(planes);
    for (size_t i = 0; is_good && i < settler->chunks.count; i++) {
        is_good = add_chunk(settler, planes, settler->chunks.places[i].chunk);
        const bool is_full = is_good && (planes->count == QUT_TRACE_FILE_PLANES_CHUNKS_MAX ||
                                         planes->record_bytes >= PLANES_RECORD_BYTES);
        if (is_full || (is_good && i + 1 == settler->chunks.count)) {
            is_good = write_planes(settler, planes);
            begin_planes(planes);
        }
    }
    return is_good;
}

// ---- all

// That its process died is no damage of the file's.
static bool is_sound(const struct image *image)
{
    const char *const *damages = image->damages.items;
    for (size_t i = 0; i < image->damages.count; i++)
        if (strcmp(damages[i], TRACE_DIED_TEXT) != 0)
            return false;
    return !image->is_truncated && !image->damaged_blocks && !image->is_notes_only && !image->no_memory;
}

static bool read_old(struct settler *settler, const uint8_t *bytes, size_t size)
{
    struct image *image = &settler->image;
    struct file_room room = {0};
    bool is_read = trace_file_room_make(&room) &&
                   trace_image_of_file(image, &room, bytes, size, &settler->error) == 0 && is_sound(image);
    trace_file_room_free(&room);
    return is_read && trace_order_chunks(image, &settler->chunks, &settler->error) == 0 && !image->damaged_chunks &&
           trace_tree_number(&settler->tree, image->nodes, image->node_capacity, image->memory) &&
           renumber_runs(settler);
}

// Tables before the chunks that refer to them.
static bool write_new(struct settler *settler, struct trace_file *old, uint64_t begin_ns,
                      struct qut_trace_file_trailer *trailer)
{
    const struct image *image = &settler->image;
    if (collect_trace_file_begin_at(&settler->file, old->fd, old->begin + old->bytes, old->bytes, &image->header,
                                    begin_ns, &settler->error) != 0)
        return false;
    settler->file.level = old->unpacked_bytes > old->plain_bytes ? LEVEL_SETTLED : TRACE_FILE_LEVEL_SHORT;
    settler->file.work = old->work;
    old->work = NULL;
    if (!write_segment(settler) ||
        !write_pieces(settler, QUT_TRACE_FILE_MODULES, image->modules, image->module_count, sizeof *image->modules,
                      MODULE_BLOCK_COUNT) ||
        !write_pieces(settler, QUT_TRACE_FILE_STRINGS, image->strings, image->string_bytes, 1, STRING_BLOCK_BYTES) ||
        !write_raw(settler) || !write_tree(settler) || !write_chunks(settler) || !write_threads(settler) ||
        collect_file_notes_write(&settler->file, image->notes.items, image->notes.count, &settler->error) != 0)
        return false;
    trailer->chunk_count = settler->chunks.count;
    trailer->node_count = settler->tree.count - 1;
    return collect_trace_file_end(&settler->file, trailer, &settler->error) == 0;
}

// To where the old one stands: their headers are the same but for what the new one takes the place of.
static void take_place(struct settler *settler, struct trace_file *old)
{
    const struct trace_file *new = &settler->file;
    const uint64_t header_bytes = sizeof(struct qut_trace_file_header), both = old->bytes + new->bytes;
    old->block_count = new->block_count;
    old->unpacked_bytes = new->unpacked_bytes;
    old->bytes = both; // where what follows fails: both stand there, and the new one counts
    if (collect_file_copy(old->fd, old->begin + header_bytes, old->fd, new->begin + header_bytes, &settler->error) ==
            0 &&
        ftruncate(old->fd, (off_t)(old->begin + new->bytes)) == 0)
        old->bytes = new->bytes;
}

static void settle(struct settler *settler, struct trace_file *old, const uint8_t *bytes,
                   struct qut_trace_file_trailer *trailer)
{
    struct qut_trace_file_header header;
    struct qut_trace_file_trailer settled = *trailer;
    memcpy(&header, bytes, sizeof header);
    if (!read_old(settler, bytes, (size_t)old->bytes))
        return;
    const bool is_written = write_new(settler, old, header.begin_ns, &settled);
    if (is_written && settler->file.bytes <= old->bytes) {
        take_place(settler, old);
        *trailer = settled;
    } else if (ftruncate(old->fd, (off_t)(old->begin + old->bytes)) != 0) {
        return; // half of it does not count
    }
}

static bool read_whole(const struct trace_file *file, uint8_t *bytes)
{
    for (uint64_t done = 0; done < file->bytes;) {
        ssize_t part = pread(file->fd, bytes + done, (size_t)(file->bytes - done), (off_t)(file->begin + done));
        if (part <= 0 && !(part < 0 && errno == EINTR))
            return false;
        done += part > 0 ? (uint64_t)part : 0;
    }
    return true;
}

void collect_settle(struct trace_file *file, struct qut_trace_file_trailer *trailer, struct trace_memory *memory,
                    uint8_t *scratch)
{
    if (file->unpacked_bytes > unpacked_bytes_most)
        return;
    struct settler settler = {.image = trace_image_new(memory), .contents = scratch};
    uint8_t *bytes = malloc((size_t)file->bytes);
    if (bytes && read_whole(file, bytes))
        settle(&settler, file, bytes, trailer);
    free(bytes);
    collect_trace_file_free(&settler.file);
}

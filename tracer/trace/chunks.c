// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdlib.h>

#include "formats/qut_checksum_inline.h"
#include "formats/qut_table_check.h"
#include "tracer/trace/inside.h"

static bool has_right_checksum(const struct image_chunk *chunk)
{
    struct qut_trace_chunk *header = (void *)chunk->bytes;
    uint64_t told = header->checksum;
    header->checksum = 0; // as it was when it was summed
    uint64_t sum = qut_table_checksum(chunk->bytes, sizeof *header + chunk->used_bytes);
    header->checksum = told;
    return qut_checksum_agrees(told, sum);
}

static const char *what_is_wrong(const struct image_chunk *chunk)
{
    const struct qut_trace_chunk *header = (const void *)chunk->bytes;
    if (header->magic != QUT_TRACE_CHUNK_MAGIC)
        return "no chunk";
    if (header->level >= QUT_TRACE_LEVELS || !header->thread_uid)
        return "of no writer";
    if (chunk->is_open)
        return NULL;
    if (header->used_bytes != chunk->used_bytes)
        return "longer than a chunk";
    return has_right_checksum(chunk) ? NULL : "checksum mismatch";
}

static int compare(const void *a, const void *b)
{
    const struct chunk_place *left = a, *right = b;
    if (left->uid != right->uid)
        return left->uid < right->uid ? -1 : 1;
    if (left->level != right->level)
        return left->level < right->level ? -1 : 1;
    if (left->seq != right->seq)
        return left->seq < right->seq ? -1 : 1;
    if (left->chunk->is_open != right->chunk->is_open)
        return right->chunk->is_open ? -1 : 1; // a sealed one has all that it had while it was open,
    // and of what it had while it was open the latest has most.
    return (left->chunk->used_bytes < right->chunk->used_bytes) - (left->chunk->used_bytes > right->chunk->used_bytes);
}

static bool is_same(const struct chunk_place *a, const struct chunk_place *b)
{
    return a->uid == b->uid && a->level == b->level && a->seq == b->seq;
}

int trace_order_chunks(struct image *image, struct chunk_list *list, struct base_error *error)
{
    const struct image_chunk *chunks = image->chunks.items;
    list->places = trace_memory_take(image->memory, image->chunks.count, sizeof *list->places);
    list->count = 0;
    if (!list->places)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for %zu chunks", image->chunks.count);
    for (size_t i = 0; i < image->chunks.count; i++) {
        const struct qut_trace_chunk *header = (const void *)chunks[i].bytes;
        const char *wrong = what_is_wrong(&chunks[i]);
        if (wrong) {
            image->damaged_chunks++;
            trace_image_damage(image, "chunk %" PRIu64 " of thread %" PRIu32 " (by its header): %s", header->seq,
                               header->tid, wrong);
            continue;
        }
        list->places[list->count++] = (struct chunk_place){
            .uid = header->thread_uid, .level = header->level, .seq = header->seq, .chunk = &chunks[i]};
    }
    qsort(list->places, list->count, sizeof *list->places, compare);
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (!kept || !is_same(&list->places[kept - 1], &list->places[i]))
            list->places[kept++] = list->places[i];
    list->count = kept;
    return 0;
}

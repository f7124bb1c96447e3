// SPDX-License-Identifier: Apache-2.0
// A segment copied while its owner may write to it: the writers' states first, then what they had written by then.
// What came later is left out, so that the numbers belong together.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tracer/trace/raw_trace.h"
#include "tracer/trace/segment_view.h"

enum { SNAPSHOT_TRIES = 30 }; // where threads come and go all the time, it takes a few

static int no_memory(struct base_error *error)
{
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the trace");
}

struct image trace_image_new(struct trace_memory *memory)
{
    return (struct image){.memory = memory,
                          .threads = trace_vector(memory, sizeof(struct qut_trace_file_thread)),
                          .chunks = trace_vector(memory, sizeof(struct image_chunk)),
                          .notes = trace_vector(memory, sizeof(struct trace_note)),
                          .damages = trace_vector(memory, sizeof(char *)),
                          .node_ids = trace_vector(memory, sizeof(uint32_t))};
}

bool trace_image_damage(struct image *image, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (image->damages.count < DAMAGES_MAX) {
        char *copy = trace_memory_text(image->memory, "%s", text);
        char **place = copy ? trace_vector_add(&image->damages) : NULL;
        image->no_memory |= !place;
        if (place)
            *place = copy;
    }
    return false;
}

static bool add_chunk(struct image *image, struct image_chunk chunk)
{
    struct image_chunk *place = trace_vector_add(&image->chunks);
    if (place)
        *place = chunk;
    return place;
}

// Chunks are copied one behind the other into large pieces.
struct arena {
    struct trace_memory *memory;
    uint8_t *at;
    size_t left;
    size_t piece_bytes; // of the last one
};

static uint8_t *arena_room(struct arena *arena)
{
    // The least is so large that it is a mapping, of which what is not used is not touched.
    enum { PIECE_BYTES_LEAST = 256 << 10, PIECE_BYTES_MOST = 4 << 20 };
    if (arena->left < QUT_TRACE_CHUNK_BYTES) {
        size_t bytes = arena->piece_bytes ? 2 * arena->piece_bytes : PIECE_BYTES_LEAST;
        arena->piece_bytes = bytes < PIECE_BYTES_MOST ? bytes : PIECE_BYTES_MOST;
        arena->at = trace_memory_take(arena->memory, arena->piece_bytes, 1);
        arena->left = arena->at ? arena->piece_bytes : 0;
    }
    return arena->at;
}

// Starts are kept at multiples of 8: a chunk's header is read in place.
static void arena_keep(struct arena *arena, size_t size)
{
    size = (size + 7) & ~(size_t)7;
    arena->at += size;
    arena->left -= size;
}

static int copy_open_chunk(struct image *image, const struct trace_segment_view *view, struct arena *arena,
                           struct qut_trace_file_thread *thread, unsigned level, struct base_error *error)
{
    uint8_t *to = arena_room(arena);
    if (!to)
        return no_memory(error);
    struct qut_trace_file_writer *writer = &thread->writers[level];
    enum segment_copied copied = trace_segment_copy_open(view, thread, level, to);
    // Sealed or taken since the state was copied: then there is a newer state, unless the writer stopped between the
    // two.
    for (int i = 0; copied == SEGMENT_COPY_NONE && writer->commit.chunk && i < SNAPSHOT_TRIES; i++) {
        struct qut_trace_file_thread again;
        if (!trace_segment_copy_thread(view, thread->slot, &again) || again.uid != thread->uid)
            break;
        bool is_same = again.writers[level].version == writer->version;
        *writer = again.writers[level];
        copied = trace_segment_copy_open(view, thread, level, to);
        if (is_same)
            break;
    }
    struct qut_trace_commit *commit = &writer->commit;
    if (copied == SEGMENT_COPY_BAD) {
        image->damaged_chunks++;
        trace_image_damage(image, "slot %u level %u: names chunk %u with %u bytes", thread->slot, level, commit->chunk,
                           commit->used_bytes);
    }
    if (copied != SEGMENT_COPIED) {
        commit->chunk = 0;
        commit->run.count = 0; // it was put into the chunk before that was sealed
        return 0;
    }
    if (!add_chunk(image, (struct image_chunk){
                              .bytes = to, .used_bytes = commit->used_bytes, .slot = thread->slot, .is_open = true}))
        return no_memory(error);
    arena_keep(arena, sizeof(struct qut_trace_chunk) + commit->used_bytes);
    return 0;
}

static int copy_threads(struct image *image, const struct trace_segment_view *view, struct arena *arena,
                        struct base_error *error)
{
    for (uint32_t slot = 0; slot < view->thread_count; slot++) {
        struct qut_trace_file_thread copy;
        if (!trace_segment_copy_thread(view, slot, &copy))
            continue;
        for (unsigned level = 0; arena && level < QUT_TRACE_LEVELS; level++)
            if (copy_open_chunk(image, view, arena, &copy, level, error) != 0)
                return -1;
        struct qut_trace_file_thread *place = trace_vector_add(&image->threads);
        if (!place)
            return no_memory(error);
        *place = copy;
    }
    return 0;
}

// slot -> index in image->threads + 1
static uint32_t *index_slots(const struct image *image, uint32_t slot_count)
{
    uint32_t *index = trace_memory_take(image->memory, slot_count, sizeof *index);
    const struct qut_trace_file_thread *threads = image->threads.items;
    for (size_t i = 0; index && i < image->threads.count; i++)
        index[threads[i].slot] = (uint32_t)i + 1;
    return index;
}

// A thread that has the slot by now begins with the versions that the copied one may have begun with.
static bool has_not_moved(const struct trace_segment_view *view, const struct qut_trace_file_thread *thread,
                          unsigned level)
{
    const struct qut_trace_thread *now = trace_segment_thread(view, thread->slot);
    uint32_t version = __atomic_load_n(&now->writers[level].version, __ATOMIC_ACQUIRE);
    return version == thread->writers[level].version &&
           __atomic_load_n(&now->state, __ATOMIC_ACQUIRE) == thread->state &&
           __atomic_load_n(&now->uid, __ATOMIC_RELAXED) == thread->uid;
}

// Whether a sealed chunk belongs to what the copied state of its writer tells of. A writer that did not move since has
// no other ones.
static bool is_told(const struct image *image, const struct trace_segment_view *view, const uint32_t *slot_index,
                    uint64_t word, const struct qut_trace_chunk *chunk)
{
    uint32_t slot = trace_chunk_word_slot(word);
    unsigned level = trace_chunk_word_level(word);
    if (slot >= view->thread_count || level >= QUT_TRACE_LEVELS)
        return true; // to be found damaged
    const struct qut_trace_file_thread *thread =
        slot_index[slot] ? (struct qut_trace_file_thread *)image->threads.items + slot_index[slot] - 1 : NULL;
    uint64_t seq = trace_chunk_word_seq(word);
    if (!thread || thread->uid != chunk->thread_uid)
        // Of a thread that is gone, or of one that came since.
        return chunk->thread_uid < image->header.thread_uid_next;
    const struct qut_trace_commit *commit = &thread->writers[level].commit;
    int32_t newer = (int32_t)((uint32_t)seq - commit->chunk_seq);
    if (newer == 0) // it was copied while it was open: a writer seals it before it says so
        return !commit->chunk;
    return newer < 0 || has_not_moved(view, thread, level);
}

static bool is_left_out(const struct image *image, const struct trace_segment_view *view, uint32_t index)
{
    if (!image->part)
        return false;
    const uint64_t word = __atomic_load_n(&trace_segment_directory(view)[index], __ATOMIC_RELAXED);
    const struct qut_trace_chunk *header = (const void *)trace_segment_chunk(view, index);
    return trace_chunk_word_state(word) == QUT_TRACE_CHUNK_SEALED &&
           image->part->leaves_out(image->part, __atomic_load_n(&header->thread_uid, __ATOMIC_RELAXED),
                                   trace_chunk_word_level(word), trace_chunk_word_seq(word));
}

static int copy_sealed_chunks(struct image *image, const struct trace_segment_view *view, struct arena *arena,
                              struct base_error *error)
{
    const uint32_t *slot_index = index_slots(image, view->thread_count);
    if (!slot_index)
        return no_memory(error);
    for (uint32_t i = 0; i < view->chunk_count; i++) {
        uint8_t *to = arena_room(arena);
        if (!to)
            return no_memory(error);
        uint64_t word;
        uint32_t used_bytes;
        if (is_left_out(image, view, i) ||
            trace_segment_copy_sealed(view, i, &word, to, &used_bytes) != SEGMENT_COPIED ||
            !is_told(image, view, slot_index, word, (const void *)to))
            continue;
        if (!add_chunk(image, (struct image_chunk){.bytes = to,
                                                   .used_bytes = used_bytes,
                                                   .slot = trace_chunk_word_slot(word),
                                                   .index = i,
                                                   .word = word}))
            return no_memory(error);
        arena_keep(arena, sizeof(struct qut_trace_chunk) + used_bytes);
    }
    return 0;
}

static void keep_node(struct image *image, uint64_t id, uint64_t word)
{
    uint32_t *place = word ? trace_vector_add(&image->node_ids) : NULL;
    if (place)
        *place = (uint32_t)id;
    image->nodes[id] = word;
}

// A child is written after its parent, but may be copied before it.
static void copy_missing_parents(struct image *image, const struct trace_segment_view *view)
{
    for (size_t i = 0; i < image->node_ids.count; i++) {
        uint64_t word = image->nodes[((const uint32_t *)image->node_ids.items)[i]];
        uint64_t parent = word >> QUT_TRACE_PARENT_SHIFT;
        if (parent && parent < image->node_capacity && !image->nodes[parent])
            keep_node(image, parent, __atomic_load_n(&trace_segment_nodes(view)[parent], __ATOMIC_ACQUIRE));
    }
}

static int copy_tables(struct image *image, const struct trace_segment_view *view, struct base_error *error)
{
    uint32_t module_count = __atomic_load_n(&trace_segment_header(view)->module_count, __ATOMIC_ACQUIRE);
    image->module_count = module_count < view->module_capacity ? module_count : view->module_capacity;
    uint32_t string_bytes = __atomic_load_n(&trace_segment_header(view)->string_used_bytes, __ATOMIC_ACQUIRE);
    image->string_bytes = string_bytes < view->string_bytes ? string_bytes : view->string_bytes;
    image->raw_capacity = view->raw_count;
    image->node_capacity = view->node_count;
    image->modules = trace_memory_take(image->memory, image->module_count, sizeof *image->modules);
    image->strings = trace_memory_take(image->memory, image->string_bytes, 1);
    image->raw = trace_memory_take(image->memory, image->raw_capacity, sizeof *image->raw);
    image->nodes = trace_memory_take(image->memory, image->node_capacity, sizeof *image->nodes);
    if (!image->modules || !image->strings || !image->raw || !image->nodes)
        return no_memory(error);
    memcpy(image->modules, trace_segment_modules(view), image->module_count * sizeof *image->modules);
    memcpy(image->strings, view->bytes + view->header.strings.offset_bytes, image->string_bytes);
    for (size_t i = 0, end = 0;
         i < end || trace_segment_next_words(view, trace_segment_nodes(view), image->node_capacity, &i, &end); i++) {
        uint64_t word = __atomic_load_n(&trace_segment_nodes(view)[i], __ATOMIC_ACQUIRE);
        if (word)
            keep_node(image, i, word);
    }
    copy_missing_parents(image, view);
    if (image->node_ids.failed)
        return no_memory(error);
    for (size_t i = 0, end = 0;
         i < end || trace_segment_next_words(view, trace_segment_raw(view), image->raw_capacity, &i, &end); i++) {
        uint64_t address = __atomic_load_n(&trace_segment_raw(view)[i], __ATOMIC_ACQUIRE);
        if (address)
            image->raw[i] = address;
    }
    return 0;
}

// What tells where things are is the copy that was checked.
static void copy_header(struct image *image, const struct trace_segment_view *view)
{
    const struct qut_trace_header *now = trace_segment_header(view);
    image->header = view->header;
    image->header.state = __atomic_load_n(&now->state, __ATOMIC_ACQUIRE);
    image->header.closed_ns = __atomic_load_n(&now->closed_ns, __ATOMIC_RELAXED);
    image->header.thread_uid_next = __atomic_load_n(&now->thread_uid_next, __ATOMIC_RELAXED);
    memcpy(image->header.command, now->command, sizeof image->header.command);
    memcpy(image->header.kind_names, now->kind_names, sizeof image->header.kind_names);
}

// Header, counters and threads; with `arena` the open chunks that belong to them.
static int copy_states(struct image *image, const struct trace_segment_view *view, struct arena *arena,
                       struct base_error *error)
{
    const struct qut_trace_counters *counters = trace_segment_counters(view);
    for (int i = 0; i < SNAPSHOT_TRIES; i++) {
        image->threads.count = image->chunks.count = 0;
        copy_header(image, view);
        uint32_t version = __atomic_load_n(&counters->retired_version, __ATOMIC_ACQUIRE);
        if (copy_threads(image, view, arena, error) != 0)
            return -1;
        memcpy(&image->counters, counters, sizeof image->counters);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        // Else a slot changed hands meanwhile, and its thread may be in both, or in none.
        if (__atomic_load_n(&counters->retired_version, __ATOMIC_RELAXED) == version)
            break;
    }
    return 0;
}

int trace_image_of_states(struct image *image, const struct trace_segment_view *view, struct base_error *error)
{
    return copy_states(image, view, NULL, error);
}

uint64_t trace_image_samples(const struct image *image)
{
    const struct qut_trace_counters *counters = &image->counters;
    const struct qut_trace_retired *retired = &counters->retired[counters->retired_version & 1];
    const struct qut_trace_file_thread *threads = image->threads.items;
    uint64_t samples = retired->stored + retired->merged;
    for (size_t i = 0; i < image->threads.count; i++)
        for (unsigned level = 0; level < QUT_TRACE_LEVELS; level++)
            samples += threads[i].writers[level].commit.stored + threads[i].writers[level].commit.merged;
    return samples;
}

int trace_image_of_segment(struct image *image, const struct trace_segment_view *view, struct base_error *error)
{
    struct arena arena = {.memory = image->memory};
    image->file_bytes = view->size;
    image->overwritten_least = trace_segment_overwritten(view, false);
    if (copy_states(image, view, &arena, error) != 0 || copy_sealed_chunks(image, view, &arena, error) != 0)
        return -1;
    image->overwritten_most = trace_segment_overwritten(view, true);
    image->is_complete = image->header.state == QUT_TRACE_CLOSED && !view->is_cut;
    image->is_truncated = view->is_cut;
    if (view->is_cut)
        trace_image_damage(image, "the file ends after %zu of the segment's %llu bytes", view->size,
                           (unsigned long long)view->header.segment_bytes);
    image->may_miss_chunks = __atomic_load_n(&trace_segment_counters(view)->collected_chunks, __ATOMIC_RELAXED) != 0;
    if (copy_tables(image, view, error) != 0)
        return -1;
    if (trace_segment_was_cut(view))
        return base_fail(error, BASE_ERR_TRUNCATED, "", 0, "the segment was cut short while it was read");
    return 0;
}

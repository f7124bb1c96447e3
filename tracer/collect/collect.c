// SPDX-License-Identifier: Apache-2.0
#include "tracer/collect/collect.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock_inline.h"
#include "base/codec.h"
#include "tracer/collect/file_chunks.h"
#include "tracer/collect/file_tables.h"
#include "tracer/collect/notes_write.h"
#include "tracer/collect/settle.h"
#include "tracer/trace/raw_trace.h"

enum { PASS_BATCHES = 16, INTERVAL_DEFAULT_MS = 100 };
// So old may be what a file that is being written says of chunks that are not full; where little happens (each look
// finds few samples), twice as old each time.
static const uint64_t open_interval_ns = 1000000000, open_interval_most_ns = 64000000000;
static const uint64_t live_interval_ns = 400000000;
enum { FEW_SAMPLES = 32, PLAIN_BYTES = 64 << 10 };

struct collector {
    const struct collect_options *options;
    struct collect_result *result;
    struct trace_segment_view view;
    struct trace_file file;
    struct file_tables tables;
    struct code_names code_names;
    struct chunk_batch *batches; // PASS_BATCHES of them, which cost nothing before they are used
    size_t batch_count;          // that were gathered
    uint64_t *seen;              // by chunk: the directory's word of what is in the file
    bool gives_back, is_watched;
    uint64_t *open_seen; // by slot and level: the commit whose open chunk is in the file
    uint64_t open_next_ns, open_interval_ns;
    uint64_t open_samples;       // when open chunks were last looked at
    struct trace_memory *memory; // of the end; NULL before
};

// What could not be written stays where it is, to be tried again.
static void note_failure(struct collector *collector, const struct base_error *error)
{
    if (!collector->result->first_failure.reason)
        collector->result->first_failure = *error;
}

static bool batch_is_written(struct collector *collector, const struct chunk_batch *batch)
{
    struct base_error error = {0};
    if (!batch->count)
        return true;
    if (collect_chunk_batch_write(batch, &collector->file, collector->tables.scratch, &error) != 0) {
        note_failure(collector, &error);
        return false;
    }
    collector->result->chunk_count += batch->count;
    collector->result->sample_count += batch->sample_count;
    return true;
}

static void give_back(struct collector *collector, const struct chunk_batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        collector->seen[batch->indices[i]] = batch->words[i];
        if (collector->gives_back)
            trace_segment_release(&collector->view, batch->indices[i], batch->words[i]);
    }
}

// Copies a chunk into the batch, unless it is not there, or was in the file before.
static void add_sealed(struct collector *collector, struct chunk_batch *batch, uint32_t index)
{
    uint64_t word = __atomic_load_n(&trace_segment_directory(&collector->view)[index], __ATOMIC_RELAXED);
    uint32_t used_bytes, at = batch->count;
    if (trace_chunk_word_state(word) != QUT_TRACE_CHUNK_SEALED || word == collector->seen[index] ||
        trace_segment_copy_sealed(&collector->view, index, &word, batch->bytes[at], &used_bytes) != SEGMENT_COPIED)
        return;
    const struct qut_trace_chunk *header = (const void *)batch->bytes[at];
    batch->told[at] = (struct qut_trace_file_chunk){
        .used_bytes = used_bytes, .slot = trace_chunk_word_slot(word), .record_count = header->record_count};
    batch->indices[at] = index;
    batch->words[at] = word;
    batch->sample_count += header->sample_count;
    batch->count++;
}

// Fills the batches from chunk *next on. Returns how many chunks.
static size_t gather(struct collector *collector, uint32_t *next)
{
    size_t all = 0;
    collector->batch_count = 0;
    while (*next < collector->view.chunk_count && collector->batch_count < PASS_BATCHES) {
        // Their memory is touched where it is needed.
        struct chunk_batch *batch = &collector->batches[collector->batch_count];
        batch->count = batch->sample_count = 0;
        for (; *next < collector->view.chunk_count && batch->count < QUT_TRACE_FILE_BLOCK_CHUNKS_MAX; ++*next)
            add_sealed(collector, batch, *next);
        all += batch->count;
        collector->batch_count++;
    }
    return all;
}

static bool write_tables(struct collector *collector)
{
    struct base_error error = {0};
    if (collect_file_tables_write(&collector->tables, &error) == 0)
        return true;
    note_failure(collector, &error);
    return false;
}

static bool write_states(struct collector *collector, const struct image *image)
{
    struct base_error error = {0};
    if (collect_file_tables_write_threads(&collector->tables, image->threads.items, image->threads.count, &error) ==
            0 &&
        collect_file_tables_write_segment(&collector->tables, &image->header, &image->counters, &error) == 0)
        return true;
    note_failure(collector, &error);
    return false;
}

// The writers' states as they are now: they know of at least as much as is in the file.
static void write_states_now(struct collector *collector)
{
    struct trace_memory *memory = trace_memory_new();
    if (!memory)
        return;
    struct image image = trace_image_new(memory);
    if (trace_image_of_states(&image, &collector->view, NULL) == 0 && !trace_segment_was_cut(&collector->view))
        write_states(collector, &image);
    trace_memory_free(memory);
}

// Copies a writer's open chunk into the batch, unless the file has it as it is.
static void add_open(struct collector *collector, struct chunk_batch *batch, const struct qut_trace_file_thread *thread,
                     unsigned level)
{
    const struct qut_trace_commit *commit = &thread->writers[level].commit;
    uint64_t *seen = &collector->open_seen[(size_t)thread->slot * QUT_TRACE_LEVELS + level];
    // Marks are commits as samples are; uids are never given twice.
    uint64_t now = (uint64_t)thread->writers[level].version << 32 | thread->uid;
    if (*seen == now ||
        trace_segment_copy_open(&collector->view, thread, level, batch->bytes[batch->count]) != SEGMENT_COPIED)
        return;
    *seen = now;
    batch->told[batch->count++] =
        (struct qut_trace_file_chunk){.used_bytes = commit->used_bytes, .is_open = 1, .slot = thread->slot};
}

// Chunks that are not full yet, so that a file which is never finished, or is looked at meanwhile, has them, too. Later
// ones take their place. What they refer to is in the tables by now.
static void write_open(struct collector *collector, const struct image *image)
{
    struct chunk_batch *batch = collector->batches;
    const struct qut_trace_file_thread *threads = image->threads.items;
    bool any = false;
    for (size_t i = 0; i < image->threads.count;) {
        batch->count = batch->sample_count = 0;
        for (; i < image->threads.count && batch->count + QUT_TRACE_LEVELS <= QUT_TRACE_FILE_BLOCK_CHUNKS_MAX; i++)
            for (unsigned level = 0; level < QUT_TRACE_LEVELS && threads[i].slot < collector->view.thread_count;
                 level++)
                add_open(collector, batch, &threads[i], level);
        if (!batch->count)
            continue;
        if (trace_segment_was_cut(&collector->view) || !write_tables(collector) || !batch_is_written(collector, batch))
            return;
        any = true;
    }
    if (any)
        write_states(collector, image);
}

static void set_open_interval(struct collector *collector, uint64_t samples)
{
    const bool is_quiet = samples - collector->open_samples < FEW_SAMPLES;
    collector->open_samples = samples;
    if (collector->options->live)
        collector->open_interval_ns = live_interval_ns;
    else if (!is_quiet)
        collector->open_interval_ns = open_interval_ns;
    else if (collector->open_interval_ns < open_interval_most_ns)
        collector->open_interval_ns *= 2;
}

static void write_open_if_due(struct collector *collector)
{
    uint64_t now = base_clock_now_ns();
    if (now < collector->open_next_ns)
        return;
    struct trace_memory *memory = trace_memory_new();
    if (!memory)
        return;
    struct image image = trace_image_new(memory);
    if (trace_image_of_states(&image, &collector->view, NULL) == 0 && !trace_segment_was_cut(&collector->view)) {
        set_open_interval(collector, trace_image_samples(&image));
        write_open(collector, &image);
    }
    collector->open_next_ns = now + collector->open_interval_ns;
    trace_memory_free(memory);
}

// All chunks that are sealed now. What they refer to goes before them.
static void drain(struct collector *collector)
{
    bool any = false;
    for (uint32_t next = 0; next < collector->view.chunk_count;) {
        if (!gather(collector, &next))
            break;
        if (!write_tables(collector) || trace_segment_was_cut(&collector->view))
            return;
        for (size_t i = 0; i < collector->batch_count; i++) {
            if (!batch_is_written(collector, &collector->batches[i]))
                return;
            give_back(collector, &collector->batches[i]);
        }
        any = true;
    }
    if (any)
        write_states_now(collector);
    if (collector->options->progress)
        collector->options->progress(collector->options->progress_context, collector->result->chunk_count,
                                     collector->file.bytes);
}

// ---- the end

static void add_of_image(struct chunk_batch *batch, const struct image_chunk *chunk)
{
    uint32_t at = batch->count++;
    const struct qut_trace_chunk *header = (const void *)chunk->bytes;
    memcpy(batch->bytes[at], chunk->bytes, sizeof *header + chunk->used_bytes);
    batch->told[at] = (struct qut_trace_file_chunk){.used_bytes = chunk->used_bytes,
                                                    .is_open = chunk->is_open,
                                                    .slot = chunk->slot,
                                                    .record_count = chunk->is_open ? 0 : header->record_count};
    batch->indices[at] = chunk->index;
    batch->words[at] = chunk->word;
    batch->sample_count += chunk->is_open ? 0 : header->sample_count;
}

static bool flush(struct collector *collector, struct chunk_batch *batch, bool is_open)
{
    bool written = batch_is_written(collector, batch);
    if (written && !is_open)
        give_back(collector, batch);
    batch->count = batch->sample_count = 0;
    return written;
}

// Sealed chunks first, then open ones: only the sealed are given back.
static void write_chunks_of(struct collector *collector, const struct image *image, bool open_ones)
{
    struct chunk_batch *batch = collector->batches;
    const struct image_chunk *chunks = image->chunks.items;
    batch->count = batch->sample_count = 0;
    for (size_t i = 0; i < image->chunks.count; i++) {
        if (chunks[i].is_open != open_ones || (!open_ones && collector->seen[chunks[i].index] == chunks[i].word))
            continue;
        add_of_image(batch, &chunks[i]);
        if (batch->count == QUT_TRACE_FILE_BLOCK_CHUNKS_MAX && !flush(collector, batch, open_ones))
            return;
    }
    flush(collector, batch, open_ones);
}

static void write_notes(struct collector *collector)
{
    const struct collect_options *options = collector->options;
    struct base_error error = {0};
    size_t count = 0;
    const struct trace_note *told = options->notes ? options->notes(options->notes_context, &count) : NULL;
    struct trace_note *notes = malloc((count + 1) * sizeof *notes);
    if (!notes) {
        base_fail(&error, BASE_ERR_NO_MEMORY, "", 0, "no memory for notes");
        note_failure(collector, &error);
        return;
    }
    if (told)
        memcpy(notes, told, count * sizeof *notes);
    if (collector->result->code_names_left)
        notes[count++] = (struct trace_note){.name = "code-names-left", .value = collector->result->code_names_left};
    if (count && collect_file_notes_write(&collector->file, notes, count, &error) != 0)
        note_failure(collector, &error);
    free(notes);
}

static void write_code_names(struct collector *collector)
{
    struct base_error error = {0};
    collect_code_names_end(&collector->code_names);
    if (collect_file_tables_write_code_names(&collector->tables, &collector->result->code_names_left, &error) != 0)
        note_failure(collector, &error);
    else if (collect_file_tables_write_code_places(&collector->tables, &collector->result->code_names_left, &error) !=
             0)
        note_failure(collector, &error);
    collector->result->code_names_left += collector->code_names.dropped;
}

static int finish(struct collector *collector, enum qut_trace_file_end end, struct base_error *error)
{
    collector->memory = trace_memory_new();
    if (!collector->memory)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the segment");
    struct image image = trace_image_new(collector->memory);
    if (trace_image_of_segment(&image, &collector->view, error) != 0)
        return -1;
    // Else each block would take memory, and give it back. While it goes on there are few, and may be many processes.
    if (!collector->file.work)
        collector->file.work = base_zstd_room_new();
    // Whatever fails, the rest is tried: smaller things may still have room.
    write_tables(collector);
    write_code_names(collector);
    write_chunks_of(collector, &image, false);
    write_chunks_of(collector, &image, true);
    write_states(collector, &image);
    write_notes(collector);
    struct collect_result *result = collector->result;
    struct qut_trace_file_trailer trailer = {.end = image.header.state == QUT_TRACE_CLOSED ? QUT_TRACE_FILE_END_CLOSED
                                                                                           : end,
                                             .chunk_count = result->chunk_count,
                                             .node_count = collector->tables.node_count,
                                             .raw_count = collector->tables.raw_count,
                                             .module_count = collector->tables.module_count,
                                             .thread_count = collector->tables.thread_count,
                                             .string_bytes = collector->tables.string_bytes,
                                             .end_ns = base_clock_now_ns()};
    struct base_error failure = {0};
    result->has_trailer = collect_trace_file_end(&collector->file, &trailer, &failure) == 0;
    if (!result->has_trailer)
        note_failure(collector, &failure);
    result->end = (enum qut_trace_file_end)trailer.end;
    if (collector->file.unpacked_bytes > PLAIN_BYTES) { // else there is no hurry
        trace_memory_free(collector->memory);
        collector->memory = trace_memory_new();
    }
    if (result->has_trailer && !collector->file.failed_writes && collector->memory)
        collect_settle(&collector->file, &trailer, collector->memory, collector->tables.scratch);
    result->chunk_count = trailer.chunk_count;
    return 0;
}

// ---- as long as it goes on

// For the segment's writer, which cannot see otherwise that its samples are not taken.
static void tell_writer(const struct collector *collector, uint64_t looked_ns)
{
    struct qut_trace_counters *counters =
        (void *)(collector->view.bytes + collector->view.header.counters.offset_bytes);
    if (collector->is_watched)
        __atomic_store_n(&counters->collector_ns, looked_ns, __ATOMIC_RELAXED);
}

// Waits for the next look. 0: go on; else why that was the last.
static enum qut_trace_file_end wait_on(struct collector *collector)
{
    const struct collect_options *options = collector->options;
    struct pollfd waited[] = {{.fd = options->stop_fd, .events = POLLIN},
                              {.fd = options->process_fd, .events = POLLIN}};
    if (__atomic_load_n(&trace_segment_header(&collector->view)->state, __ATOMIC_ACQUIRE) == QUT_TRACE_CLOSED)
        return QUT_TRACE_FILE_END_CLOSED;
    if (trace_segment_was_cut(&collector->view))
        return QUT_TRACE_FILE_END_STOPPED;
    int interval = options->interval_ms ? (int)options->interval_ms : INTERVAL_DEFAULT_MS;
    int ready = poll(waited, 2, interval);
    if (ready < 0 && errno != EINTR)
        return QUT_TRACE_FILE_END_STOPPED;
    if (ready > 0 && waited[1].revents)
        return QUT_TRACE_FILE_END_DIED;
    if (ready > 0 && waited[0].revents)
        return QUT_TRACE_FILE_END_STOPPED;
    return (enum qut_trace_file_end)0;
}

static int run(struct collector *collector, struct base_error *error)
{
    enum qut_trace_file_end end = QUT_TRACE_FILE_END_STOPPED;
    struct base_error failure = {0};
    if (collect_trace_file_begin(&collector->file, collector->options->file_fd, &collector->view.header,
                                 base_clock_now_ns(), &failure) != 0)
        note_failure(collector, &failure);
    collector->file.plain_bytes = PLAIN_BYTES;
    write_states_now(collector); // so that all that follows can be read
    if (collector->options->prepares_end)
        collect_trace_file_prepare(&collector->file, &collector->view.header, sizeof collector->view.header);
    if (collector->options->follow) {
        do {
            tell_writer(collector, base_clock_now_ns());
            drain(collector);
            write_open_if_due(collector);
        } while ((end = wait_on(collector)) == 0);
        tell_writer(collector, UINT64_MAX);
    } else if (collector->options->process_fd < 0) {
        // It was not said that it lives.
        end = QUT_TRACE_FILE_END_DIED;
    }
    return finish(collector, end, error);
}

static int prepare(struct collector *collector, struct base_error *error)
{
    const struct collect_options *options = collector->options;
    collector->gives_back = options->follow && collector->view.header.mode == QUT_TRACE_STREAM;
    collector->is_watched = options->follow;
    collector->seen = calloc(collector->view.chunk_count + 1, sizeof *collector->seen);
    collector->open_seen =
        calloc((size_t)collector->view.thread_count * QUT_TRACE_LEVELS + 1, sizeof *collector->open_seen);
    collector->open_interval_ns = options->live ? live_interval_ns : open_interval_ns;
    collector->open_next_ns = base_clock_now_ns() + collector->open_interval_ns;
    collector->batches = malloc(PASS_BATCHES * sizeof *collector->batches);
    return collector->seen && collector->open_seen && collector->batches
               ? collect_file_tables_begin(&collector->tables, &collector->file, &collector->view,
                                           &collector->code_names, error)
               : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for copies of chunks");
}

int collect(const struct collect_options *options, struct collect_result *result, struct base_error *error)
{
    struct collector collector = {.options = options, .result = result, .code_names = {.options = options}};
    *result = (struct collect_result){0};
    int status = trace_segment_map(&collector.view, options->segment_fd, options->follow, error);
    status = status == 0 && prepare(&collector, error) == 0 ? run(&collector, error) : -1;
    result->node_count = collector.tables.node_count;
    result->file_bytes = collector.file.bytes;
    result->unpacked_bytes = collector.file.unpacked_bytes;
    result->failed_writes = collector.file.failed_writes;
    if (options->ended)
        options->ended(options->ended_context, status);
    trace_memory_free(collector.memory);
    collect_file_tables_free(&collector.tables);
    collect_code_names_free(&collector.code_names);
    collect_trace_file_free(&collector.file);
    free(collector.batches);
    free(collector.seen);
    free(collector.open_seen);
    trace_segment_unmap(&collector.view);
    return status;
}

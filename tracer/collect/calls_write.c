// SPDX-License-Identifier: Apache-2.0
#include "tracer/collect/calls_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vector.h"
#include "tracer/call_events/encode.h"
#include "tracer/collect/file_write.h"
#include "tracer/collect/notes_write.h"

enum { TABLE_BYTES_FULL = 1 << 20, TEXT_BYTES_MAX = QUT_TRACE_FILE_NOTE_BYTES_MAX - 1 };

// Tables wait here, one for each type, until they are written: in this order, before events.
enum { FIRST_TABLE = QUT_TRACE_FILE_CALL_MODULES, TABLE_COUNT = QUT_TRACE_FILE_CALL_EVENTS - FIRST_TABLE };

struct table {
    BASE_VECTOR(uint8_t);
};

struct thread {
    struct qut_trace_file_call_thread told;
    struct call_events_encoder *encoder; // NULL: it had no event since its end
    uint64_t event_count;                // in blocks that are written, of encoders before this one
};

struct collect_calls {
    struct trace_file file;
    struct qut_trace_file_calls told;
    struct table tables[TABLE_COUNT];
    struct {
        BASE_VECTOR(struct thread);
    } threads;
    uint32_t module_count;
    struct qut_trace_file_call_clock clock; // the last one
};

static int no_memory(struct base_error *error)
{
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for calls");
}

static int write_table(struct collect_calls *calls, unsigned type, struct base_error *error)
{
    struct table *table = &calls->tables[type - FIRST_TABLE];
    if (!table->count)
        return 0;
    const int status = collect_trace_file_block(&calls->file, type, table->items, table->count, 0, error);
    if (status == 0)
        table->count = 0; // else it waits for better times
    return status;
}

static int write_tables(struct collect_calls *calls, struct base_error *error)
{
    for (unsigned type = FIRST_TABLE; type < FIRST_TABLE + TABLE_COUNT; type++)
        if (write_table(calls, type, error) != 0)
            return -1;
    return 0;
}

// A structure, and a text behind it.
static int put(struct collect_calls *calls, unsigned type, const void *item, size_t item_bytes, const char *text,
               size_t text_bytes, struct base_error *error)
{
    struct table *table = &calls->tables[type - FIRST_TABLE];
    if (table->count + item_bytes + text_bytes > TABLE_BYTES_FULL && write_tables(calls, error) != 0 &&
        table->count + item_bytes + text_bytes > QUT_TRACE_FILE_BLOCK_BYTES_MAX)
        return -1;
    if (!BASE_RESERVE(table, item_bytes + text_bytes))
        return no_memory(error);
    memcpy(table->items + table->count, item, item_bytes);
    if (text_bytes)
        memcpy(table->items + table->count + item_bytes, text, text_bytes);
    table->count += item_bytes + text_bytes;
    return 0;
}

static uint32_t text_bytes(const char *text)
{
    return text ? (uint32_t)strnlen(text, TEXT_BYTES_MAX) : 0;
}

static int write_told(struct collect_calls *calls, struct base_error *error)
{
    return collect_trace_file_block(&calls->file, QUT_TRACE_FILE_CALLS, &calls->told, sizeof calls->told, 0, error);
}

struct collect_calls *collect_calls_begin(int fd, const struct collect_calls_process *process, struct base_error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        base_fail_errno(error, errno);
        return NULL;
    }
    struct collect_calls *calls = calloc(1, sizeof *calls);
    if (!calls) {
        no_memory(error);
        return NULL;
    }
    calls->told = (struct qut_trace_file_calls){.pid = process->pid,
                                                .arch = process->arch,
                                                .begin_ns = process->begin_ns,
                                                .end_ns = process->begin_ns,
                                                .flags = QUT_TRACE_FILE_CALLS_TAILS};
    const struct trace_note note = {.name = "command", .text = process->command};
    if (collect_trace_file_begin_calls(&calls->file, fd, (uint64_t)status.st_size, process->pid, process->begin_ns,
                                       error) == 0 &&
        write_told(calls, error) == 0 &&
        (!process->command || collect_file_notes_write(&calls->file, &note, 1, error) == 0))
        return calls;
    collect_trace_file_free(&calls->file);
    free(calls);
    return NULL;
}

int collect_calls_module(struct collect_calls *calls, const struct collect_calls_module *module, uint32_t *index,
                         struct base_error *error)
{
    struct qut_trace_file_call_module told = {
        .bias = module->bias, .path_bytes = text_bytes(module->path), .build_id_bytes = module->build_id_bytes};
    if (told.build_id_bytes > sizeof told.build_id)
        told.build_id_bytes = 0;
    if (told.build_id_bytes)
        memcpy(told.build_id, module->build_id, told.build_id_bytes);
    if (calls->module_count == QUT_TRACE_FILE_CALL_MODULES_MAX)
        return base_fail(error, BASE_ERR_LIMIT, "", 0, "%u modules are the most", calls->module_count);
    if (put(calls, QUT_TRACE_FILE_CALL_MODULES, &told, sizeof told, module->path, told.path_bytes, error) != 0)
        return -1;
    *index = calls->module_count++;
    return 0;
}

int collect_calls_function(struct collect_calls *calls, const struct collect_calls_function *function,
                           struct base_error *error)
{
    const struct qut_trace_file_call_function told = {.vaddr = function->vaddr,
                                                      .size = function->size,
                                                      .id = function->id,
                                                      .module = function->module,
                                                      .flags = function->flags,
                                                      .name_bytes = text_bytes(function->name)};
    if (told.id >> QUT_TRACE_FILE_CALL_ID_BITS)
        return base_fail(error, BASE_ERR_LIMIT, "", 0, "a function's id has 20 bits");
    return put(calls, QUT_TRACE_FILE_CALL_FUNCTIONS, &told, sizeof told, function->name, told.name_bytes, error);
}

int collect_calls_clock(struct collect_calls *calls, uint64_t ticks, uint64_t ns, struct base_error *error)
{
    const struct qut_trace_file_call_clock clock = {ticks, ns};
    if (ticks <= calls->clock.ticks || ns < calls->clock.ns)
        return 0;
    calls->clock = clock;
    return put(calls, QUT_TRACE_FILE_CALL_CLOCKS, &clock, sizeof clock, NULL, 0, error);
}

static int tell_thread(struct collect_calls *calls, const struct thread *thread, struct base_error *error)
{
    return put(calls, QUT_TRACE_FILE_CALL_THREADS, &thread->told, sizeof thread->told, NULL, 0, error);
}

static void set_name(struct thread *thread, const char *name)
{
    memset(thread->told.name, 0, sizeof thread->told.name);
    memcpy(thread->told.name, name, strnlen(name, sizeof thread->told.name - 1));
}

int collect_calls_thread(struct collect_calls *calls, uint32_t tid, const char *name, uint64_t start_ns,
                         uint32_t *index, struct base_error *error)
{
    if (calls->threads.count == QUT_TRACE_FILE_CALL_THREADS_MAX)
        return base_fail(error, BASE_ERR_LIMIT, "", 0, "%zu threads are the most", calls->threads.count);
    struct thread *thread = BASE_ADD(&calls->threads);
    if (!thread)
        return no_memory(error);
    *index = (uint32_t)calls->threads.count - 1;
    *thread = (struct thread){.told = {.index = *index, .tid = tid, .start_ns = start_ns, .end_ns = UINT64_MAX}};
    set_name(thread, name ? name : "");
    return tell_thread(calls, thread, error);
}

// The events that wait: written, or lost.
static int write_events(struct collect_calls *calls, struct thread *thread, struct base_error *error)
{
    struct call_events_encoder *encoder = thread->encoder;
    const uint32_t count = encoder ? call_events_encoded(encoder) : 0;
    if (!count)
        return 0;
    struct base_bytes pieces[CALL_EVENTS_PIECES];
    const uint32_t enters = call_events_enters(encoder);
    call_events_block(encoder, pieces);
    if (write_tables(calls, error) == 0 && collect_trace_file_pieces(&calls->file, QUT_TRACE_FILE_CALL_EVENTS, pieces,
                                                                     CALL_EVENTS_PIECES, 0, error) == 0) {
        calls->told.enters += enters;
        calls->told.exits += count - enters;
        return 0;
    }
    struct base_error second = {0};
    call_events_drop(encoder);
    collect_calls_lost(calls, thread->told.index, enters, count - enters, &second);
    return -1;
}

int collect_calls_thread_is(struct collect_calls *calls, uint32_t index, const char *name, uint64_t end_ns,
                            struct base_error *error)
{
    struct thread *thread = &calls->threads.items[index];
    if (name)
        set_name(thread, name);
    thread->told.end_ns = end_ns;
    int status = tell_thread(calls, thread, error);
    if (end_ns == UINT64_MAX || !thread->encoder)
        return status;
    // Its buffers are not needed any more.
    status |= write_events(calls, thread, error);
    thread->event_count = call_events_told(thread->encoder);
    call_events_encoder_free(thread->encoder);
    thread->encoder = NULL;
    return status;
}

int collect_calls_events(struct collect_calls *calls, uint32_t index, const struct qut_calls_event *events,
                         size_t count, struct base_error *error)
{
    struct thread *thread = &calls->threads.items[index];
    bool lacks_memory = false;
    int status = 0;
    if (!thread->encoder && !(thread->encoder = call_events_encoder_new(index, thread->event_count)))
        lacks_memory = true;
    while (count && !lacks_memory) {
        const size_t done = call_events_encode(thread->encoder, events, count, &lacks_memory);
        events += done;
        count -= done;
        if (call_events_encoded(thread->encoder) == QUT_TRACE_FILE_CALL_EVENTS_MAX)
            status |= write_events(calls, thread, error);
    }
    if (!lacks_memory)
        return status;
    uint64_t exits = 0;
    for (size_t i = 0; i < count; i++)
        exits += qut_calls_word_is_exit(events[i].word);
    collect_calls_lost(calls, index, count - exits, exits, error);
    return no_memory(error);
}

int collect_calls_lost(struct collect_calls *calls, uint32_t index, uint64_t enters, uint64_t exits,
                       struct base_error *error)
{
    const struct thread *thread = &calls->threads.items[index];
    const struct qut_trace_file_call_loss loss = {.thread = index,
                                                  .before_event = thread->encoder ? call_events_told(thread->encoder)
                                                                                  : thread->event_count,
                                                  .enters = enters,
                                                  .exits = exits};
    if (!enters && !exits)
        return 0;
    calls->told.lost_enters += enters;
    calls->told.lost_exits += exits;
    return put(calls, QUT_TRACE_FILE_CALL_LOSSES, &loss, sizeof loss, NULL, 0, error);
}

int collect_calls_counted(struct collect_calls *calls, uint32_t id, uint64_t count, struct base_error *error)
{
    const struct qut_trace_file_call_count told = {.id = id, .count = count};
    return put(calls, QUT_TRACE_FILE_CALL_COUNTS, &told, sizeof told, NULL, 0, error);
}

int collect_calls_flush(struct collect_calls *calls, struct base_error *error)
{
    int status = 0;
    for (size_t i = 0; i < calls->threads.count; i++)
        status |= write_events(calls, &calls->threads.items[i], error);
    return status | write_tables(calls, error) | write_told(calls, error);
}

void collect_calls_sums(const struct collect_calls *calls, struct collect_calls_sums *sums)
{
    *sums = (struct collect_calls_sums){.enters = calls->told.enters,
                                        .exits = calls->told.exits,
                                        .lost_enters = calls->told.lost_enters,
                                        .lost_exits = calls->told.lost_exits,
                                        .file_bytes = calls->file.bytes};
    for (size_t i = 0; i < calls->threads.count; i++) {
        const struct call_events_encoder *encoder = calls->threads.items[i].encoder;
        if (!encoder)
            continue;
        sums->enters += call_events_enters(encoder);
        sums->exits += call_events_encoded(encoder) - call_events_enters(encoder);
    }
}

static void free_calls(struct collect_calls *calls)
{
    for (size_t i = 0; i < calls->threads.count; i++)
        call_events_encoder_free(calls->threads.items[i].encoder);
    for (size_t i = 0; i < TABLE_COUNT; i++)
        base_vector_free(&calls->tables[i].vector);
    base_vector_free(&calls->threads.vector);
    collect_trace_file_free(&calls->file);
    free(calls);
}

int collect_calls_end(struct collect_calls *calls, const struct collect_calls_ending *ending, struct base_error *error)
{
    calls->told.end_ns = ending->end_ns;
    calls->told.misaligned = ending->misaligned;
    int status = collect_calls_flush(calls, error);
    if (ending->note_count)
        status |= collect_file_notes_write(&calls->file, ending->notes, ending->note_count, error);
    struct qut_trace_file_trailer trailer = {.end = ending->end, .end_ns = ending->end_ns};
    status |= collect_trace_file_end(&calls->file, &trailer, error);
    free_calls(calls);
    return status ? -1 : 0;
}

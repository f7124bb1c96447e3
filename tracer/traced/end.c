// SPDX-License-Identifier: Apache-2.0
// The end of a process, or of tracing it: what is exchanged is put back, what is left is told, all is let go.
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "tracer/traced/events.h"
#include "tracer/traced/inside.h"

void traced_note_error(struct traced_process *process, struct base_error *error)
{
    if (error->reason && !process->error.reason)
        process->error = *error;
    *error = (struct base_error){0};
}

// Calls that made no events. Of a thinned one the cell has all since then.
static uint64_t counted_of(const struct traced_process *process, uint32_t id)
{
    const struct traced_function *function = &process->functions.items[id];
    const uint64_t cell = function->is_counted || function->is_thinned ? traced_cell(process, id) : 0;
    const uint64_t recorded = function->is_thinned ? function->thinned_enters : 0;
    return (cell > recorded ? cell - recorded : 0) + function->short_calls;
}

static int write_counts(struct traced_process *process, struct base_error *error)
{
    int status = 0;
    for (uint32_t id = 1; id < process->functions.count && status == 0; id++) {
        const uint64_t count = counted_of(process, id);
        process->result.counted += count;
        if (count)
            status = collect_calls_counted(process->writer, id, count, error);
    }
    return status;
}

static void end_file(struct traced_process *process, bool is_stopped)
{
    struct base_error error = {0};
    const struct qut_calls_header *now = (const void *)process->memory;
    const uint64_t misaligned = __atomic_load_n(&now->passed_misaligned, __ATOMIC_RELAXED);
    process->result.lost_enters += __atomic_load_n(&now->lost_enters, __ATOMIC_RELAXED);
    process->result.lost_exits += __atomic_load_n(&now->lost_exits, __ATOMIC_RELAXED);
    process->result.passed += misaligned + __atomic_load_n(&now->passed_no_shadow, __ATOMIC_RELAXED);
    if (write_counts(process, &error) != 0 || traced_write_clock(process, &error) != 0)
        traced_note_error(process, &error);
    struct trace_note notes[32];
    const struct collect_calls_ending ending = {
        // Its memory outlives it: nothing is missing, however it ended.
        .end = is_stopped ? QUT_TRACE_FILE_END_STOPPED : QUT_TRACE_FILE_END_CLOSED,
        .end_ns = base_clock_now_ns(),
        .misaligned = misaligned,
        .notes = notes,
        .note_count = traced_notes(&process->result, notes, sizeof notes / sizeof *notes)};
    if (collect_calls_end(process->writer, &ending, &error) != 0)
        traced_note_error(process, &error);
    process->writer = NULL;
}

void traced_end_process(struct traced_process *process, bool is_stopped)
{
    struct base_error error = {0};
    if (is_stopped) {
        pthread_mutex_lock(&process->code_lock);
        traced_take_out(process);
        pthread_mutex_unlock(&process->code_lock);
    }
    if (traced_drain_last(process, &error) != 0 || traced_running_rest(process, &error) != 0)
        traced_note_error(process, &error);
    end_file(process, is_stopped);
}

void traced_let_go(struct traced_process *process)
{
    if (process->writer)
        collect_calls_end(process->writer, &(struct collect_calls_ending){.end = QUT_TRACE_FILE_END_STOPPED}, NULL);
    patch_let_go(process->patch);
    traced_rings_end(process);
    calls_patterns_free(&process->patterns);
    traced_leasts_free(process);
    base_vector_free(&process->running.vector);
    if (process->memory)
        munmap(process->memory, process->memory_bytes);
    const int fds[] = {process->channel_fd, process->begin.process_fd, process->begin.memory_fd,
                       process->begin.file_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/recorded_process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <qut/sample.h>

static const char *trigger_name(uint32_t trigger)
{
    static const char *const names[] = {[QUT_TRIGGER_BEST] = "unknown",
                                        [QUT_TRIGGER_TASK_CLOCK] = "task-clock",
                                        [QUT_TRIGGER_CPU_TIMER] = "cpu-timer",
                                        [QUT_TRIGGER_WALL] = "wall",
                                        [QUT_TRIGGER_NONE] = "none"};
    return trigger < sizeof names / sizeof *names ? names[trigger] : "unknown";
}

// An agent that closed its trace tells its counts next: we may not have heard them yet.
static void wait_for_counts(struct process *process)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    int failed = 0;
    while (!process->has_added && process->end == PROCESS_RUNS && !failed)
        failed = pthread_cond_timedwait(&process->changed, &process->mutex, &until);
}

static void add_number(struct process *process, size_t *count, const char *name, uint64_t value)
{
    process->notes[(*count)++] = (struct trace_note){.name = name, .value = value};
}

static void add_text(struct process *process, size_t *count, const char *name, const char *text)
{
    process->notes[(*count)++] = (struct trace_note){.name = name, .text = text};
}

static const char *end_name(enum process_end end)
{
    static const char *const names[] = {[PROCESS_RUNS] = "closed",
                                        [PROCESS_DIED] = "ended",
                                        [PROCESS_REPLACED] = "exec",
                                        [PROCESS_LEFT] = "left running"};
    return names[end];
}

// As struct collect_options.notes.
static const struct trace_note *make_notes(void *context, size_t *count)
{
    struct process *process = context;
    pthread_mutex_lock(&process->mutex);
    wait_for_counts(process);
    const struct agent_channel_counts *added = &process->added;
    *count = 0;
    add_number(process, count, "parent-pid", process->hello.parent_pid);
    add_text(process, count, "trigger", trigger_name(process->hello.trigger));
    // One that closed its trace may have ended by now, or not.
    add_text(process, count, "recording-ended", end_name(process->is_closed ? PROCESS_RUNS : process->end));
    // A word, since numbers are summed up over processes.
    const char *signal_name = sigabbrev_np(process->hello.tick_signal);
    if (signal_name)
        add_text(process, count, "tick-signal", signal_name);
    if (process->hello.trigger_error)
        add_text(process, count, "trigger-error", strerror(-process->hello.trigger_error));
    if (process->has_added) {
        add_number(process, count, "ticks-due", added->due);
        add_number(process, count, "ticks-taken", added->taken);
        add_number(process, count, "ticks-late", added->late);
        add_number(process, count, "ticks-kernel", added->kernel);
        add_number(process, count, "ticks-lost", added->lost);
        add_number(process, count, "ticks-asked", added->asked);
        add_number(process, count, "ticks-stray", added->strays);
        add_number(process, count, "threads-without-ticks", added->threads_failed);
        add_number(process, count, "eintr-seen", added->eintr_seen);
        add_number(process, count, "locks-untold", added->locks_untold);
        if (added->python_stacks || added->python_uncertain) {
            add_number(process, count, "python-stacks", added->python_stacks);
            add_number(process, count, "python-uncertain", added->python_uncertain);
        }
    }
    pthread_mutex_unlock(&process->mutex);
    return process->notes;
}

static void note_progress(void *context, uint64_t chunk_count, uint64_t file_bytes)
{
    struct process *process = context;
    (void)chunk_count;
    // Relaxed: a number for people.
    atomic_store_explicit(&process->file_bytes, file_bytes, memory_order_relaxed);
}

// As struct collect_options.ended.
static void tell_finished(void *context, int status)
{
    struct process *process = context;
    process->status = status;
    record_counts_of(&process->view, &process->counts);
    atomic_store_explicit(&process->file_bytes, process->result.file_bytes, memory_order_relaxed);
    if (!process->is_first && close(process->file_fd) != 0 && process->status == 0)
        process->status = base_fail(&process->error, BASE_ERR_IO, "", 0, "%s", strerror(errno));
    // Release: a thread that sees it sees the results.
    atomic_store_explicit(&process->is_finished, true, memory_order_release);
    record_loop_event_set(process->finished_fd);
}

static void *run(void *context)
{
    struct process *process = context;
    const struct collect_options options = {.segment_fd = process->segment_fd,
                                            .file_fd = process->file_fd,
                                            .follow = true,
                                            .live = process->is_live,
                                            .stop_fd = process->stop_fd,
                                            .process_fd = process->end_fd,
                                            .progress = note_progress,
                                            .progress_context = process,
                                            .notes = make_notes,
                                            .notes_context = process,
                                            .ended = tell_finished,
                                            .ended_context = process,
                                            .prepares_end = process->is_first,
                                            .name_code = collect_name_made_code,
                                            .name_past_code = collect_name_past_code,
                                            .levels_of_code = collect_levels_of_made_code,
                                            .name_context = &process->made_code};
    process->made_code = (struct made_code){.pid = process->pid};
    collect(&options, &process->result, &process->error);
    collect_made_code_close(&process->made_code);
    return NULL;
}

static int start_thread(struct process *process, struct base_error *error)
{
    enum { STACK_BYTES = 1 << 20 };
    sigset_t all, before;
    pthread_attr_t attributes;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = pthread_create(&process->thread, &attributes, run, process);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failed ? base_fail(error, BASE_ERR_IO, "", 0, "pthread_create: %s", strerror(failed)) : 0;
}

int record_process_begin(struct process *process, int segment_fd, int file_fd, int finished_fd,
                         struct base_error *error)
{
    process->segment_fd = segment_fd;
    process->file_fd = file_fd;
    process->finished_fd = finished_fd;
    if (trace_segment_map(&process->view, segment_fd, false, error) != 0)
        return -1;
    process->end_fd = record_loop_event();
    process->stop_fd = record_loop_event();
    pthread_mutex_init(&process->mutex, NULL);
    pthread_cond_init(&process->changed, NULL);
    if (process->end_fd < 0 || process->stop_fd < 0)
        base_fail(error, BASE_ERR_IO, "", 0, "eventfd: %s", strerror(errno));
    else if (start_thread(process, error) == 0)
        return 0;
    trace_segment_unmap(&process->view);
    if (process->end_fd >= 0)
        close(process->end_fd);
    if (process->stop_fd >= 0)
        close(process->stop_fd);
    return -1;
}

void record_process_tell_end(struct process *process, enum process_end end)
{
    pthread_mutex_lock(&process->mutex);
    bool is_new = process->end == PROCESS_RUNS;
    if (is_new)
        process->end = end;
    pthread_cond_broadcast(&process->changed);
    pthread_mutex_unlock(&process->mutex);
    if (is_new)
        record_loop_event_set(end == PROCESS_LEFT ? process->stop_fd : process->end_fd);
}

void record_process_add(struct process *process, const struct agent_channel_counts *counts)
{
    // Before an exec that fails it has told a part of them already.
    uint64_t *sum = &process->added.due;
    const uint64_t *more = &counts->due;
    pthread_mutex_lock(&process->mutex);
    for (size_t i = 0; i < (sizeof *counts - sizeof counts->head) / sizeof *sum; i++)
        sum[i] += more[i];
    process->has_added = true;
    // All is there, while the process still goes: its collector need not wait for that.
    process->is_closed = !process->is_joined && __atomic_load_n(&trace_segment_header(&process->view)->state,
                                                                __ATOMIC_ACQUIRE) == QUT_TRACE_CLOSED;
    if (process->is_closed)
        record_loop_event_set(process->end_fd);
    pthread_cond_broadcast(&process->changed);
    pthread_mutex_unlock(&process->mutex);
}

bool record_process_counts_now(struct process *process, struct record_counts *counts)
{
    return !atomic_load_explicit(&process->is_finished, memory_order_acquire) &&
           record_counts_of(&process->view, counts);
}

static void let_go(struct process *process)
{
    trace_segment_unmap(&process->view);
    close(process->segment_fd);
    close(process->end_fd);
    close(process->stop_fd);
    pthread_cond_destroy(&process->changed);
    pthread_mutex_destroy(&process->mutex);
    process->is_joined = true;
}

void record_process_try_join(struct process *process)
{
    if (!process->is_joined && pthread_tryjoin_np(process->thread, NULL) == 0)
        let_go(process);
}

bool record_process_leave(struct process *process)
{
    static struct process *volatile left; // not lost meanwhile
    record_process_try_join(process);
    if (process->is_joined)
        return false;
    pthread_detach(process->thread);
    process->next = left;
    left = process;
    return true;
}

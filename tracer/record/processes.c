// SPDX-License-Identifier: Apache-2.0
// The processes of a recording: they begin with a hello, and end with their pidfd, an exec, or the recording.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <qut/sample.h>

#include "base/clock_inline.h"
#include "tracer/record/endpoint.h"
#include "tracer/record/inside.h"

// ---- begin and end

// The last one with that pid that was not told its end.
static struct process *find(const struct recorder *recorder, uint32_t pid)
{
    struct process *found = NULL;
    for (struct process *process = recorder->processes; process; process = process->next)
        if (process->pid == pid && process->watched.context)
            found = process;
    return found;
}

static void tell_end(struct recorder *recorder, struct process *process, enum process_end end)
{
    if (!process->watched.context)
        return;
    process->watched.context = NULL;
    record_loop_remove(&recorder->loop, &process->watched);
    record_process_tell_end(process, end);
}

// All that it had sent is there by now.
static void process_ended(struct loop_source *source)
{
    struct process *process = source->context;
    struct recorder *recorder = process->owner;
    record_server_drain(&recorder->server);
    tell_end(recorder, process, PROCESS_DIED);
}

static int open_file(struct recorder *recorder, struct process *process, struct base_error *error)
{
    process->is_first = !recorder->processes;
    process->is_live = recorder->options->live;
    return process->is_first ? recorder->output.fd
                             : record_output_part(&recorder->output, process->pid, process->part_path,
                                                  sizeof process->part_path, error);
}

static void take_name(struct process *process)
{
    const char *command = process->view.header.command;
    size_t length = strnlen(command, sizeof process->view.header.command);
    const char *end = memchr(command, ' ', length);
    if (end)
        length = (size_t)(end - command);
    const char *slash = memrchr(command, '/', length);
    if (slash) {
        length -= (size_t)(slash + 1 - command);
        command = slash + 1;
    }
    if (length >= sizeof process->command)
        length = sizeof process->command - 1;
    memcpy(process->command, command, length);
}

static int begin(struct recorder *recorder, struct process *process, int segment_fd, struct base_error *error)
{
    int file_fd = open_file(recorder, process, error);
    if (file_fd < 0)
        return -1;
    if (record_process_begin(process, segment_fd, file_fd, recorder->finished.fd, error) != 0) {
        if (!process->is_first) {
            close(file_fd);
            unlink(process->part_path);
        }
        return -1;
    }
    take_name(process);
    return 0;
}

static void note_ticks(struct recorder *recorder, const struct process *process)
{
    struct record_result *result = recorder->result;
    if (!process->hello.trigger_error)
        return;
    if (!result->processes_unticked++) {
        record_left_call(process->hello.failed_call, -process->hello.trigger_error, result->unticked,
                         sizeof result->unticked);
        recorder_say(recorder, process->command, "has no ticks: %s", result->unticked);
    }
}

// SIGSTKFLT is what an injected agent takes first; that another one may meet the program's own use of it is to be
// known.
static void note_signal(const struct recorder *recorder, const struct process *process)
{
    const int number = process->hello.tick_signal;
    if (process->hello.begin != AGENT_BEGAN_BY_INJECTION || number == 0 || number == SIGSTKFLT ||
        recorder->options->settings.signal_number)
        return;
    recorder_say(recorder, process->command, "ticks come by signal %d (%s): the program handles signal %d", number,
                 strsignal(number), SIGSTKFLT);
}

static void keep(struct recorder *recorder, struct process *process, int process_fd)
{
    if (recorder->last)
        recorder->last->next = process;
    else
        recorder->processes = process;
    recorder->last = process;
    recorder->process_count++;
    recorder->live_count++;
    process->watched = (struct loop_source){
        .fd = process_fd >= 0 ? record_dup_cloexec(process_fd) : -1, .ready = process_ended, .context = process};
    // One that cannot be waited for ends when it closes its trace, or with the recording.
    if (process->watched.fd >= 0)
        record_loop_add(&recorder->loop, &process->watched, NULL);
    note_ticks(recorder, process);
    note_signal(recorder, process);
}

// Of as many as a process takes for its events: one that is left is none.
static bool are_short_of_descriptors(int any_fd)
{
    const int first = record_dup_cloexec(any_fd), second = record_dup_cloexec(any_fd);
    if (first >= 0)
        close(first);
    if (second >= 0)
        close(second);
    return first < 0 || second < 0;
}

const char *recorder_hello(void *context, const struct agent_channel_hello *hello, struct server_peer *peer,
                           int segment_fd)
{
    struct recorder *recorder = context;
    struct base_error error = {0};
    const char *reason = segment_fd < 0         ? "there is no segment"
                         : recorder->is_stopped ? "the recording has ended"
                                                : NULL;
    struct process *process = reason ? NULL : calloc(1, sizeof *process);
    uint32_t pid = peer->pid ? peer->pid : hello->pid;
    if (!process) {
        if (segment_fd >= 0)
            close(segment_fd);
        return reason ? reason : "the recorder has no memory";
    }
    struct process *before = find(recorder, pid);
    *process = (struct process){.hello = *hello, .pid = pid, .owner = recorder, .watched = {.fd = -1}};
    if (begin(recorder, process, segment_fd, &error) == 0) {
        if (before)
            tell_end(recorder, before, PROCESS_REPLACED);
        keep(recorder, process, peer->process_fd);
        if (process->is_first && recorder->options->begun)
            recorder->options->begun(recorder->options->begun_context, &recorder->output);
        if (hello->begin == AGENT_BEGAN_BY_FORK)
            record_left_forget(&recorder->left, pid);
        return NULL;
    }
    recorder->result->is_short_of_descriptors |= are_short_of_descriptors(segment_fd);
    close(segment_fd);
    free(process);
    char text[256];
    enum { TOLD_MAX = 5 }; // the summary has their number
    if (recorder->result->processes_failed++ < TOLD_MAX)
        recorder_say(recorder, NULL, "process %u is not recorded: %s", pid, base_error_text(&error, text, sizeof text));
    return "the recorder cannot take its samples";
}

static void add_ticks(struct recorder *recorder, const struct agent_channel_counts *counts)
{
    uint64_t *sum = &recorder->result->ticks.due;
    const uint64_t *more = &counts->due;
    for (size_t i = 0; i < (sizeof *counts - sizeof counts->head) / sizeof *sum; i++)
        sum[i] += more[i];
}

// A child of fork without a sample: it has one thread, and nothing that could stand in the file.
static void add_never_begun(struct recorder *recorder, const struct agent_channel_counts *counts)
{
    recorder->result->processes_without_samples++;
    recorder->counts_of_finished.threads_seen++;
    add_ticks(recorder, counts);
}

void recorder_add(void *context, const struct agent_channel_counts *counts, const struct server_peer *peer)
{
    struct recorder *recorder = context;
    if (counts->never_begun) {
        add_never_begun(recorder, counts);
        return;
    }
    struct process *process = peer->pid ? find(recorder, peer->pid) : recorder->last;
    if (process)
        record_process_add(process, counts);
}

// Those of which no descriptor tells the end: where pidfd_open is denied.
void recorder_look_for_ends(struct recorder *recorder)
{
    for (struct process *process = recorder->processes; process; process = process->next) {
        if (!process->watched.context || process->watched.fd >= 0 || kill((pid_t)process->pid, 0) == 0 ||
            errno != ESRCH)
            continue;
        record_server_drain(&recorder->server);
        tell_end(recorder, process, PROCESS_DIED);
    }
}

void recorder_left(void *context, const struct agent_channel_left *left, const struct server_peer *peer)
{
    struct recorder *recorder = context;
    record_left_take(&recorder->left, left, peer->pid);
}

// ---- what is done

static void note_failures(struct recorder *recorder, const struct process *process)
{
    struct record_result *result = recorder->result;
    const struct base_error *error = process->status != 0 ? &process->error : &process->result.first_failure;
    result->failed_writes += process->result.failed_writes;
    if (process->status == 0 && !process->result.failed_writes && process->result.has_trailer)
        return;
    result->processes_failed++;
    if (!result->first_failure[0])
        base_error_text(error, result->first_failure, sizeof result->first_failure);
}

static void note_process(struct recorder *recorder, struct process *process)
{
    struct record_result *result = recorder->result;
    record_counts_add(&recorder->counts_of_finished, &process->counts);
    recorder->bytes_of_finished += process->result.file_bytes;
    note_failures(recorder, process);
    result->processes_left += process->end == PROCESS_LEFT;
    result->processes_untold += !process->has_added && !process->hello.trigger_error && process->end != PROCESS_LEFT;
    if (process->has_added)
        add_ticks(recorder, &process->added);
}

void recorder_reap(struct recorder *recorder)
{
    for (struct process *process = recorder->processes; process; process = process->next) {
        // Acquire: its results are seen.
        if (process->is_joined || !atomic_load_explicit(&process->is_finished, memory_order_acquire))
            continue;
        record_process_try_join(process);
        if (process->is_noted)
            continue;
        process->is_noted = true;
        recorder->live_count--;
        note_process(recorder, process);
        // One that closed its trace may live on: nothing more is expected of it.
        process->watched.context = NULL;
        record_loop_remove(&recorder->loop, &process->watched);
    }
}

pid_t *recorder_forked(const struct recorder *recorder, size_t *count)
{
    *count = 0;
    // Where ticks are taken, the thread that forked has memory of the agent's.
    if (recorder->options->settings.trigger != QUT_TRIGGER_NONE)
        return NULL;
    pid_t *pids = calloc(recorder->process_count + 1, sizeof *pids);
    for (const struct process *process = recorder->processes; pids && process; process = process->next)
        if (process->hello.begin == AGENT_BEGAN_BY_FORK && process->watched.context)
            pids[(*count)++] = (pid_t)process->pid;
    return pids;
}

void recorder_stop(struct recorder *recorder)
{
    if (recorder->is_stopped || recorder->is_stopping)
        return;
    recorder->is_stopping = true;
    recorder_calls_stop(recorder);
    recorder_look_for_ends(recorder);
    record_server_stop(&recorder->server);
    if (recorder->server.directory[0])
        record_left_read_notes(recorder->server.directory, recorder->server.token, &recorder->left);
    recorder->is_stopped = true;
    for (struct process *process = recorder->processes; process; process = process->next)
        tell_end(recorder, process, PROCESS_LEFT);
    // A disk's file system takes milliseconds for that: while samples are collected. What has the agent in it goes
    // last.
    if (recorder->server.directory[0] && !recorder->link[0])
        record_endpoint_remove(recorder->server.directory);
}

// ---- the end

// What a process was between fork and exec, without any sample: says nothing that its parent and its successor do not.
static bool is_worth_a_part(const struct process *process)
{
    return process->status == 0 && (process->counts.hits || process->end != PROCESS_REPLACED);
}

static void put_together(struct recorder *recorder)
{
    struct record_result *result = recorder->result;
    uint64_t done = 0;
    result->processes += result->processes_without_samples;
    for (struct process *process = recorder->processes; process; process = process->next, done++) {
        struct base_error error = {0};
        bool is_worth = is_worth_a_part(process);
        // The same process: what it became by exec is counted.
        result->processes += is_worth && process->end != PROCESS_REPLACED;
        if (process->is_first)
            continue;
        if (!is_worth) {
            unlink(process->part_path);
            continue;
        }
        recorder_show(recorder, done, recorder->process_count);
        if (record_output_append(&recorder->output, process->part_path, &error) == 0)
            continue;
        result->processes_failed++;
        if (!result->first_failure[0])
            base_error_text(&error, result->first_failure, sizeof result->first_failure);
    }
}

static void add_notes(struct recorder *recorder)
{
    const struct record_result *result = recorder->result;
    struct trace_note notes[9 + AGENT_LEFT_COUNT] = {
        {.name = "processes-left-running", .value = result->processes_left},
        {.name = "processes-not-recorded", .value = result->processes_failed},
        {.name = "processes-without-ticks", .value = result->processes_unticked},
        {.name = "processes-with-unknown-ticks", .value = result->processes_untold},
        {.name = "packets-refused", .value = recorder->server.refused},
        {.name = "recorder-cpu-ns", .value = result->own_cpu_ns},
        {.name = "processes-not-followed", .value = record_left_sum(&result->left)},
        {.name = "processes-without-samples", .value = result->processes_without_samples},
    };
    size_t count = 8;
    for (unsigned why = 0; why < AGENT_LEFT_COUNT; why++)
        if (result->left.of[why])
            notes[count++] = (struct trace_note){.name = record_left_name(why), .value = result->left.of[why]};
    if (recorder->link[0]) // it goes when the recording ends: names are read from what it stands for
        notes[count++] = (struct trace_note){.name = "agent-path", .text = recorder->options->agent_path};
    struct base_error error = {0};
    if (collect_append_notes(recorder->output.fd, notes, count, &error) != 0 && !recorder->result->first_failure[0])
        base_error_text(&error, recorder->result->first_failure, sizeof recorder->result->first_failure);
}

void recorder_finish(struct recorder *recorder)
{
    recorder_stop(recorder);
    record_tables_stop(&recorder->tables);
    // The collectors have been told; each ends within a look or two.
    while (recorder->live_count) {
        record_loop_wait(&recorder->loop, 200);
        recorder_reap(recorder);
    }
    struct record_result *result = recorder->result;
    result->counts = recorder->counts_of_finished;
    result->left = recorder->left.counts;
    result->left_call = recorder->left.failed_call;
    result->left_error = recorder->left.failed_error;
    put_together(recorder);
    recorder_calls_append(recorder);
    result->own_cpu_ns = base_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (recorder->processes)
        add_notes(recorder);
    struct stat status;
    if (recorder->output.fd >= 0 && fstat(recorder->output.fd, &status) == 0)
        result->file_bytes = (uint64_t)status.st_size;
    for (struct process *process = recorder->processes, *next; process; process = next) {
        next = process->next;
        if (!record_process_leave(process))
            free(process);
    }
    recorder->processes = recorder->last = NULL;
}

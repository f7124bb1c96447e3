// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/traced_calls.h"

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/qut_calls.h"
#include "tracer/record/endpoint.h"
#include "tracer/record/inside.h"
#include "tracer/traced/probe.h"

static void note_failure(struct recorder *recorder, const char *text)
{
    struct traced_result *calls = &recorder->result->calls;
    if (!calls->processes_failed++)
        snprintf(calls->first_failure, sizeof calls->first_failure, "%s", text);
}

static void refuse(struct recorder *recorder, int memory_fd, int client_fd, const char *why)
{
    note_failure(recorder, why);
    record_server_answer(client_fd, why, -1);
    if (memory_fd >= 0)
        close(memory_fd);
    close(client_fd);
}

// A process that said so itself, or one that another program has become.
static void end_before(struct recorder *recorder, pid_t pid)
{
    for (struct traced_call_part *part = recorder->traced; part; part = part->next)
        if (part->process && !part->is_joined && part->pid == pid)
            traced_replaced(part->process);
}

// The process that a child was forked from, as its memory says; 0: it is not traced.
static uint32_t read_parent_pid(int memory_fd)
{
    uint32_t pid = 0;
    const ssize_t size = pread(memory_fd, &pid, sizeof pid, offsetof(struct qut_calls_header, parent_pid));
    return size == (ssize_t)sizeof pid ? pid : 0;
}

static struct traced_process *find_parent(const struct recorder *recorder, uint32_t pid)
{
    for (const struct traced_call_part *part = pid ? recorder->traced : NULL; part; part = part->next)
        if (part->process && part->inside_pid == pid)
            return part->process;
    return NULL;
}

static void begin(struct recorder *recorder, struct traced_call_part *part)
{
    struct base_error error = {0};
    char why[160];
    part->waits = false;
    part->process = traced_begin(&part->begin, &error);
    if (part->process)
        recorder->traced_count++;
    else
        note_failure(recorder, base_error_text(&error, why, sizeof why));
}

void recorder_calls(void *context, const struct agent_channel_calls *calls, struct server_peer *peer, int memory_fd,
                    int client_fd)
{
    struct recorder *recorder = context;
    const struct record_options *options = recorder->options;
    struct base_error error = {0};
    char why[160];
    if (calls->error) {
        record_left_call(calls->failed_call, -calls->error, why, sizeof why);
        refuse(recorder, memory_fd, client_fd, why);
        return;
    }
    const bool is_forked = calls->begin == AGENT_BEGAN_BY_FORK;
    const uint32_t parent_pid = is_forked && memory_fd >= 0 ? read_parent_pid(memory_fd) : 0;
    struct traced_process *parent = find_parent(recorder, parent_pid);
    const bool is_over = recorder->is_stopped || (!is_forked && (recorder->is_left || recorder->is_stopping_calls));
    if (options->calls && !is_over && parent_pid && !parent)
        note_failure(recorder, "a child of fork came when nothing was known of its parent's code any more");
    if (!options->calls || is_over || (is_forked && !parent) || memory_fd < 0 || !peer->pid) {
        record_server_answer(client_fd, "no calls are traced here", -1);
        if (memory_fd >= 0)
            close(memory_fd);
        close(client_fd);
        return;
    }
    struct traced_call_part *part = calloc(1, sizeof *part);
    int file_fd = -1;
    if (!part)
        base_fail(&error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    else
        file_fd = record_output_part(&recorder->output, peer->pid, part->path, sizeof part->path, &error);
    if (file_fd < 0) {
        free(part);
        refuse(recorder, memory_fd, client_fd, base_error_text(&error, why, sizeof why));
        return;
    }
    end_before(recorder, (pid_t)peer->pid);
    part->pid = (pid_t)peer->pid;
    part->inside_pid = calls->pid;
    part->begin = (struct traced_begin){.pid = part->pid,
                                        .process_fd = peer->process_fd >= 0 ? record_dup_cloexec(peer->process_fd) : -1,
                                        .channel_fd = client_fd,
                                        .memory_fd = memory_fd,
                                        .file_fd = file_fd,
                                        .finished_fd = recorder->finished.fd,
                                        .is_attached = calls->begin == AGENT_BEGAN_BY_INJECTION,
                                        .parent = parent,
                                        .cache_directory = options->settings.cache[0] ? options->settings.cache : NULL,
                                        .token = recorder->server.token,
                                        .options = options->calls};
    part->waits = !is_forked && atomic_load_explicit(&recorder->injector.state, memory_order_acquire) == INJECTOR_LOADS;
    part->next = recorder->traced;
    recorder->traced = part;
    if (!part->waits)
        begin(recorder, part);
    if (part->process && recorder->is_stopping_calls)
        traced_stop(part->process);
}

void recorder_calls_begin(struct recorder *recorder)
{
    for (struct traced_call_part *part = recorder->traced; part; part = part->next)
        if (part->waits)
            begin(recorder, part);
}

static void release(struct traced_call_part *part)
{
    if (part->process)
        traced_release(part->process);
    part->process = NULL;
}

// ---- children of fork

// That is not traced itself. One that has ended may have left its number to another one.
static bool is_stranger(const struct recorder *recorder, pid_t pid, bool ended_count)
{
    for (const struct traced_call_part *part = recorder->traced; part; part = part->next)
        if (part->pid == pid && (ended_count || !part->is_joined))
            return false;
    return true;
}

static pid_t next_process(DIR *all)
{
    const struct dirent *entry;
    pid_t pid = 0;
    while (pid <= 0 && (entry = readdir(all)))
        pid = (pid_t)strtol(entry->d_name, NULL, 10);
    return pid;
}

// Of those that have ended, but for the newest: what is known of their code is kept as long as a process has it that
// has told nothing of itself. Its code is to be put back, and it may have children that tell.
static void let_go_of_childless(struct recorder *recorder, unsigned newest)
{
    DIR *all = opendir("/proc");
    if (!all)
        return;
    for (struct traced_call_part *part = recorder->traced; part; part = part->next)
        part->has_copies = !part->process || !part->is_joined || (newest && newest--);
    for (pid_t pid; (pid = next_process(all)) > 0;) {
        if (!is_stranger(recorder, pid, false))
            continue;
        for (struct traced_call_part *part = recorder->traced; part; part = part->next)
            part->has_copies = part->has_copies || traced_is_copy(part->process, pid);
    }
    closedir(all);
    for (struct traced_call_part *part = recorder->traced; part; part = part->next)
        if (!part->has_copies)
            release(part);
}

// A child of fork tells of itself at once; its parent may have ended by then, not long ago.
void recorder_calls_reap(struct recorder *recorder)
{
    enum { KEPT_LEAST = 32 };
    unsigned kept = 0;
    for (struct traced_call_part *part = recorder->traced; part; part = part->next) {
        if (part->process && !part->is_joined && traced_is_finished(part->process)) {
            traced_join(part->process, &recorder->result->calls);
            part->is_joined = true;
            recorder->traced_count--;
        }
        kept += part->process && part->is_joined;
    }
    if (kept < recorder->kept_most || kept < 2 * KEPT_LEAST)
        return;
    let_go_of_childless(recorder, KEPT_LEAST);
    kept = 0;
    for (const struct traced_call_part *part = recorder->traced; part; part = part->next)
        kept += part->process && part->is_joined;
    recorder->kept_most = kept + KEPT_LEAST; // looking at all processes is not for each that ends
}

// ---- the end

// Children of fork that have told nothing; `result`: what they have of ours is put back. How many.
static unsigned look_for_strangers(struct recorder *recorder, struct traced_result *result)
{
    DIR *all = opendir("/proc");
    unsigned found = 0;
    for (pid_t pid; all && (pid = next_process(all)) > 0;) {
        const struct traced_call_part *part = is_stranger(recorder, pid, true) ? recorder->traced : NULL;
        while (part && !(part->process && part->is_joined && traced_is_copy(part->process, pid)))
            part = part->next;
        found += part != NULL;
        if (part && result)
            traced_sweep(part->process, pid, result);
    }
    if (all)
        closedir(all);
    return found;
}

static void wait_for_all(struct recorder *recorder)
{
    enum { LOOK_EVERY_MS = 50 };
    for (recorder_calls_reap(recorder); recorder->traced_count; recorder_calls_reap(recorder))
        record_loop_wait(&recorder->loop, LOOK_EVERY_MS);
}

void recorder_calls_stop(struct recorder *recorder)
{
    enum { ROUNDS = 10, ROUND_MS = 20 };
    if (recorder->is_stopping_calls || !recorder->traced)
        return;
    recorder->is_stopping_calls = true;
    for (struct traced_call_part *part = recorder->traced; part; part = part->next)
        if (part->process && !part->is_joined)
            traced_stop(part->process);
    wait_for_all(recorder);
    // Those that were forked at the last moment are about to tell of themselves.
    for (unsigned i = 0; i < ROUNDS && recorder->options->settings.follow && look_for_strangers(recorder, NULL); i++) {
        record_loop_wait(&recorder->loop, ROUND_MS);
        wait_for_all(recorder);
    }
    look_for_strangers(recorder, &recorder->result->calls);
}

void recorder_calls_append(struct recorder *recorder)
{
    struct traced_call_part *part = recorder->traced, *reversed = NULL;
    for (struct traced_call_part *next; part; part = next) { // in the order in which they came
        next = part->next;
        part->next = reversed;
        reversed = part;
    }
    for (struct traced_call_part *next; reversed; reversed = next) {
        struct base_error error = {0};
        next = reversed->next;
        char text[256];
        const struct traced_probe *probe = recorder->options->calls->probe;
        if (probe && !probe->tells_calls) // programs run there, and no call is told
            unlink(reversed->path);
        else if (record_output_append(&recorder->output, reversed->path, &error) != 0)
            note_failure(recorder, base_error_text(&error, text, sizeof text));
        release(reversed);
        free(reversed);
    }
    recorder->traced = NULL;
}

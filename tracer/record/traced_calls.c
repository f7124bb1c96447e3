// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/traced_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/record/endpoint.h"
#include "tracer/record/inside.h"

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
        if (part->process && part->pid == pid)
            traced_replaced(part->process);
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
    // A child goes on with what its parent's code has, and makes no events.
    if (!options->calls || recorder->is_stopped || recorder->is_left || calls->begin == AGENT_BEGAN_BY_FORK ||
        memory_fd < 0 || !peer->pid) {
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
    part->begin = (struct traced_begin){.pid = part->pid,
                                        .process_fd = peer->process_fd >= 0 ? record_dup_cloexec(peer->process_fd) : -1,
                                        .channel_fd = client_fd,
                                        .memory_fd = memory_fd,
                                        .file_fd = file_fd,
                                        .finished_fd = recorder->finished.fd,
                                        .is_attached = calls->begin == AGENT_BEGAN_BY_INJECTION,
                                        .cache_directory = options->settings.cache[0] ? options->settings.cache : NULL,
                                        .token = recorder->server.token,
                                        .options = options->calls};
    part->waits = atomic_load_explicit(&recorder->injector.state, memory_order_acquire) == INJECTOR_LOADS;
    part->next = recorder->traced;
    recorder->traced = part;
    if (!part->waits)
        begin(recorder, part);
}

void recorder_calls_begin(struct recorder *recorder)
{
    for (struct traced_call_part *part = recorder->traced; part; part = part->next)
        if (part->waits)
            begin(recorder, part);
}

void recorder_calls_reap(struct recorder *recorder)
{
    for (struct traced_call_part *part = recorder->traced; part; part = part->next) {
        if (!part->process || !traced_is_finished(part->process))
            continue;
        traced_join(part->process, &recorder->result->calls);
        part->process = NULL;
        recorder->traced_count--;
    }
}

void recorder_calls_stop(struct recorder *recorder)
{
    enum { LOOK_EVERY_MS = 50 };
    for (struct traced_call_part *part = recorder->traced; part; part = part->next)
        if (part->process)
            traced_stop(part->process);
    for (recorder_calls_reap(recorder); recorder->traced_count; recorder_calls_reap(recorder))
        record_loop_wait(&recorder->loop, LOOK_EVERY_MS);
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
        if (record_output_append(&recorder->output, reversed->path, &error) != 0)
            note_failure(recorder, base_error_text(&error, text, sizeof text));
        free(reversed);
    }
    recorder->traced = NULL;
}

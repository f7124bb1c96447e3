// SPDX-License-Identifier: Apache-2.0
// Calls that were running when tracing began: they have no events, and their exits will have some. So they get an
// entry, at the time at which tracing began, before all else that their thread writes.
#include <stdlib.h>
#include <string.h>

#include "qutc/include/qutc/provide.h"
#include "tracer/traced/clock.h"
#include "tracer/traced/inside.h"

static int map_missing(struct traced_process *process, const struct patch_running *running)
{
    for (size_t i = 0; i < running->missing_count; i++) {
        struct base_error error = {0};
        if (traced_channel_shadow(process, running->missing[i].begin, running->missing[i].end, &error) != 0)
            return -1;
    }
    return 0;
}

static int add_calls(struct traced_process *process, const struct patch_running *running, struct base_error *error)
{
    if (!BASE_RESERVE(&process->running, running->count))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    for (size_t i = 0; i < running->count; i++)
        *BASE_ADD(&process->running) = (struct traced_running){
            .tid = (uint32_t)running->calls[i].tid,
            .event = {.time_ticks = process->begin_ticks,
                      .word = qut_calls_word(running->calls[i].slot, false, running->calls[i].id)}};
    process->result.running += running->count;
    return 0;
}

void traced_running_take(struct traced_process *process)
{
    enum { TRIES = 3 };
    struct qutc_provide_options provide = {
        .size = sizeof provide, .cache_directory = process->begin.cache_directory, .debug_root = "/usr/lib/debug"};
    struct base_error error = {0};
    if (patch_allow_walks(process->patch, process->begin.cache_directory, qutc_compile_for_qut, &provide, &error) != 0)
        return;
    process->begin_ticks = traced_ticks();
    for (unsigned i = 0, again = 1; i < TRIES && again; i++) {
        struct patch_figures figures = {.put_in = 0};
        struct patch_running running = {.count = 0};
        const int status = patch_take_running(process->patch, &running, &figures, &error);
        traced_note_stop(process, &figures);
        if (add_calls(process, &running, &error) != 0)
            process->error = error;
        again = status == 0 && running.missing_count && map_missing(process, &running) == 0;
        patch_free_running(&running);
    }
}

int traced_running_write(struct traced_process *process, uint32_t tid, uint32_t thread, struct traced_scope *scope,
                         struct base_error *error)
{
    for (size_t i = 0; i < process->running.count; i++) {
        struct traced_running *running = &process->running.items[i];
        if (running->tid != tid)
            continue;
        running->tid = 0;
        const ptrdiff_t kept = traced_keep(process, scope, &running->event, 1, error);
        if (kept < 0)
            return -1;
        if (kept == 0)
            continue;
        process->result.enters++;
        if (collect_calls_events(process->writer, thread, &running->event, 1, error) != 0)
            return -1;
    }
    return 0;
}

uint32_t traced_running_next(const struct traced_process *process)
{
    for (size_t i = 0; i < process->running.count; i++)
        if (process->running.items[i].tid)
            return process->running.items[i].tid;
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "tracer/take.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/os/os.h"
#include "tracer/interrupt.h"

static void take_thread(struct qut_target *target, size_t index, struct qut_frame *frames, size_t limit,
                        struct stack_thread *thread)
{
    qut_target_thread(target, index, &thread->info);
    thread->count = qut_target_walk(target, index, frames, limit, &thread->end);
    thread->frames = malloc((thread->count + 1) * sizeof *frames);
    if (thread->frames)
        memcpy(thread->frames, frames, thread->count * sizeof *frames);
    else
        thread->count = 0;
}

static void take_all(struct qut_target *target, const struct stack_options *options, struct qut_frame *frames,
                     struct stack_take *take)
{
    size_t count = qut_target_thread_count(target);
    take->threads = calloc(count + 1, sizeof *take->threads);
    if (!take->threads)
        return;
    struct qut_thread_info info;
    // Who is not asked for goes on first.
    for (size_t i = 0; options->tid && i < count; i++) {
        qut_target_thread(target, i, &info);
        if (info.tid != options->tid)
            qut_target_resume_thread(target, i);
    }
    for (size_t i = 0; i < count && !interrupt_came(); i++) {
        qut_target_thread(target, i, &info);
        if (options->tid && info.tid != options->tid)
            continue;
        take_thread(target, i, frames, options->limit, &take->threads[take->count++]);
        qut_target_resume_thread(target, i);
    }
}

int stack_take(struct qut_target *target, const struct stack_options *options, struct stack_take *take,
               struct qut_target_error *error)
{
    *take = (struct stack_take){0};
    struct qut_frame *frames = malloc(options->limit * sizeof *frames);
    if (!frames) {
        snprintf(error->text, sizeof error->text, "no memory for %zu frames", options->limit);
        return -1;
    }
    // Touched now, so that no page of it is made while threads wait.
    memset(frames, 0, options->limit * sizeof *frames);
    bool stops = options->pid && !options->no_stop;
    int result = stops ? qut_target_stop(target, error) : 0;
    if (result == 0) {
        take_all(target, options, frames, take);
        if (stops)
            qut_target_resume(target);
        take->stopped_ns = stops ? qut_os_now_ns() - qut_target_stop_began_ns(target) : 0;
    }
    free(frames);
    return result;
}

void stack_take_free(struct stack_take *take)
{
    for (size_t i = 0; i < take->count; i++)
        free(take->threads[i].frames);
    free(take->threads);
    *take = (struct stack_take){0};
}

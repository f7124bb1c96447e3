// SPDX-License-Identifier: Apache-2.0
#include "tracer/stack/take_stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/interrupt.h"

// False: no memory.
static bool walk_thread(struct qut_target *target, size_t index, struct qut_frame *frames, size_t limit,
                        struct stack_thread *thread)
{
    size_t count = qut_target_walk(target, index, frames, limit, &thread->end);
    thread->frames = malloc((count + 1) * sizeof *frames);
    if (!thread->frames)
        return false;
    memcpy(thread->frames, frames, count * sizeof *frames);
    thread->count = count;
    thread->is_walked = true;
    return true;
}

// Threads are in the order of their ids. Nothing is asked of them but that: the process waits.
static size_t find_thread(const struct qut_target *target, size_t count, pid_t tid)
{
    size_t i = 0;
    while (i < count && qut_target_tid(target, i, NULL) != tid)
        i++;
    return i;
}

static bool take_all(struct qut_target *target, const struct stack_options *options, struct qut_frame *frames,
                     struct stack_take *take)
{
    size_t first = 0, count = qut_target_thread_count(target), end = count;
    take->threads = calloc(count + 1, sizeof *take->threads);
    if (!take->threads)
        return false;
    take->count = count;
    if (options->tid) {
        first = find_thread(target, count, options->tid);
        end = first < count ? first + 1 : count;
    }
    // A thread that is not asked for goes on first.
    for (size_t i = 0; options->tid && i < count; i++)
        if (i != first)
            qut_target_resume_thread(target, i);
    // Those that were left asleep keep nothing waiting, and can take long.
    for (int asleep = 0; asleep < 2; asleep++)
        for (size_t i = first; i < end && !cli_interrupt_came(); i++) {
            const char *asleep_in;
            qut_target_tid(target, i, &asleep_in);
            if ((asleep_in != NULL) != asleep || take->threads[i].is_walked)
                continue;
            if (!walk_thread(target, i, frames, options->limit, &take->threads[i]))
                return false;
            qut_target_resume_thread(target, i);
        }
    return true;
}

// Names are asked for once no thread waits. What was not walked is dropped.
static void name_all(struct qut_target *target, struct stack_take *take)
{
    size_t count = take->count;
    take->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!take->threads[i].is_walked)
            continue;
        take->threads[take->count] = take->threads[i];
        qut_target_thread(target, i, &take->threads[take->count++].info);
    }
}

static int no_memory(const struct stack_options *options, struct qut_target_error *error)
{
    snprintf(error->text, sizeof error->text, "stack: no memory for stacks of %zu frames", options->limit);
    return -1;
}

int stack_take(struct qut_target *target, const struct stack_options *options, struct stack_take *take,
               struct qut_target_error *error)
{
    *take = (struct stack_take){0};
    struct qut_frame *frames = malloc(options->limit * sizeof *frames);
    if (!frames)
        return no_memory(options, error);
    // Touched now, so that no page of it is made while threads wait.
    memset(frames, 0, options->limit * sizeof *frames);
    bool stops = options->pid && !options->no_stop;
    int result = stops ? qut_target_stop(target, error) : 0;
    if (result == 0) {
        // Half of the threads would look like all of them.
        if (!take_all(target, options, frames, take))
            result = no_memory(options, error);
        if (stops)
            qut_target_resume(target);
        take->stopped_ns = stops ? qut_target_stopped_ns(target) : 0;
        name_all(target, take);
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

// SPDX-License-Identifier: Apache-2.0
#include "tracer/stack/take_stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/interrupt.h"

// Room for what is the same for each thread.
struct room {
    struct qut_frame *frames;
    struct target_python_stack *python; // NULL: there is no CPython
    struct script_stack *v8;            // NULL: there is no V8
};

// False: no memory.
static bool walk_thread(struct qut_target *target, size_t index, const struct room *room, size_t limit,
                        struct stack_thread *thread)
{
    struct qut_frame *frames = room->frames;
    size_t count = qut_target_walk(target, index, frames, limit, &thread->end);
    if (count > 0 && room->python) {
        target_python_take_thread(target, index, room->python);
        thread->python = target_python_stack_copy(room->python);
        if (!thread->python)
            return false;
    }
    if (count > 0 && room->v8) {
        script_take_thread(target, index, frames, count, room->v8);
        thread->v8 = script_stack_copy(room->v8);
        if (!thread->v8)
            return false;
    }
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

static bool take_all(struct qut_target *target, const struct stack_options *options, const struct room *room,
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
            if (!walk_thread(target, i, room, options->limit, &take->threads[i]))
                return false;
            qut_target_resume_thread(target, i);
        }
    return true;
}

// Puts the functions of CPython where they belong. False: no memory.
static bool merge_python(struct qut_target *target, size_t limit, struct stack_thread *thread)
{
    size_t most = thread->count + thread->python->taken.frame_count;
    most = most < limit ? most : limit;
    struct qut_frame *frames = realloc(thread->frames, (most + 1) * sizeof *frames);
    if (!frames)
        return false;
    thread->frames = frames;
    target_python_name(target, thread->python);
    thread->count = target_python_merge(target, thread->python, frames, thread->count, most, &thread->end);
    thread->python_reason = thread->python->reason;
    target_python_stack_free(thread->python);
    thread->python = NULL;
    return true;
}

// ... of JavaScript.
static bool merge_v8(struct qut_target *target, size_t limit, struct stack_thread *thread)
{
    size_t most = thread->count + thread->v8->count;
    most = most < limit ? most : limit;
    struct qut_frame *frames = realloc(thread->frames, (most + 1) * sizeof *frames);
    if (!frames)
        return false;
    thread->frames = frames;
    script_name(target, thread->v8);
    thread->count = script_merge(target, thread->v8, frames, thread->count, most, &thread->end);
    script_stack_free(thread->v8);
    thread->v8 = NULL;
    return true;
}

// Names are asked for once no thread waits. What was not walked is dropped.
static bool name_all(struct qut_target *target, size_t limit, struct stack_take *take)
{
    size_t count = take->count;
    bool done = true;
    take->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!take->threads[i].is_walked)
            continue;
        take->threads[take->count] = take->threads[i];
        struct stack_thread *thread = &take->threads[take->count++];
        qut_target_thread(target, i, &thread->info);
        done = (!thread->v8 || merge_v8(target, limit, thread)) && done;
        done = (!thread->python || merge_python(target, limit, thread)) && done;
    }
    return done;
}

// Once before the process is stopped, since files are read for it; and once when it is.
static bool look_for_machines(struct qut_target *target, struct room *room)
{
    if (script_look(target) && !room->v8) {
        room->v8 = script_stack_new();
        if (!room->v8)
            return false;
    }
    if (!target_python_look(target) || room->python)
        return true;
    room->python = target_python_stack_new();
    return room->python != NULL;
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
    struct room room = {.frames = malloc(options->limit * sizeof *room.frames)};
    if (!room.frames || !look_for_machines(target, &room)) {
        script_stack_free(room.v8);
        free(room.frames);
        return no_memory(options, error);
    }
    // Touched now, so that no page of it is made while threads wait.
    memset(room.frames, 0, options->limit * sizeof *room.frames);
    bool stops = options->pid && !options->no_stop;
    int result = stops ? qut_target_stop(target, error) : 0;
    if (result == 0) {
        // Half of the threads would look like all of them.
        if (!look_for_machines(target, &room) || !take_all(target, options, &room, take))
            result = no_memory(options, error);
        if (stops)
            qut_target_resume(target);
        take->stopped_ns = stops ? qut_target_stopped_ns(target) : 0;
        if (!name_all(target, options->limit, take))
            result = no_memory(options, error);
    }
    script_stack_free(room.v8);
    target_python_stack_free(room.python);
    free(room.frames);
    return result;
}

void stack_take_free(struct stack_take *take)
{
    for (size_t i = 0; i < take->count; i++) {
        free(take->threads[i].frames);
        target_python_stack_free(take->threads[i].python);
        script_stack_free(take->threads[i].v8);
    }
    free(take->threads);
    *take = (struct stack_take){0};
}

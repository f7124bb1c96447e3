// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tracer/analysis/selection.h"

static const char *const names[SELECTION_KIND_COUNT + 1] = {"cpu", "wall", "alloc", "lock", "io", "other", "all"};

const char *analysis_kind_name(enum selection_kind kind)
{
    return names[kind];
}

bool analysis_kind_named(const char *name, enum selection_kind *kind)
{
    for (unsigned i = 0; i < SELECTION_KIND_COUNT; i++)
        if (strcmp(names[i], name) == 0) {
            *kind = (enum selection_kind)i;
            return true;
        }
    return false;
}

enum selection_kind analysis_kind_of(unsigned kind)
{
    switch (kind) {
    case QUT_TRACE_KIND_CPU: return SELECTION_CPU;
    case QUT_TRACE_KIND_WALL: return SELECTION_WALL;
    case QUT_TRACE_KIND_ALLOCATE:
    case QUT_TRACE_KIND_FREE: return SELECTION_ALLOC;
    case QUT_TRACE_KIND_LOCK:
    case QUT_TRACE_KIND_UNLOCK:
    case QUT_TRACE_KIND_WAIT:
    case QUT_TRACE_KIND_WAKE: return SELECTION_LOCK;
    case QUT_TRACE_KIND_READ:
    case QUT_TRACE_KIND_WRITE:
    case QUT_TRACE_KIND_POLL:
    case QUT_TRACE_KIND_SLEEP:
    case QUT_TRACE_KIND_CALL: return SELECTION_IO;
    default: return SELECTION_OTHER;
    }
}

static void count_kinds(const struct trace *trace, uint64_t counts[SELECTION_KIND_COUNT])
{
    for (size_t i = 0; i < trace->sample_count; i++)
        counts[analysis_kind_of(trace->samples[i].kind)] += trace->samples[i].count;
}

enum selection_kind analysis_main_kind(const struct trace *trace)
{
    uint64_t counts[SELECTION_KIND_COUNT] = {0};
    enum selection_kind most = SELECTION_CPU;
    count_kinds(trace, counts);
    if (counts[SELECTION_CPU] || counts[SELECTION_WALL])
        return counts[SELECTION_CPU] ? SELECTION_CPU : SELECTION_WALL;
    for (unsigned i = 0; i < SELECTION_KIND_COUNT; i++)
        if (counts[i] > counts[most])
            most = (enum selection_kind)i;
    return most;
}

void analysis_selection_say(const struct trace *trace, void (*say)(void *context, const char *text), void *context)
{
    enum { SHOWN = 20 };
    uint64_t counts[SELECTION_KIND_COUNT] = {0};
    char text[256] = "kinds:";
    count_kinds(trace, counts);
    for (unsigned i = 0; i < SELECTION_KIND_COUNT; i++)
        if (counts[i])
            snprintf(text + strlen(text), sizeof text - strlen(text), " %s (%" PRIu64 " samples)", names[i], counts[i]);
    say(context, trace->sample_count ? text : "kinds: none, it has no samples");
    for (size_t i = 0; i < trace->process_count && i < SHOWN; i++) {
        snprintf(text, sizeof text, "pid %" PRIu32 ": %.200s", trace->processes[i].pid, trace->processes[i].command);
        say(context, text);
    }
    for (size_t i = 0; i < trace->thread_count && i < SHOWN; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        snprintf(text, sizeof text, "thread %" PRIu32 " of pid %" PRIu32 ": %.*s, %zu records", thread->tid,
                 trace_pid_of(trace, thread), (int)sizeof thread->name, thread->name, thread->sample_count);
        say(context, text);
    }
    if (trace->process_count > SHOWN || trace->thread_count > SHOWN) {
        snprintf(text, sizeof text, "%zu processes and %zu threads in all", trace->process_count, trace->thread_count);
        say(context, text);
    }
}

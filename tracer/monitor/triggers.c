// SPDX-License-Identifier: Apache-2.0
// Marks, as they come: whether one is there after which rings are wanted. Between windows, so often that what a ring
// keeps is still of the time before; a segment is read only if its counters say that there are new ones, and then what
// is new of it.
#include <string.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "formats/qut_trace_record.h"
#include "tracer/monitor/inside.h"

struct looker {
    struct monitor_window window; // of none, for what says
    struct monitor *monitor;
    struct monitor_triggered *triggered;
    uint64_t now_ns;
};

static void free_marked(struct monitor_marked *marked)
{
    newer_seen_free(&marked->seen);
    base_vector_free(&marked->threads.vector);
    base_vector_free(&marked->works.vector);
}

void monitor_marks_free(struct monitor *monitor)
{
    for (size_t i = 0; i < monitor->marked.count; i++)
        free_marked(&monitor->marked.items[i]);
    base_vector_free(&monitor->marked.vector);
}

static struct monitor_marked *marked_of(struct monitor *monitor, const uint8_t identity[16])
{
    for (size_t i = 0; i < monitor->marked.count; i++)
        if (memcmp(monitor->marked.items[i].identity, identity, sizeof monitor->marked.items[i].identity) == 0)
            return &monitor->marked.items[i];
    struct monitor_marked *marked = BASE_ADD(&monitor->marked);
    if (!marked)
        return NULL;
    *marked = (struct monitor_marked){.marks = 0};
    memcpy(marked->identity, identity, sizeof marked->identity);
    return marked;
}

static void pull(struct looker *looker, size_t trigger, uint32_t pid, uint64_t took_ns)
{
    if (looker->triggered->count++ == 0) {
        looker->triggered->trigger = trigger;
        looker->triggered->pid = pid;
        looker->triggered->took_ns = took_ns;
    }
}

// ---- one thread

// False: no memory.
static bool begin_work(struct monitor_marked *marked, uint32_t uid, const struct trace_mark *mark, size_t trigger)
{
    struct monitor_open_work *work = BASE_ADD(&marked->works);
    if (work)
        *work = (struct monitor_open_work){
            .uid = uid, .id = mark->id, .begin_ns = mark->time_ns, .trigger = trigger, .is_told = false};
    return work;
}

// Of the thread's works with that id the last that began, and what of other triggers began with it.
static void end_work(struct looker *looker, struct monitor_marked *marked, uint32_t uid, uint32_t pid,
                     const struct trace_mark *mark)
{
    uint64_t begin_ns = 0;
    for (size_t i = marked->works.count; i-- > 0;) {
        struct monitor_open_work *work = &marked->works.items[i];
        if (work->uid != uid || work->id != mark->id || (begin_ns && work->begin_ns != begin_ns))
            continue;
        begin_ns = work->begin_ns;
        const uint64_t took_ns = mark->time_ns - work->begin_ns;
        if (!work->is_told && took_ns >= looker->monitor->options.triggers[work->trigger].slow_ns)
            pull(looker, work->trigger, pid, took_ns);
        memmove(work, work + 1, (--marked->works.count - i) * sizeof *work);
    }
}

static bool take_mark(struct looker *looker, struct monitor_marked *marked, uint32_t uid, uint32_t pid,
                      const struct trace_mark *mark)
{
    const struct monitor_options *options = &looker->monitor->options;
    bool is_good = true;
    if (mark->kind == QUT_TRACE_MARK_END)
        end_work(looker, marked, uid, pid, mark);
    for (size_t i = 0; i < options->trigger_count && is_good; i++) {
        const struct monitor_trigger *trigger = &options->triggers[i];
        const bool begins = mark->kind == QUT_TRACE_MARK_BEGIN;
        if (strcmp(trigger->name, mark->name) != 0)
            continue;
        if (trigger->slow_ns && begins)
            is_good = begin_work(marked, uid, mark, i);
        else if (!trigger->slow_ns && (begins || mark->kind == QUT_TRACE_MARK_INSTANT))
            pull(looker, i, pid, 0);
    }
    return is_good;
}

// A thread makes its marks in the order of their times.
static bool take_thread(struct looker *looker, struct monitor_marked *marked, const struct trace *trace,
                        const struct trace_thread *thread)
{
    struct monitor_marked_thread *known = NULL;
    for (size_t i = 0; i < marked->threads.count && !known; i++)
        if (marked->threads.items[i].uid == thread->uid)
            known = &marked->threads.items[i];
    if (!known && thread->mark_count) {
        known = BASE_ADD(&marked->threads);
        if (!known)
            return false;
        *known = (struct monitor_marked_thread){.uid = thread->uid, .seen_ns = looker->monitor->begin_ns};
    }
    bool is_good = true;
    for (size_t i = 0; i < thread->mark_count && is_good; i++) {
        const struct trace_mark *mark = &trace->marks[thread->first_mark + i];
        if (mark->time_ns <= known->seen_ns)
            continue;
        is_good = take_mark(looker, marked, thread->uid, trace->processes[0].pid, mark);
        known->seen_ns = mark->time_ns;
    }
    return is_good;
}

// ---- one segment

static bool knows_thread(const struct trace *trace, uint32_t uid)
{
    for (size_t i = 0; i < trace->thread_count; i++)
        if (trace->threads[i].uid == uid)
            return true;
    return false;
}

// Of threads that are gone nothing comes any more.
static void forget_threads(struct monitor_marked *marked, const struct trace *trace)
{
    size_t kept = 0;
    for (size_t i = 0; i < marked->threads.count; i++)
        if (knows_thread(trace, marked->threads.items[i].uid))
            marked->threads.items[kept++] = marked->threads.items[i];
    marked->threads.count = kept;
    kept = 0;
    for (size_t i = 0; i < marked->works.count; i++)
        if (knows_thread(trace, marked->works.items[i].uid))
            marked->works.items[kept++] = marked->works.items[i];
    marked->works.count = kept;
}

// -1: no memory; what is wrong with the segment the next window says.
static int take_marks(struct looker *looker, struct monitor_marked *marked, const struct trace_segment_view *view,
                      struct base_error *error)
{
    struct newer_seen now = {.items = NULL};
    struct newer_told told;
    struct trace trace;
    struct base_error why = {0};
    if (newer_read_marks(view, &marked->seen, &trace, &told, &now, &why) != 0)
        return why.reason == BASE_ERR_NO_MEMORY ? base_fail_as(error, &why) : 0;
    newer_seen_free(&marked->seen);
    marked->seen = now;
    marked->marks = told.marks;
    bool is_good = true;
    for (size_t i = 0; i < trace.thread_count && is_good; i++)
        is_good = take_thread(looker, marked, &trace, &trace.threads[i]);
    forget_threads(marked, &trace);
    trace_free(&trace);
    return is_good ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "marks");
}

static void take_time(struct looker *looker, struct monitor_marked *marked, uint32_t pid)
{
    for (size_t i = 0; i < marked->works.count; i++) {
        struct monitor_open_work *work = &marked->works.items[i];
        const uint64_t took_ns = looker->now_ns > work->begin_ns ? looker->now_ns - work->begin_ns : 0;
        if (work->is_told || took_ns < looker->monitor->options.triggers[work->trigger].slow_ns)
            continue;
        work->is_told = true;
        pull(looker, work->trigger, pid, took_ns);
    }
}

static int look_at(void *context, int fd, const char *name, struct base_error *error)
{
    struct looker *looker = context;
    struct trace_segment_view view;
    struct newer_told told;
    (void)name;
    if (trace_segment_map(&view, fd, false, NULL) != 0)
        return 0;
    const struct qut_trace_header *header = trace_segment_header(&view);
    struct monitor_marked *marked = marked_of(looker->monitor, header->identity);
    int result = marked ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "marks");
    if (marked && !marked->is_there) { // else a copy
        marked->is_there = true;
        if (newer_count_told(&view, &told, NULL) == 0 && told.marks != marked->marks)
            result = take_marks(looker, marked, &view, error);
        take_time(looker, marked, header->pid);
    }
    trace_segment_unmap(&view);
    return result;
}

int monitor_look(struct monitor *monitor, struct monitor_triggered *triggered, struct base_error *error)
{
    struct looker looker = {
        .window = {.monitor = monitor}, .monitor = monitor, .triggered = triggered, .now_ns = base_clock_now_ns()};
    *triggered = (struct monitor_triggered){.count = 0};
    for (size_t i = 0; i < monitor->marked.count; i++)
        monitor->marked.items[i].is_there = false;
    const int result = monitor_each_ring(&looker.window, look_at, &looker, error);
    size_t kept = 0;
    for (size_t i = 0; i < monitor->marked.count; i++)
        if (monitor->marked.items[i].is_there)
            monitor->marked.items[kept++] = monitor->marked.items[i];
        else
            free_marked(&monitor->marked.items[i]);
    monitor->marked.count = kept;
    return result;
}

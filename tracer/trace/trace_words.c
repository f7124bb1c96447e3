// SPDX-License-Identifier: Apache-2.0
// What a trace's numbers are called, and whether they add up.
#include <string.h>

#include "tracer/call_events/events.h"
#include "tracer/trace/trace_data.h"
#include "tracer/trace/trace_memory.h"

static const char *const kind_names[QUT_TRACE_KIND_COUNT] = {
    [QUT_TRACE_KIND_OTHER] = "other",
    [QUT_TRACE_KIND_CPU] = "cpu",
    [QUT_TRACE_KIND_WALL] = "wall",
    [QUT_TRACE_KIND_ALLOCATE] = "allocate",
    [QUT_TRACE_KIND_FREE] = "free",
    [QUT_TRACE_KIND_LOCK] = "lock",
    [QUT_TRACE_KIND_UNLOCK] = "unlock",
    [QUT_TRACE_KIND_WAIT] = "wait",
    [QUT_TRACE_KIND_WAKE] = "wake",
    [QUT_TRACE_KIND_READ] = "read",
    [QUT_TRACE_KIND_WRITE] = "write",
    [QUT_TRACE_KIND_POLL] = "poll",
    [QUT_TRACE_KIND_SLEEP] = "sleep",
    [QUT_TRACE_KIND_CALL] = "call",
    [QUT_TRACE_KIND_THREAD_START] = "thread-start",
    [QUT_TRACE_KIND_THREAD_END] = "thread-end",
    [QUT_TRACE_KIND_LOAD] = "load",
    [QUT_TRACE_KIND_UNLOAD] = "unload",
    [QUT_TRACE_KIND_FAULT] = "fault",
};

static const char *const metric_names[QUT_TRACE_METRIC_COUNT] = {
    "minor-faults", "major-faults", "voluntary-switches", "involuntary-switches", "allocations", "allocated-bytes",
    "own-0",        "own-1",
};

static const char *const total_names[QUT_TRACE_TOTAL_COUNT] = {
    "allocations",   "allocated-bytes", "frees", "freed-bytes", "lock-waits", "lock-wait-ns",
    "blocked-calls", "blocked-ns",      "own-0", "own-1",       "own-2",      "own-3",
    "own-4",         "own-5",           "own-6", "own-7",
};

static const char *const lost_names[QUT_TRACE_LOST_COUNT] = {
    [QUT_TRACE_LOST_NESTED] = "nested too deep",
    [QUT_TRACE_LOST_POOL] = "no room",
    [QUT_TRACE_LOST_THREADS] = "no slot for the thread",
    [QUT_TRACE_LOST_FORK] = "during a fork",
    [QUT_TRACE_LOST_BAD] = "malformed",
    [QUT_TRACE_LOST_JUMPED] = "jumped out of",
};

static const char *const cut_names[QUT_TRACE_CUT_COUNT] = {
    [QUT_TRACE_CUT_TREE] = "tree of frames full",
    [QUT_TRACE_CUT_RAW] = "table of addresses full",
    [QUT_TRACE_CUT_DEPTH] = "stack too deep",
    [QUT_TRACE_CUT_WALK] = "walk ended early",
};

static const char *const extra_names[] = {
    [QUT_TRACE_EXTRA_DURATION_NS] = "duration-ns",
    [QUT_TRACE_EXTRA_LOCK] = "lock",
    [QUT_TRACE_EXTRA_OWNER_TID] = "owner-tid",
    [QUT_TRACE_EXTRA_WAKER_TID] = "waker-tid",
    [QUT_TRACE_EXTRA_WAKEE_TID] = "wakee-tid",
    [QUT_TRACE_EXTRA_FLOW] = "flow",
    [QUT_TRACE_EXTRA_SIZE] = "size",
    [QUT_TRACE_EXTRA_ADDRESS] = "address",
    [QUT_TRACE_EXTRA_FD] = "fd",
    [QUT_TRACE_EXTRA_RESULT] = "result",
    [QUT_TRACE_EXTRA_BEGIN_NODE] = "begin-node",
    [QUT_TRACE_EXTRA_EARLIER_NS] = "earlier-ns",
    [QUT_TRACE_EXTRA_WEIGHT] = "weight",
};
enum { EXTRA_NAME_COUNT = sizeof extra_names / sizeof *extra_names };

const char *trace_kind_name(const struct trace *trace, unsigned kind)
{
    if (kind < QUT_TRACE_KIND_COUNT)
        return kind_names[kind];
    if (kind >= QUT_TRACE_OWN_KIND_FIRST && kind < QUT_TRACE_OWN_KIND_FIRST + QUT_TRACE_OWN_KIND_COUNT &&
        trace->kind_names[kind - QUT_TRACE_OWN_KIND_FIRST])
        return trace->kind_names[kind - QUT_TRACE_OWN_KIND_FIRST];
    return "unknown";
}

const char *trace_metric_name(unsigned metric)
{
    return metric < QUT_TRACE_METRIC_COUNT ? metric_names[metric] : "unknown";
}

const char *trace_total_name(unsigned total)
{
    return total < QUT_TRACE_TOTAL_COUNT ? total_names[total] : "unknown";
}

const char *trace_lost_name(unsigned reason)
{
    return reason < QUT_TRACE_LOST_COUNT && lost_names[reason] ? lost_names[reason] : "unknown";
}

const char *trace_cut_name(unsigned reason)
{
    return reason < QUT_TRACE_CUT_COUNT && cut_names[reason] ? cut_names[reason] : "unknown";
}

const char *trace_extra_name(unsigned key)
{
    if (key >= QUT_TRACE_EXTRA_OWN_FIRST)
        return "own";
    return key < EXTRA_NAME_COUNT && extra_names[key] ? extra_names[key] : "unknown";
}

bool trace_extra(const struct trace *trace, const struct trace_sample *sample, uint32_t key, uint64_t *value)
{
    for (unsigned i = 0; i < sample->extra_count; i++)
        if (trace->extras[sample->first_extra + i].key == key) {
            *value = trace->extras[sample->first_extra + i].value;
            return true;
        }
    return false;
}

struct trace_process trace_process_of(const struct trace *trace, const struct trace_thread *thread)
{
    if (thread->process < trace->process_count)
        return trace->processes[thread->process];
    return (struct trace_process){.pid = trace->pid,
                                  .command = trace->command ? trace->command : "",
                                  .arch = trace->arch,
                                  .word_bytes = trace->word_bytes,
                                  .mode = trace->mode,
                                  .has_cpu_time = trace->has_cpu_time,
                                  .is_complete = trace->is_complete,
                                  .metric_mask = trace->metric_mask,
                                  .start_ns = trace->start_ns,
                                  .end_ns = trace->end_ns,
                                  .thread_count = trace->thread_count};
}

bool trace_note_number(const struct trace *trace, uint32_t process, const char *name, uint64_t *value)
{
    size_t first = trace->first_own_note, end = trace->note_count;
    if (process < trace->process_count) {
        first = trace->processes[process].first_note;
        end = first + trace->processes[process].note_count;
    }
    for (size_t i = first; i < end; i++)
        if (!trace->notes[i].text && strcmp(trace->notes[i].name, name) == 0) {
            *value = trace->notes[i].value;
            return true;
        }
    return false;
}

uint64_t trace_note_sum(const struct trace *trace, const char *name)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < trace->note_count; i++)
        if (!trace->notes[i].text && strcmp(trace->notes[i].name, name) == 0)
            sum += trace->notes[i].value;
    return sum;
}

struct trace_balance trace_balance(const struct trace *trace)
{
    uint64_t told = trace->stored + trace->merged + trace->counts.throttled + trace->under_way;
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        told += trace->counts.lost[i];
    uint64_t found = trace->present_samples + trace->overwritten_samples + trace->damaged_samples;
    return (struct trace_balance){.hits_missing = (int64_t)(trace->counts.hits - told),
                                  .samples_missing = (int64_t)(trace->stored + trace->merged - found)};
}

void trace_free(struct trace *trace)
{
    for (size_t i = 0; i < trace->calls_count; i++)
        call_events_free(trace->calls[i]);
    trace_memory_free(trace->memory);
    *trace = (struct trace){0};
}

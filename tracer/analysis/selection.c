// SPDX-License-Identifier: Apache-2.0
#include "tracer/analysis/selection.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/analysis/agent_frames.h"
#include "tracer/analysis/interpreter_frames.h"
#include "tracer/analysis/weights.h"

struct maker {
    struct selection *to;
    const struct trace *from;
    const struct selection_wanted *wanted;
    uint32_t *process_of; // a process's index in the selection; TRACE_NONE: it is not selected
};

static bool has_pid(const struct selection_wanted *wanted, uint32_t pid)
{
    for (size_t i = 0; i < wanted->pid_count; i++)
        if (wanted->pids[i] == pid)
            return true;
    return wanted->pid_count == 0;
}

static bool has_thread(const struct maker *maker, const struct trace_thread *thread)
{
    const char *wanted = maker->wanted->thread;
    if (!has_pid(maker->wanted, trace_pid_of(maker->from, thread)))
        return false;
    if (!wanted)
        return true;
    char *end, name[sizeof thread->name + 1] = "";
    unsigned long tid = strtoul(wanted, &end, 10);
    memcpy(name, thread->name, sizeof thread->name);
    return (end != wanted && !*end && tid == thread->tid) || fnmatch(wanted, name, 0) == 0;
}

// ---- what a sample counts for, within the time

static uint64_t part_of(uint64_t value, uint64_t part, uint64_t whole)
{
    return whole ? (uint64_t)((unsigned __int128)value * part / whole) : 0;
}

static void weigh_part(uint64_t weights[MEASURE_COUNT], uint64_t part, uint64_t whole)
{
    if (part == whole)
        return;
    for (unsigned i = 0; i < MEASURE_COUNT; i++)
        if (i != MEASURE_SAMPLES)
            weights[i] = part_of(weights[i], part, whole);
}

static uint64_t time_of(const struct trace_sample *run, uint64_t index)
{
    uint64_t steps = run->count - 1;
    return steps ? run->first_ns + (uint64_t)((unsigned __int128)(run->last_ns - run->first_ns) * index / steps)
                 : run->first_ns;
}

// How many of a run's samples lie before a time: they are as far from each other as they were on average.
static uint64_t samples_before(const struct trace_sample *run, uint64_t time_ns)
{
    uint64_t low = 0, high = run->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (time_of(run, middle) < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool cut_run(const struct selection *to, struct trace_sample *run, uint64_t weights[MEASURE_COUNT])
{
    uint64_t first = samples_before(run, to->start_ns), past = samples_before(run, to->end_ns);
    if (past <= first)
        return false;
    weigh_part(weights, past - first, run->count);
    weights[MEASURE_SAMPLES] = part_of(weights[MEASURE_SAMPLES], past - first, run->count);
    const struct trace_sample whole = *run;
    run->first_ns = time_of(&whole, first);
    run->last_ns = time_of(&whole, past - 1);
    run->count = (uint32_t)(past - first);
    return true;
}

static void set_duration(struct trace *trace, const struct trace_sample *sample, uint64_t duration_ns)
{
    for (unsigned i = 0; i < sample->extra_count; i++)
        if (trace->extras[sample->first_extra + i].key == QUT_TRACE_EXTRA_DURATION_NS)
            trace->extras[sample->first_extra + i].value = duration_ns;
}

// False: it lies outside of the time.
static bool cut_sample(const struct maker *maker, const struct trace_thread *thread,
                       const struct trace_sample *original, struct trace_sample *sample,
                       uint64_t weights[MEASURE_COUNT])
{
    struct selection *to = maker->to;
    uint64_t begin_ns = sample->first_ns, end_ns = sample->first_ns;
    if (sample->is_open)
        end_ns = trace_open_until(maker->from, thread, original);
    else if (!analysis_interval_begin(maker->from, original, &begin_ns))
        return cut_run(to, sample, weights);
    uint64_t from_ns = begin_ns > to->start_ns ? begin_ns : to->start_ns;
    uint64_t until_ns = end_ns < to->end_ns ? end_ns : to->end_ns;
    if (begin_ns == end_ns)
        return cut_run(to, sample, weights);
    if (until_ns <= from_ns)
        return false;
    weigh_part(weights, until_ns - from_ns, end_ns - begin_ns);
    sample->first_ns = sample->last_ns = sample->is_open ? from_ns : until_ns;
    if (!sample->is_open)
        set_duration(&to->trace, sample, until_ns - from_ns);
    return true;
}

// Of a kind, what is counted as a sample: no beginnings of waits, no releases, no frees.
static bool is_counted(const struct selection *to, const struct trace_sample *sample)
{
    uint64_t begin_ns;
    switch (to->kind) {
    case SELECTION_CPU: return trace_sample_is_tick(sample);
    case SELECTION_ALLOC: return sample->kind == QUT_TRACE_KIND_ALLOCATE;
    case SELECTION_LOCK:
    case SELECTION_IO: return sample->is_open || analysis_interval_begin(&to->trace, sample, &begin_ns);
    default: return true;
    }
}

static bool is_of_kind(const struct selection *to, const struct trace_sample *sample,
                       const uint64_t weights[MEASURE_COUNT])
{
    if (to->kind == SELECTION_ALL || analysis_kind_of(sample->kind) == to->kind)
        return true;
    return to->kind == SELECTION_CPU && weights[MEASURE_CPU] > 0;
}

// ---- threads

// Of a thread that no tick met: its time, where it was last seen.
static void add_unticked(struct maker *maker, const struct trace_thread *from)
{
    struct selection *to = maker->to;
    struct trace *trace = &to->trace;
    uint64_t used_ns = analysis_cpu_unticked_ns(maker->from, from);
    if (!used_ns || (to->kind != SELECTION_CPU && to->kind != SELECTION_ALL))
        return;
    const struct trace_sample *last = &maker->from->samples[from->first_sample + from->sample_count - 1];
    if (last->last_ns < to->start_ns || last->last_ns > to->end_ns)
        return;
    uint64_t *weights = to->weights[trace->sample_count];
    memset(weights, 0, sizeof to->weights[0]);
    weights[MEASURE_CPU] = used_ns;
    trace->samples[trace->sample_count++] = (struct trace_sample){.first_ns = last->last_ns,
                                                                  .last_ns = last->last_ns,
                                                                  .cpu_ns = last->cpu_ns,
                                                                  .node = maker->from->unticked_node,
                                                                  .count = 1,
                                                                  .kind = QUT_TRACE_KIND_CPU,
                                                                  .metrics = TRACE_NONE};
}

static void add_samples(struct maker *maker, const struct trace_thread *from, struct trace_thread *thread)
{
    struct selection *to = maker->to;
    struct trace *trace = &to->trace;
    struct weights_walk walk;
    struct weights weights;
    const struct trace_sample *original;
    thread->first_sample = trace->sample_count;
    analysis_weights_begin(&walk, maker->from, from);
    while (analysis_weights_next(&walk, &original, &weights)) {
        struct trace_sample *sample = &trace->samples[trace->sample_count];
        *sample = *original;
        if (!maker->wanted->show_agent && analysis_is_own(maker->from, original))
            continue;
        if (!is_of_kind(to, original, weights.of) || !cut_sample(maker, from, original, sample, weights.of))
            continue;
        if (!maker->wanted->show_agent)
            sample->node = analysis_called_node(maker->from, sample->node);
        if (!maker->wanted->show_interpreters)
            sample->node = analysis_run_node(maker->from, sample->node);
        if (!is_counted(to, sample))
            weights.of[MEASURE_SAMPLES] = 0;
        memcpy(to->weights[trace->sample_count++], weights.of, sizeof weights.of);
    }
    add_unticked(maker, from);
    thread->sample_count = trace->sample_count - thread->first_sample;
}

static void add_marks_and_gaps(struct maker *maker, const struct trace_thread *from, struct trace_thread *thread)
{
    const struct selection *to = maker->to;
    struct trace *trace = &maker->to->trace;
    thread->first_mark = trace->mark_count;
    for (size_t i = from->first_mark; i < from->first_mark + from->mark_count; i++)
        if (maker->from->marks[i].time_ns >= to->start_ns && maker->from->marks[i].time_ns <= to->end_ns)
            trace->marks[trace->mark_count++] = maker->from->marks[i];
    thread->mark_count = trace->mark_count - thread->first_mark;
    thread->first_gap = trace->gap_count;
    for (size_t i = from->first_gap; i < from->first_gap + from->gap_count; i++)
        if (maker->from->gaps[i].to_ns >= to->start_ns && maker->from->gaps[i].from_ns <= to->end_ns)
            trace->gaps[trace->gap_count++] = maker->from->gaps[i];
    thread->gap_count = trace->gap_count - thread->first_gap;
}

static void weigh_time(struct selection *to)
{
    for (size_t t = 0; t < to->trace.thread_count; t++) {
        struct weights_walk walk;
        struct weights weights;
        const struct trace_sample *sample;
        analysis_weights_begin(&walk, &to->trace, &to->trace.threads[t]);
        while (analysis_weights_next(&walk, &sample, &weights))
            to->weights[sample - to->trace.samples][MEASURE_WALL] = weights.of[MEASURE_WALL];
    }
    for (size_t i = 0; i < to->trace.sample_count; i++)
        for (unsigned measure = 0; measure < MEASURE_COUNT; measure++)
            to->sums[measure] += to->weights[i][measure];
}

static void add_threads(struct maker *maker)
{
    struct trace *trace = &maker->to->trace;
    for (size_t t = 0; t < maker->from->thread_count; t++) {
        const struct trace_thread *from = &maker->from->threads[t];
        if (!has_thread(maker, from))
            continue;
        struct trace_thread *thread = &trace->threads[trace->thread_count];
        *thread = *from;
        if (thread->end_ns > maker->to->end_ns && maker->wanted->to_ns != UINT64_MAX)
            thread->end_ns = maker->to->end_ns;
        if (trace->process_count) {
            struct trace_process *process = &trace->processes[maker->process_of[from->process]];
            thread->process = (uint32_t)(process - trace->processes);
            if (process->thread_count++ == 0)
                process->first_thread = trace->thread_count;
        }
        add_samples(maker, from, thread);
        add_marks_and_gaps(maker, from, thread);
        trace->thread_count++;
    }
}

// ---- what they stand in

static void *copy_of(const void *items, size_t count, size_t item_bytes, bool *is_good)
{
    void *copy = calloc(count + 1, item_bytes);
    if (copy && count)
        memcpy(copy, items, count * item_bytes);
    *is_good = *is_good && copy;
    return copy;
}

static bool copy_trace(struct maker *maker)
{
    const struct trace *from = maker->from;
    struct trace *trace = &maker->to->trace;
    bool is_good = true;
    size_t room = from->sample_count + from->thread_count + 1; // one more of each thread: add_unticked
    *trace = *from;
    trace->memory = NULL;
    trace->processes = copy_of(from->processes, from->process_count, sizeof *trace->processes, &is_good);
    trace->nodes = copy_of(from->nodes, from->node_count, sizeof *trace->nodes, &is_good);
    trace->extras = copy_of(from->extras, from->extra_count, sizeof *trace->extras, &is_good);
    trace->threads = copy_of(NULL, 0, (from->thread_count + 1) * sizeof *trace->threads, &is_good);
    trace->samples = copy_of(NULL, 0, room * sizeof *trace->samples, &is_good);
    trace->marks = copy_of(NULL, 0, (from->mark_count + 1) * sizeof *trace->marks, &is_good);
    trace->gaps = copy_of(NULL, 0, (from->gap_count + 1) * sizeof *trace->gaps, &is_good);
    maker->process_of = copy_of(NULL, 0, (from->process_count + 1) * sizeof *maker->process_of, &is_good);
    maker->to->weights = copy_of(NULL, 0, room * sizeof *maker->to->weights, &is_good);
    trace->thread_count = trace->sample_count = trace->mark_count = trace->gap_count = 0;
    return is_good;
}

static void choose_processes(struct maker *maker)
{
    struct trace *trace = &maker->to->trace;
    trace->process_count = 0;
    for (size_t i = 0; i < maker->from->process_count; i++) {
        if (!has_pid(maker->wanted, maker->from->processes[i].pid)) {
            maker->process_of[i] = TRACE_NONE;
            continue;
        }
        maker->process_of[i] = (uint32_t)trace->process_count;
        struct trace_process *process = &trace->processes[trace->process_count++];
        *process = maker->from->processes[i];
        process->first_thread = process->thread_count = 0;
    }
}

static void leave_frames_out(struct maker *maker)
{
    struct trace *trace = &maker->to->trace;
    const struct selection_wanted *wanted = maker->wanted;
    if (!wanted->show_agent)
        analysis_agent_leave_out(maker->from, trace->nodes);
    if (!wanted->show_interpreters)
        analysis_interpreters_leave_out(maker->from, trace->nodes);
    for (size_t i = 0; i < trace->extra_count; i++) {
        struct trace_extra *extra = &trace->extras[i];
        if (extra->key != QUT_TRACE_EXTRA_BEGIN_NODE || extra->value >= trace->node_count)
            continue;
        if (!wanted->show_agent)
            extra->value = analysis_called_node(maker->from, (uint32_t)extra->value);
        if (!wanted->show_interpreters)
            extra->value = analysis_run_node(maker->from, (uint32_t)extra->value);
    }
}

static void set_time(struct selection *to, const struct trace *from, const struct selection_wanted *wanted)
{
    bool is_all = wanted->from_ns == 0 && wanted->to_ns == UINT64_MAX;
    to->start_ns = is_all ? 0 : from->start_ns + wanted->from_ns;
    to->end_ns = wanted->to_ns < UINT64_MAX - from->start_ns ? from->start_ns + wanted->to_ns : UINT64_MAX;
}

static void set_measure(struct selection *to)
{
    static const enum measure measures[] = {MEASURE_CPU,     MEASURE_WALL,    MEASURE_BYTES,  MEASURE_BLOCKED,
                                            MEASURE_BLOCKED, MEASURE_SAMPLES, MEASURE_SAMPLES};
    enum measure measure = measures[to->kind];
    to->measure = to->sums[measure] ? measure : MEASURE_SAMPLES;
}

int analysis_selection_make(struct selection *to, const struct trace *trace, const struct selection_wanted *wanted,
                            struct base_error *error)
{
    struct maker maker = {.to = to, .from = trace, .wanted = wanted};
    *to = (struct selection){.whole = trace,
                             .kind = wanted->kind == SELECTION_MAIN ? analysis_main_kind(trace) : wanted->kind};
    set_time(to, trace, wanted);
    bool is_good = copy_trace(&maker);
    if (is_good) {
        choose_processes(&maker);
        leave_frames_out(&maker);
        add_threads(&maker);
        weigh_time(to);
        set_measure(to);
        to->start_ns = to->start_ns > trace->start_ns ? to->start_ns : trace->start_ns;
        to->end_ns = to->end_ns < trace->end_ns ? to->end_ns : trace->end_ns;
    }
    free(maker.process_of);
    if (is_good)
        return 0;
    analysis_selection_free(to);
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "selection of %zu samples", trace->sample_count);
}

void analysis_selection_free(struct selection *selection)
{
    free(selection->trace.processes);
    free(selection->trace.nodes);
    free(selection->trace.extras);
    free(selection->trace.threads);
    free(selection->trace.samples);
    free(selection->trace.marks);
    free(selection->trace.gaps);
    free(selection->weights);
    *selection = (struct selection){0};
}

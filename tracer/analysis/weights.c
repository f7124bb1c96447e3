// SPDX-License-Identifier: Apache-2.0
#include "tracer/analysis/weights.h"

#include <stdlib.h>

static const struct trace_sample *sample_at(const struct weights_walk *walk, size_t index)
{
    return index < walk->thread->sample_count ? &walk->trace->samples[walk->thread->first_sample + index] : NULL;
}

bool analysis_interval_begin(const struct trace *trace, const struct trace_sample *sample, uint64_t *begin_ns)
{
    uint64_t duration_ns;
    if (!sample->extra_count || !trace_extra(trace, sample, QUT_TRACE_EXTRA_DURATION_NS, &duration_ns))
        return false;
    *begin_ns = sample->first_ns - (duration_ns < sample->first_ns ? duration_ns : sample->first_ns);
    return true;
}

bool analysis_is_blocking(const struct trace_sample *sample)
{
    if (sample->flags & (QUT_TRACE_SAMPLE_OFF_CPU | QUT_TRACE_SAMPLE_ON_CPU))
        return sample->flags & QUT_TRACE_SAMPLE_OFF_CPU;
    switch (sample->kind) {
    case QUT_TRACE_KIND_LOCK:
    case QUT_TRACE_KIND_WAIT:
    case QUT_TRACE_KIND_READ:
    case QUT_TRACE_KIND_WRITE:
    case QUT_TRACE_KIND_POLL:
    case QUT_TRACE_KIND_SLEEP: return true;
    default: return false;
    }
}

uint64_t analysis_covered_add(struct covered *covered, uint64_t from_ns, uint64_t to_ns)
{
    enum { ROOM = sizeof covered->stretches / sizeof *covered->stretches };
    uint64_t length_ns = to_ns > from_ns ? to_ns - from_ns : 0, inside_ns = 0;
    while (covered->count && covered->stretches[covered->count - 1].from_ns >= from_ns)
        inside_ns += covered->stretches[--covered->count].length_ns;
    if (covered->count == ROOM) { // the oldest two become one: whatever lies around both lies around that
        covered->stretches[0].length_ns += covered->stretches[1].length_ns;
        for (unsigned i = 2; i < ROOM; i++)
            covered->stretches[i - 1] = covered->stretches[i];
        covered->count--;
    }
    covered->stretches[covered->count].from_ns = from_ns;
    covered->stretches[covered->count++].length_ns = length_ns;
    return length_ns > inside_ns ? length_ns - inside_ns : 0;
}

// Where a sample's time begins; not before `least_ns`, the last sample's time.
static uint64_t begin_of(const struct trace *trace, const struct trace_sample *sample, uint64_t least_ns)
{
    uint64_t from_ns = sample->first_ns;
    analysis_interval_begin(trace, sample, &from_ns);
    return from_ns > least_ns ? from_ns : least_ns;
}

void analysis_weights_begin(struct weights_walk *walk, const struct trace *trace, const struct trace_thread *thread)
{
    *walk = (struct weights_walk){.trace = trace, .thread = thread, .gap_ns = analysis_weights_gap_ns(trace, thread)};
    const struct trace_sample *first = sample_at(walk, 0);
    if (first)
        walk->from_ns = begin_of(trace, first, thread->start_ns < first->first_ns ? thread->start_ns : 0);
    analysis_cpu_begin(&walk->cpu, trace, thread);
    for (size_t i = 0; i < thread->sample_count; i++) {
        const struct trace_sample *sample = &trace->samples[thread->first_sample + i];
        walk->has_allocations = walk->has_allocations || sample->kind == QUT_TRACE_KIND_ALLOCATE;
        walk->has_faults = walk->has_faults || sample->kind == QUT_TRACE_KIND_FAULT;
    }
}

// The first gap that begins in [from_ns, to_ns); else to_ns.
static uint64_t cut_by_gap(struct weights_walk *walk, uint64_t from_ns, uint64_t to_ns)
{
    const struct trace_thread *thread = walk->thread;
    for (; walk->next_gap < thread->gap_count; walk->next_gap++) {
        uint64_t gap_ns = walk->trace->gaps[thread->first_gap + walk->next_gap].from_ns;
        if (gap_ns >= from_ns)
            return gap_ns < to_ns ? gap_ns : to_ns;
    }
    return to_ns;
}

// What a counter has grown by since the sample before (the first: 0).
static uint64_t growth(struct counter_walk *counter, uint64_t now)
{
    uint64_t grown = counter->has_before && now > counter->before ? now - counter->before : 0;
    counter->before = now;
    counter->has_before = true;
    return grown;
}

// The same, for a sample that counts for all since the last one that did, or for nothing.
static uint64_t growth_for(struct counter_walk *counter, uint64_t now, bool counts)
{
    counter->carried += growth(counter, now);
    if (!counts)
        return 0;
    uint64_t all = counter->carried;
    counter->carried = 0;
    return all;
}

static bool has_metric(const struct trace *trace, unsigned metric)
{
    return trace->metric_mask >> metric & 1;
}

static uint64_t product_of(uint64_t left, uint64_t right)
{
    uint64_t product;
    return __builtin_mul_overflow(left, right, &product) ? UINT64_MAX : product;
}

static void weigh_allocations(struct weights_walk *walk, const struct trace_sample *sample, struct weights *weights)
{
    const struct trace *trace = walk->trace;
    bool is_allocation = sample->kind == QUT_TRACE_KIND_ALLOCATE, counts = !walk->has_allocations || is_allocation;
    const uint64_t *metrics = sample->metrics == TRACE_NONE ? NULL : trace->metrics[sample->metrics];
    uint64_t size = 0, hits = 1;
    trace_extra(trace, sample, QUT_TRACE_EXTRA_WEIGHT, &hits);
    if (has_metric(trace, QUT_TRACE_METRIC_ALLOCATED_BYTES))
        weights->of[MEASURE_BYTES] =
            metrics ? growth_for(&walk->bytes, metrics[QUT_TRACE_METRIC_ALLOCATED_BYTES], counts) : 0;
    else if (is_allocation && trace_extra(trace, sample, QUT_TRACE_EXTRA_SIZE, &size))
        weights->of[MEASURE_BYTES] = product_of(size, hits);
    if (has_metric(trace, QUT_TRACE_METRIC_ALLOCATIONS))
        weights->of[MEASURE_ALLOCATIONS] =
            metrics ? growth_for(&walk->allocations, metrics[QUT_TRACE_METRIC_ALLOCATIONS], counts) : 0;
    else if (is_allocation)
        weights->of[MEASURE_ALLOCATIONS] = product_of(hits, sample->count);
}

static void weigh_faults(struct weights_walk *walk, const struct trace_sample *sample, struct weights *weights)
{
    const struct trace *trace = walk->trace;
    bool is_fault = sample->kind == QUT_TRACE_KIND_FAULT, has_minor = has_metric(trace, QUT_TRACE_METRIC_MINOR_FAULTS);
    bool has_major = has_metric(trace, QUT_TRACE_METRIC_MAJOR_FAULTS);
    uint64_t hits = 1;
    if ((has_minor || has_major) && sample->metrics != TRACE_NONE) {
        const uint64_t *metrics = trace->metrics[sample->metrics];
        uint64_t faults = (has_minor ? metrics[QUT_TRACE_METRIC_MINOR_FAULTS] : 0) +
                          (has_major ? metrics[QUT_TRACE_METRIC_MAJOR_FAULTS] : 0);
        weights->of[MEASURE_FAULTS] = growth_for(&walk->faults, faults, !walk->has_faults || is_fault);
    } else if (is_fault) {
        trace_extra(trace, sample, QUT_TRACE_EXTRA_WEIGHT, &hits);
        weights->of[MEASURE_FAULTS] = product_of(hits, sample->count);
    }
}

static uint64_t blocked_of(struct weights_walk *walk, const struct trace_sample *sample)
{
    uint64_t begin_ns;
    if (!analysis_is_blocking(sample))
        return 0;
    if (sample->is_open)
        return analysis_covered_add(&walk->blocked, sample->first_ns,
                                    trace_open_until(walk->trace, walk->thread, sample));
    return analysis_interval_begin(walk->trace, sample, &begin_ns)
               ? analysis_covered_add(&walk->blocked, begin_ns, sample->first_ns)
               : 0;
}

// From the sample on, until when its stack is taken to be there. next_from_ns: where the next one's time begins.
static uint64_t until(const struct weights_walk *walk, const struct trace_sample *sample, uint64_t next_from_ns)
{
    bool is_interval = sample->flags & QUT_TRACE_SAMPLE_BEGINS; // its length is known
    if (sample->is_open) {
        uint64_t until_ns = trace_open_until(walk->trace, walk->thread, sample);
        return until_ns > walk->last_ns ? until_ns : walk->last_ns;
    }
    bool is_far = walk->gap_ns && next_from_ns - walk->last_ns > walk->gap_ns && !is_interval;
    return is_far ? walk->last_ns : next_from_ns;
}

bool analysis_weights_next(struct weights_walk *walk, const struct trace_sample **sample, struct weights *weights)
{
    const struct trace_sample *this = sample_at(walk, walk->next);
    if (!this)
        return false;
    const struct trace_sample *next = sample_at(walk, ++walk->next);
    *weights = (struct weights){0};
    if (this->last_ns > walk->last_ns)
        walk->last_ns = this->last_ns;
    uint64_t next_from_ns = next ? begin_of(walk->trace, next, walk->last_ns) : walk->last_ns;
    weights->from_ns = walk->from_ns;
    weights->to_ns = cut_by_gap(walk, walk->last_ns, until(walk, this, next_from_ns));
    weights->of[MEASURE_SAMPLES] = this->count;
    weights->of[MEASURE_WALL] = weights->to_ns > weights->from_ns ? weights->to_ns - weights->from_ns : 0;
    weights->of[MEASURE_CPU] = analysis_cpu_next(&walk->cpu);
    weights->of[MEASURE_BLOCKED] = blocked_of(walk, this);
    weigh_allocations(walk, this, weights);
    weigh_faults(walk, this, weights);
    walk->from_ns = next_from_ns;
    *sample = this;
    return true;
}

static int compare_times(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

uint64_t analysis_weights_gap_ns(const struct trace *trace, const struct trace_thread *thread)
{
    enum { PROBES = 257, LEAST_NS = 20000000, DISTANCES = 10 };
    uint64_t distances[PROBES];
    size_t count = 0, step = thread->sample_count / PROBES + 1;
    for (size_t i = 1; i < thread->sample_count && count < PROBES; i += step) {
        const struct trace_sample *sample = &trace->samples[thread->first_sample + i];
        // A run is samples too: a distance between two of them counts as one of those.
        uint64_t within = sample->count > 1 ? (sample->last_ns - sample->first_ns) / (sample->count - 1) : UINT64_MAX;
        uint64_t before = sample->first_ns > sample[-1].last_ns ? sample->first_ns - sample[-1].last_ns : 0;
        distances[count++] = within < before ? within : before;
    }
    if (!count)
        return LEAST_NS;
    qsort(distances, count, sizeof *distances, compare_times);
    uint64_t median = distances[count / 2];
    if (median > UINT64_MAX / DISTANCES)
        return 0;
    return median * DISTANCES > LEAST_NS ? median * DISTANCES : LEAST_NS;
}

// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/weights.h"

#include "tracer/export/slices.h"

static const struct trace_sample *sample_at(const struct weights_walk *walk, size_t index)
{
    return index < walk->thread->sample_count ? &walk->trace->samples[walk->thread->first_sample + index] : NULL;
}

// Where a sample's time begins; not before `least_ns`, the last sample's time.
static uint64_t begin_of(const struct trace *trace, const struct trace_sample *sample, uint64_t least_ns)
{
    uint64_t from_ns = sample->first_ns, duration_ns;
    if (sample->extra_count && trace_extra(trace, sample, QUT_TRACE_EXTRA_DURATION_NS, &duration_ns))
        from_ns -= duration_ns < from_ns ? duration_ns : from_ns;
    return from_ns > least_ns ? from_ns : least_ns;
}

void weights_begin(struct weights_walk *walk, const struct trace *trace, const struct trace_thread *thread)
{
    *walk = (struct weights_walk){.trace = trace, .thread = thread, .gap_ns = slices_gap_ns(trace, thread)};
    const struct trace_sample *first = sample_at(walk, 0);
    if (first)
        walk->from_ns = begin_of(trace, first, thread->start_ns < first->first_ns ? thread->start_ns : 0);
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

static uint64_t growth(uint64_t now, uint64_t *before, bool *has_before)
{
    uint64_t grown = *has_before && now > *before ? now - *before : 0;
    *before = now;
    *has_before = true;
    return grown;
}

static uint64_t bytes_of(struct weights_walk *walk, const struct trace_sample *sample)
{
    const struct trace *trace = walk->trace;
    if (trace->metric_mask >> QUT_TRACE_METRIC_ALLOCATED_BYTES & 1) {
        if (sample->metrics == TRACE_NONE)
            return 0;
        return growth(trace->metrics[sample->metrics][QUT_TRACE_METRIC_ALLOCATED_BYTES], &walk->allocated_bytes,
                      &walk->has_allocated);
    }
    uint64_t size, hits = 1, product;
    if (sample->kind != QUT_TRACE_KIND_ALLOCATE || !trace_extra(trace, sample, QUT_TRACE_EXTRA_SIZE, &size))
        return 0;
    trace_extra(trace, sample, QUT_TRACE_EXTRA_WEIGHT, &hits);
    return __builtin_mul_overflow(size, hits, &product) ? UINT64_MAX : product;
}

bool weights_next(struct weights_walk *walk, const struct trace_sample **sample, struct weights *weights)
{
    const struct trace_sample *this = sample_at(walk, walk->next);
    if (!this)
        return false;
    const struct trace_sample *next = sample_at(walk, ++walk->next);
    if (this->last_ns > walk->last_ns)
        walk->last_ns = this->last_ns;
    uint64_t next_from_ns = next ? begin_of(walk->trace, next, walk->last_ns) : walk->last_ns;
    weights->from_ns = walk->from_ns;
    bool is_far = walk->gap_ns && next_from_ns - walk->last_ns > walk->gap_ns;
    weights->to_ns = cut_by_gap(walk, walk->last_ns, is_far ? walk->last_ns : next_from_ns);
    weights->of[EXPORT_WEIGHT_SAMPLES] = this->count;
    weights->of[EXPORT_WEIGHT_TIME] = weights->to_ns > weights->from_ns ? weights->to_ns - weights->from_ns : 0;
    weights->of[EXPORT_WEIGHT_CPU_TIME] =
        walk->trace->has_cpu_time ? growth(this->cpu_ns, &walk->cpu_ns, &walk->has_cpu) : 0;
    weights->of[EXPORT_WEIGHT_BYTES] = bytes_of(walk, this);
    walk->from_ns = next_from_ns;
    *sample = this;
    return true;
}

const char *weights_unit(unsigned weight)
{
    static const char *const units[EXPORT_WEIGHT_COUNT] = {"samples", "nanoseconds", "nanoseconds", "bytes"};
    return units[weight];
}

const char *weights_name(unsigned weight)
{
    static const char *const names[EXPORT_WEIGHT_COUNT] = {"samples", "time", "cpu", "bytes"};
    return names[weight];
}

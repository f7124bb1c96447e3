// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/slices.h"

#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

// Samples of a level follow each other; those of a higher level lie inside of the runs of a lower one. So a run's end
// waits for its time, one for each level.
enum { PENDING = QUT_TRACE_LEVELS };

struct frame {
    uint32_t node;
    uint32_t index; // of the function in it
    uint32_t id;    // its name's
};

struct place {
    uint32_t node;
    size_t first_frame;
};

struct pending {
    uint64_t time_ns;
    uint32_t node;
    bool is_there;
};

struct walk {
    const struct trace *trace;
    const struct names *names;
    const struct trace_thread *thread;
    const struct slice_options *options;
    const struct slice_events *events;
    uint64_t now_ns;
    size_t next_sample, next_mark, next_gap; // of the thread's
    struct pending pending[PENDING];
    const struct trace_sample *open;  // an interval that did not end; NULL: another sample came since
    bool is_within;                   // the last sample began an interval whose end is known: no gap lies in it
    const struct trace_sample *begun; // its interval has begun, it itself is still to come
    // The stack that is there: its nodes, outermost first, and their functions.
    BASE_VECTOR(struct place) places;
    BASE_VECTOR(struct frame) frames;
    BASE_VECTOR(uint32_t) added; // nodes of the next stack, innermost first
};

static void go_to(struct walk *walk, uint64_t time_ns)
{
    if (time_ns > walk->now_ns)
        walk->now_ns = time_ns;
}

static bool leave_frames(struct walk *walk, size_t keep)
{
    while (walk->frames.count > keep) {
        const struct frame *frame = &walk->frames.items[--walk->frames.count];
        if (!walk->events->leave(walk->events->context, walk->now_ns, frame->node, frame->index))
            return false;
    }
    return true;
}

static bool enter_frame(struct walk *walk, uint32_t node, size_t index, uint32_t id)
{
    struct frame *frame = BASE_ADD(&walk->frames);
    if (!frame)
        return false;
    *frame = (struct frame){node, (uint32_t)index, id};
    return walk->events->enter(walk->events->context, walk->now_ns, node, index);
}

static bool leave_all(struct walk *walk)
{
    walk->places.count = 0;
    return leave_frames(walk, 0);
}

// A new node, as the innermost: all its functions but the outermost ones that go on.
static bool enter_node(struct walk *walk, uint32_t node, size_t first_frame)
{
    struct place *place = BASE_ADD(&walk->places);
    if (!place)
        return false;
    *place = (struct place){node, first_frame};
    size_t count = names_count(walk->names, node);
    for (size_t index = count - (walk->frames.count - first_frame); index-- > 0;)
        if (!enter_frame(walk, node, index, names_at(walk->names, node, index)->id))
            return false;
    return true;
}

// How deep a node is; `depth` stays at its largest value.
static size_t depth_of(const struct trace *trace, uint32_t node)
{
    size_t below = 0;
    while (trace->nodes[node].depth == UINT16_MAX) {
        node = trace->nodes[node].parent;
        below++;
    }
    return below + trace->nodes[node].depth;
}

// The functions of two places at the same depth that are the same, from the outermost on: execution went on in them,
// from one place in their code to another.
static size_t functions_in_common(const struct walk *walk, size_t place, uint32_t node)
{
    size_t first = walk->places.items[place].first_frame;
    size_t end = place + 1 < walk->places.count ? walk->places.items[place + 1].first_frame : walk->frames.count;
    size_t count = names_count(walk->names, node), common = 0;
    while (common < end - first && common < count &&
           walk->frames.items[first + common].id == names_at(walk->names, node, count - 1 - common)->id)
        common++;
    return common;
}

// Makes the stack of `node` the one that is there, at now_ns.
static bool change_stack(struct walk *walk, uint32_t node)
{
    size_t depth = depth_of(walk->trace, node);
    walk->added.count = 0;
    for (; node && (depth > walk->places.count || walk->places.items[depth - 1].node != node); depth--) {
        uint32_t *place = BASE_ADD(&walk->added);
        if (!place)
            return false;
        *place = node;
        node = walk->trace->nodes[node].parent;
    }
    if (depth < walk->places.count) {
        size_t first = walk->places.items[depth].first_frame;
        size_t common =
            walk->added.count ? functions_in_common(walk, depth, walk->added.items[walk->added.count - 1]) : 0;
        if (!leave_frames(walk, first + common))
            return false;
        walk->places.count = depth;
        if (common && !enter_node(walk, walk->added.items[--walk->added.count], first))
            return false;
    }
    while (walk->added.count > 0)
        if (!enter_node(walk, walk->added.items[--walk->added.count], walk->frames.count))
            return false;
    return true;
}

// All slices end, and begin again.
static bool cut(struct walk *walk, const struct trace_mark *mark)
{
    size_t count = walk->frames.count;
    const struct slice_events *events = walk->events;
    if (!leave_frames(walk, 0) || (events->mark && !events->mark(events->context, mark)))
        return false;
    for (size_t i = 0; i < count; i++) { // they still stand there
        struct frame frame = walk->frames.items[i];
        if (!enter_frame(walk, frame.node, frame.index, frame.id))
            return false;
    }
    return true;
}

// Where a sample's stack was there first: of an interval's, where that began, but not before the last sample.
static uint64_t begin_of(const struct walk *walk, const struct trace_sample *sample)
{
    uint64_t duration_ns, begin_ns = sample->first_ns;
    if (sample->extra_count && trace_extra(walk->trace, sample, QUT_TRACE_EXTRA_DURATION_NS, &duration_ns))
        begin_ns -= duration_ns < begin_ns ? duration_ns : begin_ns;
    return begin_ns > walk->now_ns ? begin_ns : walk->now_ns;
}

static const struct trace_sample *sample_to_come(const struct walk *walk)
{
    if (walk->next_sample >= walk->thread->sample_count)
        return NULL;
    return &walk->trace->samples[walk->thread->first_sample + walk->next_sample];
}

static struct pending *pending_first(struct walk *walk)
{
    struct pending *first = NULL;
    for (unsigned level = 0; level < PENDING; level++)
        if (walk->pending[level].is_there && (!first || walk->pending[level].time_ns < first->time_ns))
            first = &walk->pending[level];
    return first;
}

// After a sample: where the next one is too far away, or there is none, nothing is known from here on.
static bool end_if_unknown(struct walk *walk)
{
    if (pending_first(walk))
        return true;
    const struct trace_sample *next = sample_to_come(walk);
    if (walk->open) // that lasts until something else is known, or the end
        return true;
    if (next) {
        if (!walk->options->gap_ns || begin_of(walk, next) - walk->now_ns <= walk->options->gap_ns || walk->is_within)
            return true;
    }
    return leave_all(walk);
}

static bool step_pending(struct walk *walk, struct pending *pending)
{
    go_to(walk, pending->time_ns);
    pending->is_there = false;
    return change_stack(walk, pending->node) && end_if_unknown(walk);
}

static bool step_interval(struct walk *walk, const struct trace_sample *sample, uint64_t begin_ns)
{
    uint64_t node = sample->node;
    trace_extra(walk->trace, sample, QUT_TRACE_EXTRA_BEGIN_NODE, &node);
    walk->begun = sample;
    go_to(walk, begin_ns);
    return change_stack(walk, node < walk->trace->node_count ? (uint32_t)node : sample->node);
}

static bool step_sample(struct walk *walk, const struct trace_sample *sample)
{
    walk->next_sample++;
    walk->open = sample->is_open ? sample : NULL;
    walk->is_within = sample->flags & QUT_TRACE_SAMPLE_BEGINS && !sample->is_open;
    go_to(walk, sample->first_ns);
    if (!change_stack(walk, sample->node))
        return false;
    if (walk->events->sample && !walk->events->sample(walk->events->context, sample))
        return false;
    walk->pending[sample->level % PENDING] =
        (struct pending){sample->last_ns, sample->node, sample->last_ns > walk->now_ns};
    return end_if_unknown(walk);
}

static bool step_mark(struct walk *walk, const struct trace_mark *mark)
{
    walk->next_mark++;
    go_to(walk, mark->time_ns);
    if (mark->kind == QUT_TRACE_MARK_BEGIN || mark->kind == QUT_TRACE_MARK_END)
        return cut(walk, mark);
    return !walk->events->mark || walk->events->mark(walk->events->context, mark);
}

static bool step_gap(struct walk *walk, const struct trace_gap *gap)
{
    walk->next_gap++;
    go_to(walk, gap->from_ns);
    return leave_all(walk) && (!walk->events->gap || walk->events->gap(walk->events->context, gap));
}

// What comes next is what has the earliest time; of equal ones the first here: the end of a run, a mark that does not
// end anything, a sample (an interval's beginning counts), the end of a request, a gap.
static bool step(struct walk *walk, bool *is_done)
{
    const struct trace *trace = walk->trace;
    const struct trace_thread *thread = walk->thread;
    struct pending *pending = pending_first(walk);
    const struct trace_mark *mark =
        walk->next_mark < thread->mark_count ? &trace->marks[thread->first_mark + walk->next_mark] : NULL;
    const struct trace_gap *gap =
        walk->next_gap < thread->gap_count ? &trace->gaps[thread->first_gap + walk->next_gap] : NULL;
    const struct trace_sample *sample = sample_to_come(walk);
    uint64_t begin_ns = sample ? begin_of(walk, sample) : 0;
    bool begins = sample && begin_ns < sample->first_ns && walk->begun != sample;
    uint64_t sample_ns = !sample ? UINT64_MAX : begins ? begin_ns : sample->first_ns;
    uint64_t pending_ns = pending ? pending->time_ns : UINT64_MAX, gap_ns = gap ? gap->from_ns : UINT64_MAX;
    uint64_t mark_ns = mark ? mark->time_ns : UINT64_MAX;

    if (pending && pending_ns <= sample_ns && pending_ns <= mark_ns && pending_ns <= gap_ns)
        return step_pending(walk, pending);
    bool mark_is_first = mark && mark->kind == QUT_TRACE_MARK_END ? mark_ns < sample_ns : mark_ns <= sample_ns;
    if (mark && mark_is_first && mark_ns <= gap_ns)
        return step_mark(walk, mark);
    if (sample && sample_ns <= gap_ns)
        return begins ? step_interval(walk, sample, begin_ns) : step_sample(walk, sample);
    if (gap)
        return step_gap(walk, gap);
    *is_done = true;
    if (walk->open)
        go_to(walk, trace_open_until(trace, thread, walk->open));
    return leave_all(walk);
}

bool export_slices_of_thread(const struct trace *trace, const struct names *names, const struct trace_thread *thread,
                             const struct slice_options *options, const struct slice_events *events)
{
    struct walk walk = {.trace = trace, .names = names, .thread = thread, .options = options, .events = events};
    bool is_done = false, went_well = true;
    while (went_well && !is_done)
        went_well = step(&walk, &is_done);
    base_vector_free(&walk.places.vector);
    base_vector_free(&walk.frames.vector);
    base_vector_free(&walk.added.vector);
    return went_well;
}

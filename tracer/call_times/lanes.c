// SPDX-License-Identifier: Apache-2.0
#include "tracer/call_times/lanes.h"

#include <stdlib.h>

struct group { // calls of one stack
    uint64_t begin_ns, end_ns;
    uint32_t thread;
    uint32_t lane; // of its thread; later: of all
};

struct maker {
    struct call_times_lanes *lanes;
    const struct call_times_part *part;
    uint64_t least_ns;
    size_t most;
    struct {
        BASE_VECTOR(struct group);
    } groups; // by stack
    uint64_t histogram[CALL_TIMES_BUCKETS];
    bool no_memory;
};

static unsigned bucket_of(uint64_t ns)
{
    return ns ? 63u - (unsigned)__builtin_clzll(ns) : 0;
}

// Leaves out the shorter half of the powers of two.
static void thin(struct maker *maker)
{
    struct call_times_slice *items = maker->lanes->slices.items;
    const size_t count = maker->lanes->slices.count;
    size_t kept = count;
    for (unsigned i = bucket_of(maker->least_ns); kept > count / 2 && i + 1 < CALL_TIMES_BUCKETS; i++) {
        kept -= maker->histogram[i];
        maker->lanes->hidden += maker->histogram[i];
        maker->histogram[i] = 0;
        maker->least_ns = (uint64_t)2 << i;
    }
    kept = 0;
    for (size_t i = 0; i < count; i++)
        if (items[i].end_ns - items[i].begin_ns >= maker->least_ns)
            items[kept++] = items[i];
    maker->lanes->slices.count = kept;
}

static void add_to_group(struct maker *maker, const struct call_times_call *call)
{
    while (maker->groups.count <= call->stack) {
        struct group *group = BASE_ADD(&maker->groups);
        if (!group) {
            maker->no_memory = true;
            return;
        }
        *group = (struct group){.begin_ns = UINT64_MAX};
    }
    struct group *group = &maker->groups.items[call->stack];
    if (call->begin_ns < group->begin_ns) {
        group->begin_ns = call->begin_ns;
        group->thread = call->thread;
    }
    group->end_ns = call->end_ns > group->end_ns ? call->end_ns : group->end_ns;
}

static void leave(void *context, const struct call_times_call *call, const struct call_times_call *outer)
{
    (void)outer;
    struct maker *maker = context;
    const struct call_times_part *part = maker->part;
    const uint64_t ns = call->end_ns - call->begin_ns;
    if (maker->no_memory || call->begin_ns < part->from_ns || call->begin_ns > part->to_ns ||
        (part->threads && !part->threads[call->thread]))
        return;
    if (ns < maker->least_ns) {
        maker->lanes->hidden++;
        return;
    }
    struct call_times_slice *slice = BASE_ADD(&maker->lanes->slices);
    if (!slice) {
        maker->no_memory = true;
        return;
    }
    *slice = (struct call_times_slice){.begin_ns = call->begin_ns,
                                       .end_ns = call->end_ns,
                                       .number = call->number,
                                       .function = call->function,
                                       .depth = call->depth,
                                       .stack = call->stack,
                                       .how = (uint8_t)call->how};
    maker->histogram[bucket_of(ns)]++;
    add_to_group(maker, call);
    if (maker->lanes->slices.count > maker->most)
        thin(maker);
}

// ---- lanes

static int by_thread_and_time(const void *one, const void *other, void *context)
{
    const struct group *groups = context;
    const uint32_t left = *(const uint32_t *)one, right = *(const uint32_t *)other;
    const struct group *a = &groups[left], *b = &groups[right];
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    return left < right ? -1 : 1;
}

// A lane that is free when the group begins, the first one; of the thread, whose lanes begin at `first`.
static bool place_group(struct maker *maker, struct group *group, size_t first, uint64_t **ends_ns, size_t *room)
{
    struct call_times_lanes *lanes = maker->lanes;
    size_t at = first;
    while (at < lanes->lanes.count && (*ends_ns)[at] > group->begin_ns)
        at++;
    if (at == lanes->lanes.count) {
        struct call_times_lane *lane = BASE_ADD(&lanes->lanes);
        if (lane && at >= *room) {
            const size_t more = 2 * *room + 16;
            uint64_t *grown = realloc(*ends_ns, more * sizeof *grown);
            if (!grown)
                return false;
            *ends_ns = grown;
            *room = more;
        }
        if (!lane)
            return false;
        *lane = (struct call_times_lane){.thread = group->thread, .number = (uint32_t)(at - first)};
    }
    (*ends_ns)[at] = group->end_ns;
    group->lane = (uint32_t)at;
    return true;
}

static bool place_groups(struct maker *maker)
{
    const size_t count = maker->groups.count;
    struct group *groups = maker->groups.items;
    uint32_t *order = malloc((count + 1) * sizeof *order);
    uint64_t *ends_ns = NULL;
    size_t used = 0, first = 0, room = 0;
    bool is_good = order != NULL;
    for (uint32_t i = 0; is_good && i < count; i++)
        if (groups[i].begin_ns != UINT64_MAX)
            order[used++] = i;
    if (is_good && used)
        qsort_r(order, used, sizeof *order, by_thread_and_time, groups);
    for (size_t i = 0; is_good && i < used; i++) {
        if (i && groups[order[i]].thread != groups[order[i - 1]].thread)
            first = maker->lanes->lanes.count;
        is_good = place_group(maker, &groups[order[i]], first, &ends_ns, &room);
    }
    free(order);
    free(ends_ns);
    return is_good;
}

static int by_lane_and_time(const void *one, const void *other)
{
    const struct call_times_slice *a = one, *b = other;
    if (a->lane != b->lane)
        return a->lane < b->lane ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number); // entries are numbered in the order of time
}

static void sort_slices(struct maker *maker)
{
    struct call_times_lanes *lanes = maker->lanes;
    struct call_times_slice *items = lanes->slices.items;
    const size_t count = lanes->slices.count;
    for (size_t i = 0; i < count; i++)
        items[i].lane = maker->groups.items[items[i].stack].lane;
    if (count)
        qsort(items, count, sizeof *items, by_lane_and_time);
    for (size_t i = 0; i < count; i++) {
        struct call_times_lane *lane = &lanes->lanes.items[items[i].lane];
        if (!lane->count++)
            lane->first = i;
    }
}

int call_times_lanes_make(struct call_times_lanes *lanes, const struct call_events *calls,
                          const struct call_times_part *part, size_t most, struct base_error *error)
{
    struct call_times_account account;
    struct maker maker = {.lanes = lanes, .part = part, .most = most};
    const struct call_times_visitor visitor = {.leave = leave, .context = &maker};
    *lanes = (struct call_times_lanes){0};
    int status = call_times_walk(calls, &visitor, &account, error);
    if (status == 0 && (maker.no_memory || !place_groups(&maker)))
        status = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for slices of calls");
    if (status == 0)
        sort_slices(&maker);
    base_vector_free(&maker.groups.vector);
    if (status != 0)
        call_times_lanes_free(lanes);
    return status;
}

void call_times_lanes_free(struct call_times_lanes *lanes)
{
    base_vector_free(&lanes->slices.vector);
    base_vector_free(&lanes->lanes.vector);
    *lanes = (struct call_times_lanes){0};
}

bool call_times_lane_replay(const struct call_times_lanes *lanes, const struct call_times_lane *lane,
                            const struct call_times_slice_events *events, bool *no_memory)
{
    struct {
        BASE_VECTOR(uint32_t);
    } open = {0}; // indices in the lane
    const struct call_times_slice *slices = lanes->slices.items + lane->first;
    bool goes_on = true;
    for (size_t i = 0; goes_on && i <= lane->count; i++) {
        while (goes_on && open.count) {
            const struct call_times_slice *last = &slices[open.items[open.count - 1]];
            if (i < lane->count && slices[i].stack == last->stack && slices[i].depth > last->depth &&
                slices[i].begin_ns <= last->end_ns && slices[i].number > last->number &&
                slices[i].end_ns <= last->end_ns)
                break;
            open.count--;
            goes_on = events->end(events->context, last);
        }
        if (i == lane->count || !goes_on)
            break;
        uint32_t *place = BASE_ADD(&open);
        if (!place) {
            *no_memory = true;
            goes_on = false;
            break;
        }
        *place = (uint32_t)i;
        goes_on = events->begin(events->context, &slices[i]);
    }
    base_vector_free(&open.vector);
    return goes_on;
}

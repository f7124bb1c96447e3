// SPDX-License-Identifier: Apache-2.0
// Intervals added up: by thread, kind and stack; and by lock, waiter and holder. Both sort copies of the
// intervals' numbers by what they are added up by, and then take neighbours together.
#include <stdlib.h>
#include <string.h>

#include "tracer/analysis/analysis.h"

struct context {
    const struct trace *trace;
    const struct interval *intervals;
};

static int compare_numbers(uint64_t left, uint64_t right)
{
    return (left > right) - (left < right);
}

// ---- blocked time

static int compare_blocked(const void *a, const void *b, void *of)
{
    const struct context *context = of;
    const struct interval *left = &context->intervals[*(const size_t *)a];
    const struct interval *right = &context->intervals[*(const size_t *)b];
    int order = compare_numbers(left->thread, right->thread);
    order = order ? order : compare_numbers(left->kind, right->kind);
    order = order ? order : compare_numbers(left->node, right->node);
    return order ? order : compare_numbers(*(const size_t *)a, *(const size_t *)b);
}

static int compare_blocked_sums(const void *a, const void *b)
{
    const struct blocked *left = a, *right = b;
    int order = compare_numbers(right->total_ns, left->total_ns);
    order = order ? order : compare_numbers(left->thread, right->thread);
    order = order ? order : compare_numbers(left->kind, right->kind);
    return order ? order : compare_numbers(left->node, right->node);
}

// Numbers of the intervals that are wanted; NULL: no memory.
static size_t *choose(const struct intervals *intervals, bool (*wanted)(const struct interval *), size_t *count)
{
    size_t *chosen = calloc(intervals->count + 1, sizeof *chosen);
    *count = 0;
    for (size_t i = 0; chosen && i < intervals->count; i++)
        if (wanted(&intervals->items[i]))
            chosen[(*count)++] = i;
    return chosen;
}

static bool is_blocked(const struct interval *interval)
{
    return interval->blocked_ns > 0;
}

int analysis_blocked_make(struct blocked_list *to, const struct trace *trace, const struct intervals *intervals)
{
    struct context context = {trace, intervals->items};
    size_t count;
    size_t *order = choose(intervals, is_blocked, &count);
    *to = (struct blocked_list){0};
    if (!order)
        return -1;
    qsort_r(order, count, sizeof *order, compare_blocked, &context);
    for (size_t i = 0; i < count; i++) {
        const struct interval *interval = &intervals->items[order[i]];
        struct blocked *sum = to->count ? &to->items[to->count - 1] : NULL;
        if (!sum || sum->thread != interval->thread || sum->kind != interval->kind || sum->node != interval->node) {
            sum = BASE_ADD(to);
            if (!sum) {
                free(order);
                analysis_blocked_free(to);
                return -1;
            }
            *sum = (struct blocked){.thread = interval->thread, .kind = interval->kind, .node = interval->node};
        }
        sum->count++;
        sum->open += interval->is_open;
        sum->total_ns += interval->blocked_ns;
        uint64_t length_ns = interval->to_ns - interval->from_ns;
        sum->longest_ns = length_ns > sum->longest_ns ? length_ns : sum->longest_ns;
    }
    free(order);
    if (to->count)
        qsort(to->items, to->count, sizeof *to->items, compare_blocked_sums);
    return 0;
}

void analysis_blocked_free(struct blocked_list *list)
{
    base_vector_free(&list->vector);
}

// ---- waiters and holders

static bool is_lock_wait(const struct interval *interval)
{
    return interval->lock || interval->kind == QUT_TRACE_KIND_LOCK;
}

static uint32_t process_of(const struct context *context, const struct interval *interval)
{
    return context->trace->threads[interval->thread].process;
}

static int compare_waits(const void *a, const void *b, void *of)
{
    const struct context *context = of;
    const struct interval *left = &context->intervals[*(const size_t *)a];
    const struct interval *right = &context->intervals[*(const size_t *)b];
    int order = compare_numbers(process_of(context, left), process_of(context, right));
    order = order ? order : compare_numbers(left->lock, right->lock);
    order = order ? order : compare_numbers(left->thread, right->thread);
    order = order ? order : compare_numbers(left->owner, right->owner);
    order = order ? order : compare_numbers(left->waker, right->waker);
    return order ? order : compare_numbers(*(const size_t *)a, *(const size_t *)b);
}

static int compare_wait_sums(const void *a, const void *b)
{
    const struct lock_wait *left = a, *right = b;
    int order = compare_numbers(right->total_ns, left->total_ns);
    order = order ? order : compare_numbers(left->process, right->process);
    order = order ? order : compare_numbers(left->lock, right->lock);
    order = order ? order : compare_numbers(left->waiter, right->waiter);
    order = order ? order : compare_numbers(left->owner, right->owner);
    return order ? order : compare_numbers(left->waker, right->waker);
}

static bool is_same_wait(const struct context *context, const struct lock_wait *sum, const struct interval *interval)
{
    return sum->process == process_of(context, interval) && sum->lock == interval->lock &&
           sum->waiter == interval->thread && sum->owner == interval->owner && sum->waker == interval->waker;
}

int analysis_lock_waits_make(struct lock_wait_list *to, const struct trace *trace, const struct intervals *intervals)
{
    struct context context = {trace, intervals->items};
    size_t count;
    size_t *order = choose(intervals, is_lock_wait, &count);
    *to = (struct lock_wait_list){0};
    if (!order)
        return -1;
    qsort_r(order, count, sizeof *order, compare_waits, &context);
    for (size_t i = 0; i < count; i++) {
        const struct interval *interval = &intervals->items[order[i]];
        struct lock_wait *sum = to->count ? &to->items[to->count - 1] : NULL;
        if (!sum || !is_same_wait(&context, sum, interval)) {
            sum = BASE_ADD(to);
            if (!sum) {
                free(order);
                analysis_lock_waits_free(to);
                return -1;
            }
            *sum = (struct lock_wait){.lock = interval->lock,
                                      .process = process_of(&context, interval),
                                      .waiter = interval->thread,
                                      .owner = interval->owner,
                                      .waker = interval->waker};
        }
        uint64_t length_ns = interval->to_ns - interval->from_ns;
        if (!sum->count || length_ns > sum->longest_ns) {
            sum->longest_ns = length_ns;
            sum->node = interval->node;
            sum->release_node = interval->release == SIZE_MAX ? TRACE_NONE : trace->samples[interval->release].node;
        }
        sum->count++;
        sum->total_ns += length_ns;
    }
    free(order);
    if (to->count)
        qsort(to->items, to->count, sizeof *to->items, compare_wait_sums);
    return 0;
}

void analysis_lock_waits_free(struct lock_wait_list *list)
{
    base_vector_free(&list->vector);
}

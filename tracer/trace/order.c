// SPDX-License-Identifier: Apache-2.0
// Records come in a few stretches that are in order already (one for each level, and some samples that are told of
// late): those are found and merged.
#include "tracer/trace/order.h"

#include <stdlib.h>
#include <string.h>

struct sort {
    size_t item_bytes;
    size_t time_at; // of an item's uint64_t that is its time
};

static uint64_t time_of(const struct sort *sort, const char *items, size_t index)
{
    uint64_t time;
    memcpy(&time, items + index * sort->item_bytes + sort->time_at, sizeof time);
    return time;
}

// The end of the stretch that is in order from `first` on.
static size_t run_end(const struct sort *sort, const char *items, size_t first, size_t count)
{
    size_t at = first + 1;
    while (at < count && time_of(sort, items, at - 1) <= time_of(sort, items, at))
        at++;
    return at < count ? at : count;
}

static void merge(const struct sort *sort, const char *from, char *to, size_t first, size_t middle, size_t end)
{
    size_t left = first, right = middle;
    for (size_t at = first; at < end; at++) {
        bool take_left = left < middle && (right == end || time_of(sort, from, left) <= time_of(sort, from, right));
        size_t taken = take_left ? left++ : right++;
        memcpy(to + at * sort->item_bytes, from + taken * sort->item_bytes, sort->item_bytes);
    }
}

// Merges neighbours, from one array into the other. Returns how many stretches are left.
static size_t pass(const struct sort *sort, const char *from, char *to, size_t count)
{
    size_t runs = 0;
    for (size_t first = 0; first < count; runs++) {
        size_t middle = run_end(sort, from, first, count);
        size_t end = middle < count ? run_end(sort, from, middle, count) : middle;
        merge(sort, from, to, first, middle, end);
        first = end;
    }
    return runs;
}

static bool order(const struct sort *sort, char *items, size_t count)
{
    if (count < 2 || run_end(sort, items, 0, count) == count)
        return true;
    char *other = malloc(count * sort->item_bytes);
    if (!other)
        return false;
    char *from = items, *to = other;
    size_t runs;
    do {
        runs = pass(sort, from, to, count);
        char *swapped = from;
        from = to;
        to = swapped;
    } while (runs > 1);
    if (from != items)
        memcpy(items, from, count * sort->item_bytes);
    free(other);
    return true;
}

bool trace_order_samples(struct trace_sample *all, size_t first, size_t count)
{

    const struct sort sort = {sizeof *all, offsetof(struct trace_sample, first_ns)};
    return !count || order(&sort, (char *)(all + first), count);
}

bool trace_order_marks(struct trace_mark *all, size_t first, size_t count)
{

    const struct sort sort = {sizeof *all, offsetof(struct trace_mark, time_ns)};
    return !count || order(&sort, (char *)(all + first), count);
}

bool trace_order_gaps(struct trace_gap *all, size_t first, size_t count)
{

    const struct sort sort = {sizeof *all, offsetof(struct trace_gap, from_ns)};
    return !count || order(&sort, (char *)(all + first), count);
}

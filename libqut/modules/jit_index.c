// SPDX-License-Identifier: Apache-2.0
// From what symbol files cover to intervals that do not overlap: where several cover a pc, the newest answers. Swept
// from the lowest address up, with those that cover the place in a heap.
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/modules/jit_registry.h"

struct span {
    uint64_t start, end;
    const struct modules_jit_blob *blob;
    const struct modules_jit_source *source; // ascending with the lists
};

// The sources follow, then what walks find out about them, then the intervals.
struct modules_jit_published {
    struct modules_retired retired;
    alignas(uint64_t) struct modules_jit_index index;
};

static void free_published(struct modules_retired *retired)
{
    free(retired);
}
static_assert(offsetof(struct modules_jit_published, retired) == 0, "a list is freed by its node");

// Whether a answers before b: it is newer, or listed first.
static bool is_before(const struct span *a, const struct span *b)
{
    uint64_t time = a->blob->code.entry.timestamp, other = b->blob->code.entry.timestamp;
    if (time != other)
        return time > other;
    return a->source != b->source ? a->source < b->source : a->blob->rank < b->blob->rank;
}

static int by_start(const void *a, const void *b)
{
    uint64_t start = ((const struct span *)a)->start, other = ((const struct span *)b)->start;
    return (start > other) - (start < other);
}

static size_t count_spans(void)
{
    size_t count = 0;
    for (size_t i = 0; i < modules_jit.list_count; i++)
        for (size_t j = 0; j < modules_jit.lists[i].blob_count; j++)
            count += modules_jit.lists[i].blobs[j]->range_count;
    return count;
}

static struct span *collect(const struct modules_jit_source *sources, size_t count)
{
    struct span *spans = malloc((count + 1) * sizeof *spans), *to = spans;
    for (size_t i = 0; spans && i < modules_jit.list_count; i++)
        for (size_t j = 0; j < modules_jit.lists[i].blob_count; j++) {
            const struct modules_jit_blob *blob = modules_jit.lists[i].blobs[j];
            for (size_t k = 0; k < blob->range_count; k++)
                *to++ = (struct span){blob->ranges[k].start, blob->ranges[k].end, blob, &sources[i]};
        }
    if (spans)
        qsort(spans, count, sizeof *spans, by_start);
    return spans;
}

// ---- the heap: the one that answers is the first

struct heap {
    const struct span **items;
    size_t count;
};

static void push(struct heap *heap, const struct span *span)
{
    size_t at = heap->count++;
    for (; at > 0 && is_before(span, heap->items[(at - 1) / 2]); at = (at - 1) / 2)
        heap->items[at] = heap->items[(at - 1) / 2];
    heap->items[at] = span;
}

static void pop(struct heap *heap)
{
    const struct span *last = heap->items[--heap->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < heap->count && is_before(heap->items[child + 1], heap->items[child]))
            child++;
        if (child >= heap->count || !is_before(heap->items[child], last))
            break;
        heap->items[at] = heap->items[child];
        at = child;
    }
    heap->items[at] = last;
}

// ---- the sweep

struct intervals {
    struct modules_jit_interval *items;
    size_t count;
};

static void emit(struct intervals *to, const struct span *span, uint64_t start, uint64_t end)
{
    struct modules_jit_interval *last = to->count ? &to->items[to->count - 1] : NULL;
    if (last && last->code == &span->blob->code && last->end == start) {
        last->end = (uintptr_t)end;
        return;
    }
    to->items[to->count++] = (struct modules_jit_interval){
        .start = (uintptr_t)start,
        .end = (uintptr_t)end,
        .code = &span->blob->code,
        .source = span->source,
        .is_early = span->blob->state == MODULES_JIT_EARLY,
        .is_ready = span->blob->state != MODULES_JIT_WAITS && span->blob->state != MODULES_JIT_EARLY,
    };
}

// Every step begins or ends a span: no more intervals than twice as many.
static void sweep(const struct span *spans, size_t count, struct heap *heap, struct intervals *to)
{
    uint64_t at = 0;
    for (size_t next = 0; next < count || heap->count;) {
        while (heap->count && heap->items[0]->end <= at)
            pop(heap);
        if (!heap->count && next < count)
            at = spans[next].start;
        for (; next < count && spans[next].start <= at; next++)
            push(heap, &spans[next]);
        while (heap->count && heap->items[0]->end <= at)
            pop(heap);
        if (!heap->count)
            continue;
        const struct span *first = heap->items[0];
        uint64_t end = next < count && spans[next].start < first->end ? spans[next].start : first->end;
        emit(to, first, at, end);
        at = end;
    }
}

// ---- publishing

static void replace(struct modules_jit_published *published)
{
    atomic_store_explicit(&modules_jit_current, published ? &published->index : NULL, memory_order_seq_cst);
    if (modules_jit.published)
        modules_registry_push_retired(&modules_jit.published->retired);
    modules_jit.published = published;
    // Nothing that walks find leads to them any more.
    while (modules_jit.gone) {
        struct modules_retired *gone = modules_jit.gone;
        modules_jit.gone = gone->next;
        modules_registry_push_retired(gone);
    }
    modules_jit.is_unpublished = false;
    atomic_fetch_add_explicit(&modules_registry.progress, 1, memory_order_release);
    os_wake(&modules_registry.progress);
}

static void put_source(struct modules_jit_source *to, const struct modules_jit_source *from,
                       struct modules_jit_newer *newer)
{
    static uint32_t number; // under work
    number += number + 1 ? 1 : 2;
    *to = *from;
    to->number = number;
    to->newer = newer;
    memset(newer, 0, sizeof *newer);
}

static struct modules_jit_published *build(void)
{
    size_t span_count = count_spans();
    size_t sources_bytes =
        modules_jit.list_count * (sizeof(struct modules_jit_source) + sizeof(struct modules_jit_newer));
    struct modules_jit_published *published =
        malloc(sizeof *published + sources_bytes + 2 * span_count * sizeof(struct modules_jit_interval));
    if (!published)
        return NULL;
    struct modules_jit_source *sources = (struct modules_jit_source *)(void *)(published + 1);
    struct modules_jit_newer *newer = (struct modules_jit_newer *)(void *)(sources + modules_jit.list_count);
    struct intervals intervals = {.items = (struct modules_jit_interval *)(void *)(newer + modules_jit.list_count)};
    struct span *spans = collect(sources, span_count);
    struct heap heap = {.items = spans ? malloc((span_count + 1) * sizeof *heap.items) : NULL};
    if (heap.items) {
        for (size_t i = 0; i < modules_jit.list_count; i++)
            put_source(&sources[i], &modules_jit.lists[i].source, &newer[i]);
        sweep(spans, span_count, &heap, &intervals);
        published->retired = (struct modules_retired){.free = free_published};
        published->index =
            (struct modules_jit_index){modules_jit.list_count, intervals.count, sources, intervals.items};
    } else {
        free(published);
        published = NULL;
    }
    free(heap.items);
    free(spans);
    return published;
}
static_assert(alignof(struct modules_jit_published) >= alignof(struct modules_jit_source) &&
                  alignof(struct modules_jit_source) >= alignof(struct modules_jit_newer) &&
                  alignof(struct modules_jit_newer) >= alignof(struct modules_jit_interval),
              "they lie behind each other");

bool modules_jit_publish(void)
{
    uint64_t began_ns = os_now_ns();
    struct modules_jit_published *published = NULL;
    if (modules_jit.list_count) {
        published = build();
        if (!published)
            return false;
    }
    os_lock(&modules_registry.lock);
    replace(published);
    modules_jit.publish_ns = os_now_ns() - began_ns;
    os_unlock(&modules_registry.lock);
    return true;
}

void modules_jit_unpublish(void)
{
    replace(NULL);
}

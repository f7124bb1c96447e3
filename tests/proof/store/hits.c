// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/store/hits.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "qut/trace.h"

_Thread_local struct hits *volatile hits_mine;
static struct drain *drain;
static _Thread_local uint32_t thread_index;
static _Thread_local volatile uint32_t depth;
static _Thread_local qut_trace_u64 hit_number;

struct hits *hits_create(void)
{
    void *memory =
        mmap(NULL, DRAIN_THREADS * sizeof(struct hits), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void hits_are_of(struct drain *to)
{
    drain = to;
}

void hits_begin(struct hits *hits, uint32_t index)
{
    thread_index = index;
    hit_number = 0;
    hits_mine = &hits[index];
}

static void add(qut_trace_u64 *to, uint64_t amount)
{
    __atomic_fetch_add(to, amount, __ATOMIC_RELAXED);
}

static void tell(struct hits *counts, int result, uint32_t at)
{
    if (result == QUT_STORED_NO_TRACE) { // in a child that has none, and does not know yet that it is one
        add(&counts->hits, UINT64_MAX);
        return;
    }
    if (result < 0) {
        add(&counts->not_stored, 1);
        return;
    }
    add(result == QUT_STORED_MERGED ? &counts->merged : &counts->stored, 1);
    add(&counts->told.samples[at], 1);
}

void hits_one(struct hits *counts)
{
    uint64_t number = __atomic_add_fetch(&hit_number, 1, __ATOMIC_RELAXED);
    uint32_t at = drain_place(thread_index, depth > 3 ? 3 : depth, (uint32_t)(number / 6 % DRAIN_VARIETIES));
    uint64_t metrics[QUT_METRIC_COUNT] = {number, number / 7};
    struct qut_event event = {.kind = QUT_SAMPLE_CPU, .flags = QUT_EVENT_ON_CPU, .metrics = metrics};
    if (number % 4 == 0) // else the store asks for the times itself
        event.cpu_ns = number;
    switch (number % 32) {
    case 3:
        add(&counts->hits, 1); // before it happens, as everywhere: a kill may come between the two
        if (qut_trace_skip() == QUT_STORED_NO_TRACE)
            add(&counts->hits, UINT64_MAX);
        else
            add(&counts->skipped, 1); // or lost, where it is nested too deep
        break;
    case 9: {
        int result = qut_trace_mark(QUT_MARK_INSTANT, number, "storm");
        if (result >= 0) {
            add(&counts->told.marks, 1);
            add(&counts->told.mark_hash, drain_hash(number));
        }
        break;
    }
    case 12:
        qut_trace_add(QUT_TOTAL_OWN_FIRST, number % 100);
        add(&counts->added, number % 100);
        break;
    case 15:
    case 16:
    case 24: {
        struct qut_extra extras[3] = {{QUT_EXTRA_SIZE, 0, 1 << 20}, {DRAIN_EXTRA, 0, number}, {QUT_EXTRA_FD, 0, 3}};
        event.extras = extras;
        event.extra_count = 1 + (uint32_t)(number % 3);
        add(&counts->hits, 1);
        int result = qut_trace_append_node(drain->nodes[at], &event);
        tell(counts, result, at);
        if (result >= 0 && event.extra_count > 1)
            add(&counts->told.extra_hash, drain_hash(number));
        break;
    }
    default: add(&counts->hits, 1); tell(counts, qut_trace_append_node(drain->nodes[at], &event), at);
    }
}

void hits_on_tick(void)
{
    struct hits *counts = hits_mine;
    if (!counts)
        return;
    depth = depth + 1; // this thread's handlers are back before the next line
    if (depth > counts->deepest)
        counts->deepest = depth;
    hits_one(counts);
    depth = depth - 1;
}

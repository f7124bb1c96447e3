// SPDX-License-Identifier: Apache-2.0
// Called by a stub, anywhere in the program: signal-safe, and what is called here is libqut's, which is in the agent.
#include "agent/probe_stacks.h"

#include <errno.h>
#include <stdbool.h>

#include <qut/local.h>
#include <qut/trace.h>

#include "agent/calls/calls.h"
#include "formats/qut_probe.h"

enum { SEEN = 1 << 14, LOOKS = 32 };
static_assert((int)QUT_PROBE_STACK_EXTRA == (int)QUT_EXTRA_OWN_FIRST, "the format's");

// Numbers of stacks that the trace has. In a child of fork, too: there its parent's has them.
static uint64_t seen[SEEN];

static uint64_t number_of(const uintptr_t *pcs, size_t count)
{
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ pcs[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash ? hash : 1;
}

// Where it is, or a place that is free; NULL: there is none.
static uint64_t *place_of(uint64_t number)
{
    for (unsigned i = 0; i < LOOKS; i++) {
        uint64_t *place = &seen[(number + i) % SEEN];
        const uint64_t there = __atomic_load_n(place, __ATOMIC_RELAXED);
        if (there == 0 || there == number)
            return place;
    }
    return NULL;
}

// Two threads may come with the same one, and put it there twice.
static void put(uint64_t number, const uintptr_t *pcs, size_t count, const struct qut_end *end)
{
    uint64_t *place = place_of(number), is_free = 0;
    if (!place || __atomic_load_n(place, __ATOMIC_RELAXED) == number)
        return;
    const struct qut_extra extra = {.key = QUT_PROBE_STACK_EXTRA, .value = number};
    const struct qut_event event = {.kind = QUT_SAMPLE_OTHER, .extras = &extra, .extra_count = 1};
    if (qut_trace_append(pcs, count, end, 0, &event) == QUT_STORED)
        __atomic_compare_exchange_n(place, &is_free, number, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

// What ends a walk is a part of the stack, unless it is as long as was asked for.
static uint64_t take(const struct calls_caller *caller, uint32_t frames)
{
    struct calls_context context;
    uintptr_t pcs[QUT_PROBE_STACK_FRAMES_MAX];
    struct qut_end end;
    const int saved_errno = errno;
    calls_caller_context(caller, &context);
    const size_t count = qut_backtrace_context(&context, pcs, frames, &end);
    const uint64_t number = count ? number_of(pcs, count) : 0;
    const bool is_as_asked = end.reason == QUT_END_LIMIT && frames < QUT_PROBE_STACK_FRAMES_MAX;
    if (count)
        put(number, pcs, count, is_as_asked ? NULL : &end);
    errno = saved_errno;
    return number;
}

void agent_probe_stacks_begin(void)
{
    calls_probe_stacks(take);
}

// SPDX-License-Identifier: Apache-2.0
// One sample: a walk by the walker whose turn it is, timed, compared with the one before.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unwind.h>

#include <qut/local.h>
#include <qutc/provide.h>

#include "bench/programs/records.h"
#include "bench/programs/sampler.h"
#include "libqut/runtime/tiers.h"
#include "machine.h"

// Walkers take turns in blocks: within one, the walk before was made by the same walker.
enum { FRAMES_MAX = 512, BLOCK_SAMPLES = 64, TABLES_TIMEOUT_MS = 60000 };

struct sampled_thread {
    uint32_t number;
    uint32_t block;    // of the last sample, from 1
    size_t last_count; // frames of the walk before
    uintptr_t last[FRAMES_MAX], now[FRAMES_MAX];
    size_t place_count;
    uintptr_t places[FRAMES_MAX]; // where its return addresses stood in the sample before, innermost first
};

typedef _Unwind_Reason_Code (*unwind_backtrace_fn)(_Unwind_Trace_Fn, void *);
typedef _Unwind_Ptr (*unwind_get_ip_fn)(struct _Unwind_Context *);

static unwind_backtrace_fn unwind_backtrace;
static unwind_get_ip_fn unwind_get_ip;
static _Atomic uint32_t sample_count, thread_count;

bool walks_start(const char *cache_directory)
{
    // By handle: a program may bring a library that exports the same names.
    void *libgcc = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (libgcc) {
        *(void **)&unwind_backtrace = dlsym(libgcc, "_Unwind_Backtrace");
        *(void **)&unwind_get_ip = dlsym(libgcc, "_Unwind_GetIP");
    }
    static struct qutc_provide_options provide = {.size = sizeof provide};
    provide.cache_directory = cache_directory;
    struct qut_options options = {.size = sizeof options,
                                  .cache_directory = cache_directory,
                                  .compile = qutc_compile_for_qut,
                                  .compile_context = &provide};
    if (qut_start(&options) != 0 || qut_wait(TABLES_TIMEOUT_MS) != 0)
        return false;
    struct qut_stats stats;
    qut_get_stats(&stats, sizeof stats);
    records_header()->without_table = (uint32_t)(stats.pending_count + stats.no_table_count);
    return true;
}

struct sampled_thread *walks_thread_new(void)
{
    struct sampled_thread *thread =
        mmap(NULL, sizeof *thread, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (thread == MAP_FAILED)
        return NULL;
    thread->number = 1 + atomic_fetch_add_explicit(&thread_count, 1, memory_order_relaxed);
    return thread;
}

void walks_thread_free(struct sampled_thread *thread)
{
    munmap(thread, sizeof *thread);
}

struct unwound {
    uintptr_t *pcs;
    size_t count;
};

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *user)
{
    struct unwound *unwound = user;
    if (unwound->count == FRAMES_MAX)
        return _URC_NORMAL_STOP;
    unwound->pcs[unwound->count++] = unwind_get_ip(context);
    return _URC_NO_REASON;
}

static void take_by_libgcc(struct sampled_thread *thread, struct record *record)
{
    struct unwound unwound = {.pcs = thread->now};
    uint64_t begin = bench_ticks();
    _Unwind_Reason_Code code = unwind_backtrace(note_frame, &unwound);
    record->cost_ticks = (uint32_t)(bench_ticks() - begin);
    record->frames = (uint16_t)unwound.count;
    record->end_reason = code == _URC_END_OF_STACK ? QUT_END_OUTERMOST : QUT_END_NOT;
}

// Those from the innermost on, before the outer ones that both have.
static uint16_t count_changed(const struct sampled_thread *thread, size_t count)
{
    size_t same = 0;
    while (same < count && same < thread->last_count &&
           thread->now[count - 1 - same] == thread->last[thread->last_count - 1 - same])
        same++;
    return (uint16_t)(count - same);
}

static void take_by_qut(struct sampled_thread *thread, const void *ucontext, struct record *record)
{
    struct runtime_tier_counts before = {0}, after = {0};
    struct qut_end end;
    size_t count;
    runtime_tier_counts(&before);
    uint64_t begin = bench_ticks();
    if (ucontext)
        count = qut_backtrace_context(ucontext, thread->now, FRAMES_MAX, &end);
    else
        count = qut_backtrace(thread->now, FRAMES_MAX, &end);
    record->cost_ticks = (uint32_t)(bench_ticks() - begin);
    runtime_tier_counts(&after);
    record->frames = (uint16_t)count;
    record->end_reason = (uint8_t)end.reason;
    record->remembered = (uint16_t)(after.remembered - before.remembered);
    record->looked_up = (uint16_t)(after.looked_up - before.looked_up);
    if (!record->is_first)
        record->changed = count_changed(thread, count);
    memcpy(thread->last, thread->now, count * sizeof *thread->now);
    thread->last_count = count;
}

// ---- the floor

// Each address is taken from the list, but not before the frame before it is read, as in a chase of frame pointers;
// each is compared with the stack's bounds. Returns how many were read.
static size_t chase(const uintptr_t *places, size_t count, uintptr_t low, uintptr_t high)
{
    uintptr_t nothing = 0, read = 0;
    __asm__("" : "+r"(nothing));
    for (size_t i = 0; i < count; i++) {
        const uintptr_t at = places[i] + (read & nothing);
        if (at < low || at > high - sizeof at)
            return i;
        read = *(const volatile uintptr_t *)at;
    }
    return count;
}

// Behind the clock: for the next sample. A frame's return address lies below its caller's stack pointer.
static void note_places(struct sampled_thread *thread, const void *ucontext)
{
    struct qut_cursor cursor;
    struct qut_frame frame;
    qut_cursor_context(&cursor, ucontext);
    thread->place_count = 0;
    while (thread->place_count < FRAMES_MAX && qut_cursor_next(&cursor)) {
        qut_cursor_frame(&cursor, &frame);
        thread->places[thread->place_count++] = (uintptr_t)frame.sp - sizeof(uintptr_t);
    }
}

static void take_by_chase(struct sampled_thread *thread, const void *ucontext, struct record *record)
{
    const uintptr_t low = bench_context_sp(ucontext);
    size_t first = 0;
    while (first < thread->place_count && thread->places[first] < low)
        first++;
    // Looking for the first has read the part of the list that is passed over; the rest is read here.
    uintptr_t high = low;
    for (size_t i = first; i < thread->place_count; i++)
        high = thread->places[i] + sizeof high > high ? thread->places[i] + sizeof high : high;
    uint64_t begin = bench_ticks();
    size_t count = chase(thread->places + first, thread->place_count - first, low, high);
    record->cost_ticks = (uint32_t)(bench_ticks() - begin);
    record->frames = (uint16_t)count;
    record->end_reason = count ? QUT_END_OUTERMOST : QUT_END_NOT;
    note_places(thread, ucontext);
}

void walks_take(struct sampled_thread *thread, const void *ucontext)
{
    static const uint32_t tiers[WALKER_COUNT] = {[WALKER_LINKED] = RUNTIME_TIER_LINKED,
                                                 [WALKER_ALL] = RUNTIME_TIERS_ALL,
                                                 [WALKER_CHASE] = RUNTIME_TIERS_ALL,
                                                 [WALKER_LIBGCC] = RUNTIME_TIERS_ALL};
    unsigned walkers = unwind_backtrace && unwind_get_ip ? WALKER_COUNT : WALKER_LIBGCC;
    uint32_t block = 1 + atomic_fetch_add_explicit(&sample_count, 1, memory_order_relaxed) / BLOCK_SAMPLES;
    uint32_t turn = block % walkers; // of the chase, in malloc: its floor is for cold stacks
    struct record record = {.thread = thread->number,
                            .walker = (uint8_t)(turn == WALKER_CHASE && !ucontext ? WALKER_ALL : turn),
                            .is_first = thread->block != block,
                            .changed = CHANGED_UNKNOWN};
    thread->block = block;
    // For all threads: one that is sampled while the turn passes on may walk by the next one's shortcuts.
    atomic_store_explicit(&runtime_tiers, tiers[record.walker], memory_order_relaxed);
    if (record.walker == WALKER_LIBGCC)
        take_by_libgcc(thread, &record);
    else if (record.walker == WALKER_CHASE)
        take_by_chase(thread, ucontext, &record);
    else
        take_by_qut(thread, ucontext, &record);
    records_add(&record);
}

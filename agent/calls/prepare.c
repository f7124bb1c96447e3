// SPDX-License-Identifier: Apache-2.0
// What the stub calls where it cannot go on by itself: the first call on a stack, the first of a thread, a ring that is
// full. The program may be anywhere: in malloc, in a signal handler, on a coroutine's stack, in a child of vfork. So
// there are system calls only, made here; no lock; and general registers only (agent/meson.build), since nothing has
// saved the others.
#include <errno.h>
#include <linux/mman.h>
#include <sys/syscall.h>

#include "agent/calls/calls.h"
#include "agent/calls/inside.h"

enum {
    NOBODY_ASKS_AGAIN = 1024, // a thread without a ring looks for one at each 1024th event
    NAP_US = 50,              // and what the kernel takes beside it
    OTHERS_YIELDS = 32,       // another thread finishes what it has begun to map
    OTHERS_NAPS = 20000,      // the same, on a busy machine: a second, and what the kernel takes beside it
};

// Of a thread that has not asked for a ring yet, of one that got none, and of those that shall have none.
static struct calls_own newcomer, nobody, agents;
_Thread_local struct calls_own *calls_own __attribute__((tls_model("initial-exec"))) = &newcomer;
static _Thread_local uint32_t known_tid __attribute__((tls_model("initial-exec")));
uint8_t *calls_granules;
struct calls_area *calls_area;
struct qut_calls_header *calls_header;
struct qut_calls_ring *calls_directory;

static void add(qut_calls_u64 *count)
{
    __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

static void rest(bool is_short)
{
    const struct {
        long s, ns;
    } nap = {0, NAP_US * 1000};
    if (is_short)
        calls_system(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    else
        calls_system(SYS_nanosleep, (long)&nap, 0, 0, 0, 0, 0);
}

// Not those that the thread itself can cause: blocked they would end the process. So one may come in all the same.
static bool block_signals(uint64_t *before)
{
    enum { ILL = 4, TRAP = 5, BUS = 7, FPE = 8, SEGV = 11 };
    const uint64_t all = ~((uint64_t)1 << (ILL - 1) | (uint64_t)1 << (TRAP - 1) | (uint64_t)1 << (BUS - 1) |
                           (uint64_t)1 << (FPE - 1) | (uint64_t)1 << (SEGV - 1));
    return calls_system(SYS_rt_sigprocmask, 0, (long)&all, (long)before, sizeof *before, 0, 0) == 0; // SIG_BLOCK
}

static void restore_signals(uint64_t before)
{
    calls_system(SYS_rt_sigprocmask, 2, (long)&before, 0, sizeof before, 0, 0); // SIG_SETMASK
}

// ---- shadow

static int map_shadow(uint64_t begin, unsigned distance_log2)
{
    static const long size = 1L << QUT_CALLS_GRANULE_LOG2;
    enum { READ_WRITE = 1 | 2 };
    const long at = (long)(begin - ((uint64_t)1 << distance_log2));
    const long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    const long got = calls_system(SYS_mmap, at, size, READ_WRITE, flags, -1, 0);
    if (got == at) {
        calls_system(SYS_madvise, at, size, MADV_NOHUGEPAGE, 0, 0, 0); // else the first touch of a stack takes 2 MiB
        return 0;
    }
    if (got <= 0)
        return (int)got;
    calls_system(SYS_munmap, got, size, 0, 0, 0, 0); // a kernel that takes the address for a wish
    return -EEXIST;
}

int calls_map_times(uint64_t granule)
{
    return map_shadow(granule << QUT_CALLS_GRANULE_LOG2, calls_machine.times_log2);
}

static int map_both(uint64_t begin)
{
    if (begin <= (uint64_t)1 << calls_machine.shadow_log2) // a shadow at 0 cannot be
        return -EINVAL;
    int error = map_shadow(begin, calls_machine.words_log2);
    if (error != 0)
        return error;
    error = map_shadow(begin, calls_machine.shadow_log2);
    if (error != 0)
        calls_system(SYS_munmap, (long)(begin - ((uint64_t)1 << calls_machine.words_log2)),
                     1L << QUT_CALLS_GRANULE_LOG2, 0, 0, 0, 0);
    return error;
}

// Another thread has begun it. It may be without a processor just now; and in a child of fork it is not there at all.
static int wait_for_granule(uint8_t *state)
{
    uint8_t begun = QUT_CALLS_GRANULE_BEGUN;
    for (unsigned turn = 0; turn < OTHERS_YIELDS + OTHERS_NAPS; turn++) {
        const uint8_t now = __atomic_load_n(state, __ATOMIC_ACQUIRE);
        if (now == QUT_CALLS_GRANULE_MAPPED)
            return 0;
        if (now == QUT_CALLS_GRANULE_REFUSED)
            return -EEXIST;
        rest(turn < OTHERS_YIELDS);
    }
    __atomic_compare_exchange_n(state, &begun, QUT_CALLS_GRANULE_REFUSED, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return -EAGAIN;
}

// Of several threads that come at once one maps it, with signals blocked: a handler on the same stack would wait for
// what it has interrupted. The others wait, however long it is kept from it: calls that pass are not traced.
int calls_map_granule(uint64_t granule)
{
    uint8_t *state = &calls_granules[granule], was = __atomic_load_n(state, __ATOMIC_ACQUIRE);
    uint64_t before;
    if (was == QUT_CALLS_GRANULE_MAPPED)
        return 0;
    const bool are_blocked = block_signals(&before);
    int error = -EEXIST;
    const bool is_ours =
        was != QUT_CALLS_GRANULE_BEGUN &&
        __atomic_compare_exchange_n(state, &was, QUT_CALLS_GRANULE_BEGUN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    if (is_ours) {
        error = calls_has_times ? calls_map_times(granule) : 0;
        error = error ? error : map_both(granule << QUT_CALLS_GRANULE_LOG2);
        __atomic_store_n(state, error == 0 ? QUT_CALLS_GRANULE_MAPPED : QUT_CALLS_GRANULE_REFUSED, __ATOMIC_RELEASE);
    }
    if (are_blocked)
        restore_signals(before);
    return is_ours ? error : wait_for_granule(state);
}

bool calls_prepare_stack(uint64_t slot)
{
    const uint64_t granule = slot >> QUT_CALLS_GRANULE_LOG2;
    if (slot % calls_machine.slot_bytes != 0) {
        if (calls_are_ours())
            add(&calls_header->passed_misaligned);
        return false;
    }
    uint8_t state = granule < calls_granule_count() ? __atomic_load_n(&calls_granules[granule], __ATOMIC_ACQUIRE)
                                                    : (uint8_t)QUT_CALLS_GRANULE_REFUSED;
    if (state != QUT_CALLS_GRANULE_REFUSED && calls_map_granule(granule) == 0)
        return true;
    if (calls_are_ours())
        add(&calls_header->passed_no_shadow);
    return false;
}

// ---- rings

static void note_used(uint32_t count)
{
    uint32_t used = __atomic_load_n(&calls_header->rings_used, __ATOMIC_RELAXED);
    while (used < count && !__atomic_compare_exchange_n(&calls_header->rings_used, &used, count, false,
                                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
}

// With probes the stub is to come to us at each call.
static void set_room(struct calls_own *own, uint64_t tail)
{
    own->room_bytes = (tail - QUT_CALLS_SPARE_EVENTS) * sizeof(struct qut_calls_event) + own->mask_bytes + 1;
    own->limit_bytes = calls_probe ? 0 : own->room_bytes;
}

static bool take_entry(uint32_t index)
{
    struct qut_calls_ring *entry = &calls_directory[index];
    struct calls_own *own = &calls_area->own[index];
    uint32_t is_free = QUT_CALLS_RING_FREE;
    if (!__atomic_compare_exchange_n(&entry->state, &is_free, QUT_CALLS_RING_TAKEN, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return false;
    const uint32_t tid = known_tid ? known_tid : (uint32_t)calls_system(SYS_gettid, 0, 0, 0, 0, 0, 0);
    __atomic_store_n(&entry->tid, tid, __ATOMIC_RELAXED);
    __atomic_fetch_add(&entry->generation, 1, __ATOMIC_RELAXED);
    const uint64_t base = (uint64_t)calls_header;
    own->entry = entry;
    own->head_bytes = 0;
    own->ring = base + calls_header->rings_offset_bytes + index * calls_header->ring_bytes;
    own->mask_bytes = calls_header->ring_bytes - 1;
    set_room(own, 0);
    own->counts = base + calls_header->counts_offset_bytes + index * (calls_header->cell_count * (uint64_t)8);
    note_used(index + 1);
    if (calls_own->ring) // a handler has taken one meanwhile
        __atomic_store_n(&entry->state, QUT_CALLS_RING_ENDED, __ATOMIC_RELEASE);
    else
        calls_own = own;
    return true;
}

// With signals blocked: a handler that comes in between would take another one for this thread.
static bool take_ring(void)
{
    uint64_t before;
    bool is_taken = false;
    if (!block_signals(&before))
        return false;
    if (calls_own->ring) // one has come before
        is_taken = true;
    for (uint32_t i = 0; i < calls_header->ring_count && !is_taken; i++)
        is_taken = take_entry(i);
    if (!is_taken)
        calls_own = &nobody;
    restore_signals(before);
    return is_taken;
}

// The thread has no ring: it is new, or in a child of fork, or there was none.
static bool find_ring(void)
{
    static uint32_t asked;
    if (calls_own == &nobody && __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED) % NOBODY_ASKS_AGAIN != 0)
        return false;
    return take_ring();
}

static bool is_room(struct calls_own *own, uint64_t *tail)
{
    *tail = __atomic_load_n(&own->entry->tail_events, __ATOMIC_ACQUIRE);
    set_room(own, *tail);
    return __atomic_load_n(&own->head_bytes, __ATOMIC_RELAXED) < own->room_bytes;
}

// For the tracer, which is another process and waits for none of the program's threads.
static bool wait_for_room(struct calls_own *own, uint64_t tail)
{
    enum { YIELDS = 32 };
    const uint32_t wait_us = __atomic_load_n(&calls_header->full_wait_us, __ATOMIC_RELAXED);
    if (wait_us == 0 || own->stuck_events == tail + 1)
        return false;
    __atomic_fetch_add(&calls_header->waits, 1, __ATOMIC_RELAXED);
    for (uint64_t i = 0; i < YIELDS + wait_us / NAP_US; i++) {
        rest(i < YIELDS);
        if (is_room(own, &tail))
            return true;
    }
    own->stuck_events = tail + 1;
    return false;
}

static bool find_room(bool is_exit)
{
    struct calls_own *own = calls_own;
    uint64_t tail;
    if (!own->ring) {
        if (own == &agents || !calls_are_ours())
            return false;
        if (find_ring())
            return true;
        add(is_exit ? &calls_header->lost_exits : &calls_header->lost_enters);
        return false;
    }
    if (is_room(own, &tail) || wait_for_room(own, tail))
        return true;
    add(is_exit ? &own->entry->lost_exits : &own->entry->lost_enters);
    return false;
}

bool calls_prepare_room(bool is_exit, uint64_t word)
{
    const struct calls_probe *probe = __atomic_load_n(&calls_probe, __ATOMIC_ACQUIRE);
    if (!probe)
        return find_room(is_exit);
    if (calls_own != &agents)
        calls_probe_run(probe, is_exit, word);
    return false;
}

// As the stub does it: the place first, then the time, then the word.
void calls_write_event(bool is_exit, uint64_t word)
{
    while (__atomic_load_n(&calls_own->head_bytes, __ATOMIC_RELAXED) >= calls_own->room_bytes)
        if (!find_room(is_exit))
            return;
    struct calls_own *own = calls_own;
    const uint64_t at = __atomic_fetch_add(&own->head_bytes, sizeof(struct qut_calls_event), __ATOMIC_RELAXED);
    struct qut_calls_event *event = (struct qut_calls_event *)(own->ring + (at & own->mask_bytes));
    event->time_ticks = calls_ticks();
    __atomic_store_n(&event->word, word, __ATOMIC_RELEASE);
}

bool calls_prepare_counts(void)
{
    if (calls_own == &agents || !calls_are_ours())
        return false;
    if (calls_own->counts || find_ring())
        return true;
    add(&calls_header->uncounted);
    return false;
}

// ---- threads

void calls_thread_is(uint32_t tid)
{
    known_tid = tid;
}

void calls_thread_is_agents(void)
{
    calls_own = &agents;
}

struct calls_own *calls_work_begins(void)
{
    struct calls_own *kept = calls_own;
    calls_own = &agents;
    return kept;
}

void calls_work_ends(struct calls_own *kept)
{
    calls_own = kept;
}

bool calls_is_agents(void)
{
    return calls_own == &agents;
}

void calls_thread_is_new(void)
{
    calls_own = &newcomer;
    calls_probe_thread_is_new();
}

void calls_thread_ends(void)
{
    struct calls_own *own = calls_own;
    if (!own->ring)
        return;
    struct qut_calls_ring *entry = own->entry;
    calls_own = &newcomer;
    __atomic_store_n(&entry->state, QUT_CALLS_RING_ENDED, __ATOMIC_RELEASE);
}

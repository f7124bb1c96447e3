// SPDX-License-Identifier: Apache-2.0
#include "agent/locks.h"

#include <errno.h>
#include <string.h>
#include <time.h>

// Two words of a place tell all, each changed by one instruction:
//
//     claim = (lock's address >> 2) << 10 | waiters                                            0: the place is free
//     wake  = tid << 42 | alone << 41 | has sample << 40 | low bits of the lock's bucket << 32 | number of this release
//
// The number counts releases of the place, whatever lock it is of, and never starts again. A releaser that was held up
// so long that its place is another lock's now is found out by the bucket's bits.
struct lock_place {
    _Alignas(8) uint64_t claim;
    _Alignas(8) uint64_t wake;
    _Alignas(8) uint64_t since_ns; // the longest wait began then, or the last one that ended ended then
    uint32_t changed;              // number of the release from which on the tid stayed the same. May be too high
    uint32_t last_waiter;          // tid of the thread that registered last
    uint32_t wants;                // a beginning was stored
    uint32_t zero;
};

enum { PLACES = 1024, REACH = 8, WAITERS_MAX = 1023 };

static struct lock_place places[PLACES];
static _Alignas(8) uint64_t owners[LOCK_BUCKETS * 4];
static _Alignas(8) uint64_t untold_count;
uint32_t agent_lock_waiting[LOCK_BUCKETS];

// Where the calling thread is registered: of a hook that was left for good nothing else is left.
static _Thread_local struct lock_wait registered __attribute__((tls_model("initial-exec")));

static uint64_t claim_of(const void *lock)
{
    // Without the tag that some processors keep in the top byte.
    return ((uint64_t)(uintptr_t)lock & UINT64_MAX >> 8) >> 2 << 10;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now))
        return 0;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct lock_place *place_at(const void *lock, uint32_t step)
{
    return &places[(agent_lock_bucket(lock) + step) % PLACES];
}

// Looks for the lock's place before it takes a free one. Two threads that come at once may take two: then the releaser
// writes both.
static struct lock_place *register_in(const void *lock)
{
    uint64_t claim = claim_of(lock);
    for (uint32_t turn = 0; turn < 64; turn++) {
        struct lock_place *free_place = NULL;
        bool is_lost = false;
        for (uint32_t step = 0; step < REACH && !is_lost; step++) {
            struct lock_place *place = place_at(lock, step);
            uint64_t old = __atomic_load_n(&place->claim, __ATOMIC_SEQ_CST);
            if (!old && !free_place)
                free_place = place;
            if (!old || (old & ~(uint64_t)WAITERS_MAX) != claim)
                continue;
            if ((old & WAITERS_MAX) == WAITERS_MAX)
                return NULL;
            if (__atomic_compare_exchange_n(&place->claim, &old, old + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
                return place;
            is_lost = true;
        }
        if (is_lost)
            continue;
        if (!free_place)
            return NULL;
        uint64_t old = 0;
        if (__atomic_compare_exchange_n(&free_place->claim, &old, claim | 1, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
            __atomic_store_n(&free_place->wants, 0, __ATOMIC_RELAXED);
            __atomic_store_n(&free_place->since_ns, now_ns(), __ATOMIC_RELAXED);
            return free_place;
        }
    }
    return NULL;
}

void agent_lock_wait_begins(struct lock_wait *wait, const void *lock)
{
    uint32_t *bucket = &agent_lock_waiting[agent_lock_bucket(lock)];
    __atomic_fetch_add(bucket, 1, __ATOMIC_SEQ_CST);
    wait->lock = lock;
    wait->place = register_in(lock);
    if (!wait->place) {
        __atomic_fetch_sub(bucket, 1, __ATOMIC_SEQ_CST);
        __atomic_fetch_add(&untold_count, 1, __ATOMIC_RELAXED);
        return;
    }
    __atomic_store_n(&wait->place->last_waiter, agent_tid(), __ATOMIC_RELAXED);
    // What was written before counts as before. What is written from now on was written by a thread that saw us, and so
    // will each release be that follows it.
    wait->before = __atomic_load_n(&wait->place->wake, __ATOMIC_SEQ_CST);
    registered = *wait;
}

void agent_lock_wait_is_stored(const struct lock_wait *wait)
{
    if (wait->place)
        __atomic_store_n(&wait->place->wants, 1, __ATOMIC_RELAXED);
}

void agent_lock_wait_ends(struct lock_wait *wait)
{
    struct lock_place *place = wait->place;
    if (!place)
        return;
    wait->place = NULL;
    registered.place = NULL;
    uint64_t old = __atomic_load_n(&place->claim, __ATOMIC_RELAXED);
    bool others;
    do {
        if (!(old & WAITERS_MAX))
            return; // a child, forked by a handler that interrupted this wait
        others = (old & WAITERS_MAX) > 1;
    } while (!__atomic_compare_exchange_n(&place->claim, &old, others ? old - 1 : 0, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED));
    if (others)
        __atomic_store_n(&place->since_ns, now_ns(), __ATOMIC_RELAXED);
    __atomic_fetch_sub(&agent_lock_waiting[agent_lock_bucket(wait->lock)], 1, __ATOMIC_SEQ_CST);
}

void agent_lock_wait_was_left(void)
{
    if (registered.place) {
        struct lock_wait wait = registered;
        agent_lock_wait_ends(&wait);
    }
}

// ---- the wake

enum { TID_BIT = 42, ALONE_BIT = 41, SAMPLE_BIT = 40, BUCKET_BIT = 32 };

static uint64_t bucket_bits(const void *lock)
{
    return (uint64_t)(agent_lock_bucket(lock) & 0xFF) << BUCKET_BIT;
}

static uint64_t flow_of(const struct lock_place *place, uint64_t wake)
{
    return (uint64_t)(place - places + 1) << 32 | (uint32_t)wake;
}

// `changed` is raised before the word is: a thread that reads the word first, and then this, may see it too high, never
// too low.
static void raise_changed(struct lock_place *place, uint32_t number)
{
    uint32_t old = __atomic_load_n(&place->changed, __ATOMIC_RELAXED);
    while ((int32_t)(number - old) > 0 &&
           !__atomic_compare_exchange_n(&place->changed, &old, number, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
}

static uint64_t write_wake(struct lock_place *place, const void *lock, uint32_t tid, bool has_sample, bool alone)
{
    uint64_t fixed = (uint64_t)tid << TID_BIT | (uint64_t)alone << ALONE_BIT | (uint64_t)has_sample << SAMPLE_BIT |
                     bucket_bits(lock);
    uint64_t old = __atomic_load_n(&place->wake, __ATOMIC_SEQ_CST), wake;
    do {
        wake = fixed | (uint32_t)(old + 1);
        if ((uint32_t)(old >> TID_BIT) != tid)
            raise_changed(place, (uint32_t)wake);
    } while (!__atomic_compare_exchange_n(&place->wake, &old, wake, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return wake;
}

static bool is_worth_a_sample(const struct lock_place *place)
{
    if (qut_sync_hit(QUT_TOTAL_NONE, 0) || __atomic_load_n(&place->wants, __ATOMIC_RELAXED))
        return true;
    return now_ns() - __atomic_load_n(&place->since_ns, __ATOMIC_RELAXED) >= agent_settings.blocked_least_ns;
}

void agent_lock_releases(const void *lock, uint32_t kind, enum lock_release release)
{
    int saved_errno = errno;
    uint64_t claim = claim_of(lock), flow = 0;
    bool is_decided = false, has_sample = false;
    uint32_t wakee_tid = 0;
    for (uint32_t step = 0; step < REACH; step++) {
        struct lock_place *place = place_at(lock, step);
        uint64_t old = __atomic_load_n(&place->claim, __ATOMIC_SEQ_CST);
        if (!old || (old & ~(uint64_t)WAITERS_MAX) != claim)
            continue;
        if (!is_decided) {
            has_sample = is_worth_a_sample(place);
            if ((old & WAITERS_MAX) == 1)
                wakee_tid = __atomic_load_n(&place->last_waiter, __ATOMIC_RELAXED);
        } else {
            wakee_tid = 0;
        }
        // One sample has one flow: those in a second place get the waker without it.
        uint64_t wake = write_wake(place, lock, agent_tid(), has_sample && !is_decided, release == LOCK_RELEASED_ALONE);
        if (!is_decided)
            flow = flow_of(place, wake);
        is_decided = true;
    }
    if (has_sample) {
        struct qut_extra extras[] = {
            {QUT_EXTRA_LOCK, 0, (uintptr_t)lock}, {QUT_EXTRA_FLOW, 0, flow}, {QUT_EXTRA_WAKEE_TID, 0, wakee_tid}};
        struct qut_event event = {.kind = kind,
                                  .flags = QUT_EVENT_ON_CPU,
                                  .extras = extras,
                                  .extra_count = wakee_tid ? 3 : 2,
                                  .skip_frames = 1};
        qut_sync_take(&event);
    }
    errno = saved_errno;
}

void agent_lock_releases_untold(const void *lock)
{
    uint64_t claim = claim_of(lock);
    for (uint32_t step = 0; step < REACH; step++) {
        struct lock_place *place = place_at(lock, step);
        uint64_t old = __atomic_load_n(&place->claim, __ATOMIC_SEQ_CST);
        if (old && (old & ~(uint64_t)WAITERS_MAX) == claim)
            write_wake(place, lock, 0, false, false);
    }
}

void agent_lock_wake_of(const struct lock_wait *wait, struct lock_wake *wake)
{
    *wake = (struct lock_wake){0};
    if (!wait->place)
        return;
    uint64_t word = __atomic_load_n(&wait->place->wake, __ATOMIC_SEQ_CST);
    uint32_t changed = __atomic_load_n(&wait->place->changed, __ATOMIC_SEQ_CST);
    uint32_t count = (uint32_t)word - (uint32_t)wait->before;
    if (!count || (word & (uint64_t)0xFF << BUCKET_BIT) != bucket_bits(wait->lock))
        return;
    bool is_the_last = (word >> ALONE_BIT & 1) || count == 1;
    if (!is_the_last && (int32_t)(changed - ((uint32_t)wait->before + 1)) > 0)
        return;
    wake->waker_tid = (uint32_t)(word >> TID_BIT);
    if (is_the_last && wake->waker_tid && (word >> SAMPLE_BIT & 1))
        wake->flow = flow_of(wait->place, word);
}

// ---- owners: tid << 42 | the lower 42 bits of the address >> 2, the last of those whose address falls there

static uint64_t *owner_slot(const void *lock)
{
    uint32_t bucket = agent_lock_bucket(lock) << 2 | ((uint32_t)(uintptr_t)lock >> 5 & 3);
    return &owners[bucket];
}

enum { OWNER_ADDRESS_BITS = 42 };

void agent_lock_owned_by(const void *lock, uint32_t tid)
{
    uint64_t address = claim_of(lock) >> 10 & (((uint64_t)1 << OWNER_ADDRESS_BITS) - 1);
    uint64_t *slot = owner_slot(lock);
    if (tid)
        __atomic_store_n(slot, (uint64_t)tid << OWNER_ADDRESS_BITS | address, __ATOMIC_RELAXED);
    else if ((__atomic_load_n(slot, __ATOMIC_RELAXED) << 22) == address << 22)
        __atomic_store_n(slot, 0, __ATOMIC_RELAXED);
}

uint32_t agent_lock_owner(const void *lock)
{
    uint64_t address = claim_of(lock) >> 10 & (((uint64_t)1 << OWNER_ADDRESS_BITS) - 1);
    uint64_t word = __atomic_load_n(owner_slot(lock), __ATOMIC_RELAXED);
    return (word << 22) == address << 22 ? (uint32_t)(word >> OWNER_ADDRESS_BITS) : 0;
}

uint64_t locks_untold(void)
{
    return __atomic_load_n(&untold_count, __ATOMIC_RELAXED);
}

void agent_locks_after_fork(void)
{
    memset(places, 0, sizeof(places));
    memset(owners, 0, sizeof(owners));
    memset(agent_lock_waiting, 0, sizeof(agent_lock_waiting));
    registered.place = NULL;
    untold_count = 0;
}

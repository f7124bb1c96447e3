// SPDX-License-Identifier: Apache-2.0
// Mutexes. One that is free is taken by trylock, which then does what lock does; that tells without a clock or a look
// at memory whether there will be a wait, and misses none. One that is not: libc's lock itself, which also knows about
// deadlocks, owners that died, priorities.
#include <errno.h>

#include "agent/blocked.h"
#include "agent/lock_state_inline.h"
#include "agent/real.h"

enum look {
    LOOK_DONE,     // *result is what the lock function returns
    LOOK_STRAIGHT, // nothing to see: call it
    LOOK_WAITS,    // it will wait: begun
};

__attribute__((noinline)) static bool is_refused(const pthread_mutex_t *mutex)
{
    return agent_mutex_owner(mutex) == agent_tid();
}

__attribute__((always_inline)) static inline enum look look(pthread_mutex_t *mutex, struct blocked_lock *blocked,
                                                            int *result)
{
    if ((__atomic_load_n(&agent_watched, __ATOMIC_RELAXED) & AGENT_SYNC_LOCK) == 0)
        return LOOK_STRAIGHT;
    if (__builtin_expect(agent_mutex_is_plain(mutex), 1)) {
        *result = agent_real()->pthread_mutex_trylock(mutex);
        if (__builtin_expect(*result == 0, 1))
            agent_lock_is_held(mutex, true);
        if (__builtin_expect(*result != EBUSY, 1))
            return LOOK_DONE;
        if (is_refused(mutex))
            return LOOK_STRAIGHT;
    } else if (!agent_mutex_is_taken(mutex)) {
        return LOOK_STRAIGHT;
    }
    if (!agent_enter(AGENT_SYNC_LOCK))
        return LOOK_STRAIGHT;
    agent_blocked_lock_begin(blocked, mutex, QUT_SAMPLE_LOCK, agent_mutex_owner(mutex), agent_mutex_is_private(mutex));
    return LOOK_WAITS;
}

__attribute__((always_inline)) static inline int waited(struct blocked_lock *blocked, const pthread_mutex_t *mutex,
                                                        int result)
{
    if (!result)
        agent_lock_is_held(mutex, true);
    agent_blocked_lock_end(blocked, mutex, result);
    agent_leave();
    return result;
}

EXPORTED int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    struct blocked_lock blocked;
    int result;
    switch (look(mutex, &blocked, &result)) {
    case LOOK_DONE: return result;
    case LOOK_STRAIGHT: return agent_real()->pthread_mutex_lock(mutex);
    case LOOK_WAITS: break;
    }
    return waited(&blocked, mutex, agent_real()->pthread_mutex_lock(mutex));
}

EXPORTED int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    struct blocked_lock blocked;
    int result;
    switch (look(mutex, &blocked, &result)) {
    case LOOK_DONE: return result;
    case LOOK_STRAIGHT: return agent_real()->pthread_mutex_timedlock(mutex, until);
    case LOOK_WAITS: break;
    }
    return waited(&blocked, mutex, agent_real()->pthread_mutex_timedlock(mutex, until));
}

// A clock that it does not know is refused even if the mutex is free.
EXPORTED int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
    struct blocked_lock blocked;
    int result;
    bool is_known = clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
    switch (is_known ? look(mutex, &blocked, &result) : LOOK_STRAIGHT) {
    case LOOK_DONE: return result;
    case LOOK_STRAIGHT: return agent_real()->pthread_mutex_clocklock(mutex, clock, until);
    case LOOK_WAITS: break;
    }
    return waited(&blocked, mutex, agent_real()->pthread_mutex_clocklock(mutex, clock, until));
}

// Not a wait, and asked for only by the own table.
#ifdef AGENT_OWN_OWNERS
EXPORTED int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    int result = agent_real()->pthread_mutex_trylock(mutex);
    if (!result)
        agent_lock_is_held(mutex, true);
    return result;
}

EXPORTED int mtx_trylock(mtx_t *mutex)
{
    int result = agent_real()->mtx_trylock(mutex);
    if (result == thrd_success)
        agent_lock_is_held(mutex, true);
    return result;
}
#endif

__attribute__((always_inline)) static inline void before_unlock(const pthread_mutex_t *mutex)
{
    if (__builtin_expect(agent_lock_has_waiters(mutex), 0) && agent_mutex_is_let_go(mutex)) {
        if (agent_enter(AGENT_SYNC_LOCK)) {
            agent_lock_releases(mutex, QUT_SAMPLE_UNLOCK, LOCK_RELEASED_ALONE);
            agent_leave();
        } else {
            agent_lock_releases_untold(mutex);
        }
    }
    agent_lock_is_held(mutex, false);
}

EXPORTED int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    before_unlock(mutex);
    return agent_real()->pthread_mutex_unlock(mutex);
}

// ---- C11's, which have the same bytes, and their own results

__attribute__((always_inline)) static inline enum look look_mtx(mtx_t *mutex, struct blocked_lock *blocked, int *result)
{
    pthread_mutex_t *inner = (pthread_mutex_t *)(void *)mutex;
    if ((__atomic_load_n(&agent_watched, __ATOMIC_RELAXED) & AGENT_SYNC_LOCK) == 0)
        return LOOK_STRAIGHT;
    *result = agent_real()->mtx_trylock(mutex);
    if (*result == thrd_success)
        agent_lock_is_held(mutex, true);
    if (*result != thrd_busy)
        return LOOK_DONE;
    if (is_refused(inner) || !agent_enter(AGENT_SYNC_LOCK))
        return LOOK_STRAIGHT;
    agent_blocked_lock_begin(blocked, mutex, QUT_SAMPLE_LOCK, agent_mutex_owner(inner), agent_mutex_is_private(inner));
    return LOOK_WAITS;
}

__attribute__((always_inline)) static inline int waited_mtx(struct blocked_lock *blocked, const mtx_t *mutex,
                                                            int result)
{
    if (result == thrd_success)
        agent_lock_is_held(mutex, true);
    agent_blocked_lock_end(blocked, mutex, result == thrd_success ? 0 : result);
    agent_leave();
    return result;
}

EXPORTED int mtx_lock(mtx_t *mutex)
{
    struct blocked_lock blocked;
    int result;
    switch (look_mtx(mutex, &blocked, &result)) {
    case LOOK_DONE: return result;
    case LOOK_STRAIGHT: return agent_real()->mtx_lock(mutex);
    case LOOK_WAITS: break;
    }
    return waited_mtx(&blocked, mutex, agent_real()->mtx_lock(mutex));
}

EXPORTED int mtx_timedlock(mtx_t *mutex, const struct timespec *until)
{
    struct blocked_lock blocked;
    int result;
    switch (look_mtx(mutex, &blocked, &result)) {
    case LOOK_DONE: return result;
    case LOOK_STRAIGHT: return agent_real()->mtx_timedlock(mutex, until);
    case LOOK_WAITS: break;
    }
    return waited_mtx(&blocked, mutex, agent_real()->mtx_timedlock(mutex, until));
}

EXPORTED int mtx_unlock(mtx_t *mutex)
{
    before_unlock((pthread_mutex_t *)(void *)mutex);
    return agent_real()->mtx_unlock(mutex);
}

// SPDX-License-Identifier: Apache-2.0
// Locks for readers and writers. As mutexes: what can be had at once is taken by the function that tries.
#include <errno.h>

#include "agent/blocked.h"
#include "agent/lock_state_inline.h"
#include "agent/real.h"

// After a try that said EBUSY. False: call libc straight.
__attribute__((always_inline)) static inline bool begins(struct blocked_lock *blocked, pthread_rwlock_t *lock)
{
    uint32_t writer = agent_rwlock_writer(lock);
    if ((writer && writer == agent_tid()) || !agent_enter(AGENT_SYNC_LOCK))
        return false;
    agent_blocked_lock_begin(blocked, lock, QUT_SAMPLE_LOCK, writer, agent_rwlock_is_private(lock));
    return true;
}

__attribute__((always_inline)) static inline int waited(struct blocked_lock *blocked, pthread_rwlock_t *lock,
                                                        int result, bool to_write)
{
    if (!result && to_write)
        agent_lock_is_held(lock, true);
    agent_blocked_lock_end(blocked, lock, result);
    agent_leave();
    return result;
}

static inline bool is_watched(void)
{
    return (__atomic_load_n(&agent_watched, __ATOMIC_RELAXED) & AGENT_SYNC_LOCK) != 0;
}

static inline int try_write(pthread_rwlock_t *lock)
{
    int result = agent_real()->pthread_rwlock_trywrlock(lock);
    if (!result)
        agent_lock_is_held(lock, true);
    return result;
}

// A clock or a time that it does not know is refused even if the lock is free.
static inline bool is_sound(clockid_t clock, const struct timespec *until)
{
    return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && until->tv_nsec >= 0 && until->tv_nsec < 1000000000;
}

EXPORTED int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    struct blocked_lock blocked;
    int result = is_watched() ? agent_real()->pthread_rwlock_tryrdlock(lock) : EINVAL;
    if (!result)
        return 0;
    if (result != EBUSY || !begins(&blocked, lock))
        return agent_real()->pthread_rwlock_rdlock(lock);
    return waited(&blocked, lock, agent_real()->pthread_rwlock_rdlock(lock), false);
}

EXPORTED int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    struct blocked_lock blocked;
    bool tries = is_watched() && is_sound(CLOCK_REALTIME, until);
    int result = tries ? agent_real()->pthread_rwlock_tryrdlock(lock) : EINVAL;
    if (!result)
        return 0;
    if (result != EBUSY || !begins(&blocked, lock))
        return agent_real()->pthread_rwlock_timedrdlock(lock, until);
    return waited(&blocked, lock, agent_real()->pthread_rwlock_timedrdlock(lock, until), false);
}

EXPORTED int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until)
{
    struct blocked_lock blocked;
    bool tries = is_watched() && is_sound(clock, until);
    int result = tries ? agent_real()->pthread_rwlock_tryrdlock(lock) : EINVAL;
    if (!result)
        return 0;
    if (result != EBUSY || !begins(&blocked, lock))
        return agent_real()->pthread_rwlock_clockrdlock(lock, clock, until);
    return waited(&blocked, lock, agent_real()->pthread_rwlock_clockrdlock(lock, clock, until), false);
}

EXPORTED int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    struct blocked_lock blocked;
    int result = is_watched() ? try_write(lock) : EINVAL;
    if (!result)
        return 0;
    if (result != EBUSY || !begins(&blocked, lock))
        return agent_real()->pthread_rwlock_wrlock(lock);
    return waited(&blocked, lock, agent_real()->pthread_rwlock_wrlock(lock), true);
}

EXPORTED int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    struct blocked_lock blocked;
    int result = is_watched() && is_sound(CLOCK_REALTIME, until) ? try_write(lock) : EINVAL;
    if (!result)
        return 0;
    if (result != EBUSY || !begins(&blocked, lock))
        return agent_real()->pthread_rwlock_timedwrlock(lock, until);
    return waited(&blocked, lock, agent_real()->pthread_rwlock_timedwrlock(lock, until), true);
}

EXPORTED int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until)
{
    struct blocked_lock blocked;
    int result = is_watched() && is_sound(clock, until) ? try_write(lock) : EINVAL;
    if (!result)
        return 0;
    if (result != EBUSY || !begins(&blocked, lock))
        return agent_real()->pthread_rwlock_clockwrlock(lock, clock, until);
    return waited(&blocked, lock, agent_real()->pthread_rwlock_clockwrlock(lock, clock, until), true);
}

#ifdef AGENT_OWN_OWNERS
EXPORTED int pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
    return try_write(lock);
}
#endif

// Of readers each one says that it lets go; which of them was the last, only libc knows.
EXPORTED int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    if (__builtin_expect(agent_lock_has_waiters(lock), 0)) {
        if (agent_enter(AGENT_SYNC_LOCK)) {
            bool alone = agent_rwlock_writer(lock) == agent_tid();
            agent_lock_releases(lock, QUT_SAMPLE_UNLOCK, alone ? LOCK_RELEASED_ALONE : LOCK_RELEASED_SHARED);
            agent_leave();
        } else {
            agent_lock_releases_untold(lock);
        }
    }
    if (agent_rwlock_writer(lock))
        agent_lock_is_held(lock, false);
    return agent_real()->pthread_rwlock_unlock(lock);
}

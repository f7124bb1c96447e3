// SPDX-License-Identifier: Apache-2.0
// Semaphores, barriers, and threads that are joined.
#include <errno.h>

#include "agent/blocked.h"
#include "agent/lock_state_inline.h"
#include "agent/real.h"

// True: it is counted down, as sem_wait would have done, which is a point of cancellation whether it waits or not. A
// first try that fails leaves errno alone.
__attribute__((always_inline)) static inline bool is_had(sem_t *semaphore)
{
    pthread_testcancel();
    int saved_errno = errno;
    bool had = agent_real()->sem_trywait(semaphore) == 0;
    errno = saved_errno;
    return had;
}

__attribute__((always_inline)) static inline bool begins(struct blocked_lock *blocked, sem_t *semaphore)
{
    if (!agent_enter(AGENT_SYNC_LOCK))
        return false;
    agent_blocked_lock_begin(blocked, semaphore, QUT_SAMPLE_WAIT, 0, agent_semaphore_is_private(semaphore));
    return true;
}

__attribute__((always_inline)) static inline int waited(struct blocked_lock *blocked, sem_t *semaphore, int result)
{
    agent_blocked_lock_end(blocked, semaphore, result ? errno : 0);
    agent_leave();
    return result;
}

static inline bool is_watched(void)
{
    return (__atomic_load_n(&agent_watched, __ATOMIC_RELAXED) & AGENT_SYNC_LOCK) != 0;
}

// A clock or a time that it does not know is refused even if there is nothing to wait for.
static inline bool is_sound(clockid_t clock, const struct timespec *until)
{
    return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && until->tv_nsec >= 0 && until->tv_nsec < 1000000000;
}

EXPORTED int sem_wait(sem_t *semaphore)
{
    struct blocked_lock blocked;
    if (!is_watched())
        return agent_real()->sem_wait(semaphore);
    if (is_had(semaphore))
        return 0;
    if (!begins(&blocked, semaphore))
        return agent_real()->sem_wait(semaphore);
    return waited(&blocked, semaphore, agent_real()->sem_wait(semaphore));
}

EXPORTED int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    struct blocked_lock blocked;
    if (!is_watched() || !is_sound(CLOCK_REALTIME, until))
        return agent_real()->sem_timedwait(semaphore, until);
    if (is_had(semaphore))
        return 0;
    if (!begins(&blocked, semaphore))
        return agent_real()->sem_timedwait(semaphore, until);
    return waited(&blocked, semaphore, agent_real()->sem_timedwait(semaphore, until));
}

EXPORTED int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    struct blocked_lock blocked;
    if (!is_watched() || !is_sound(clock, until))
        return agent_real()->sem_clockwait(semaphore, clock, until);
    if (is_had(semaphore))
        return 0;
    if (!begins(&blocked, semaphore))
        return agent_real()->sem_clockwait(semaphore, clock, until);
    return waited(&blocked, semaphore, agent_real()->sem_clockwait(semaphore, clock, until));
}

// May be called in signal handlers.
EXPORTED int sem_post(sem_t *semaphore)
{
    if (__builtin_expect(agent_lock_has_waiters(semaphore), 0)) {
        if (agent_enter(AGENT_SYNC_LOCK)) {
            agent_lock_releases(semaphore, QUT_SAMPLE_WAKE, LOCK_RELEASED_SHARED);
            agent_leave();
        } else {
            agent_lock_releases_untold(semaphore);
        }
    }
    return agent_real()->sem_post(semaphore);
}

// The last one that comes lets the others go. Where two come at once, neither knows that it is the last.
EXPORTED int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    struct blocked_lock blocked;
    if (!agent_enter(AGENT_SYNC_LOCK))
        return agent_real()->pthread_barrier_wait(barrier);
    if (agent_barrier_waits_for_one(barrier)) {
        if (agent_lock_has_waiters(barrier))
            agent_lock_releases(barrier, QUT_SAMPLE_WAKE, LOCK_RELEASED_SHARED);
        agent_leave();
        return agent_real()->pthread_barrier_wait(barrier);
    }
    agent_blocked_lock_begin(&blocked, barrier, QUT_SAMPLE_WAIT, 0, agent_barrier_is_private(barrier));
    int result = agent_real()->pthread_barrier_wait(barrier);
    agent_blocked_lock_end(&blocked, barrier, result == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : result);
    agent_leave();
    return result;
}

// ---- threads: what is waited for is found by its pthread_t, and released by its end (agent_blocked_thread_ends)

__attribute__((always_inline)) static inline bool begins_join(struct blocked_lock *blocked, pthread_t thread)
{
    if (!agent_enter(AGENT_SYNC_LOCK))
        return false;
    agent_blocked_lock_begin(blocked, (const void *)thread, QUT_SAMPLE_WAIT, 0, true);
    return true;
}

__attribute__((always_inline)) static inline int joined(struct blocked_lock *blocked, pthread_t thread, int result)
{
    agent_blocked_lock_end(blocked, (const void *)thread, result);
    agent_leave();
    return result;
}

EXPORTED int pthread_join(pthread_t thread, void **value)
{
    struct blocked_lock blocked;
    if (!begins_join(&blocked, thread))
        return agent_real()->pthread_join(thread, value);
    return joined(&blocked, thread, agent_real()->pthread_join(thread, value));
}

EXPORTED int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
    struct blocked_lock blocked;
    if (!begins_join(&blocked, thread))
        return agent_real()->pthread_timedjoin_np(thread, value, until);
    return joined(&blocked, thread, agent_real()->pthread_timedjoin_np(thread, value, until));
}

EXPORTED int pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock, const struct timespec *until)
{
    struct blocked_lock blocked;
    if (!begins_join(&blocked, thread))
        return agent_real()->pthread_clockjoin_np(thread, value, clock, until);
    return joined(&blocked, thread, agent_real()->pthread_clockjoin_np(thread, value, clock, until));
}

EXPORTED int thrd_join(thrd_t thread, int *value)
{
    struct blocked_lock blocked;
    if (!begins_join(&blocked, (pthread_t)thread))
        return agent_real()->thrd_join(thread, value);
    int result = agent_real()->thrd_join(thread, value);
    joined(&blocked, (pthread_t)thread, result == thrd_success ? 0 : result);
    return result;
}

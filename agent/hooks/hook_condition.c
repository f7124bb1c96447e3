// SPDX-License-Identifier: Apache-2.0
// Conditions: the wait for one, and for its mutex afterwards, are one call, and one interval; its waker is the thread
// that signalled. libc lets the mutex go in between without a call that we see: so its release is told here.
#include "agent/blocked.h"
#include "agent/lock_state_inline.h"
#include "agent/real.h"

__attribute__((always_inline)) static inline bool begins(struct blocked_lock *blocked, pthread_cond_t *condition,
                                                         pthread_mutex_t *mutex)
{
    if (!agent_enter(AGENT_SYNC_LOCK)) {
        if (agent_lock_has_waiters(mutex))
            agent_lock_releases_untold(mutex);
        return false;
    }
    agent_blocked_lock_begin(blocked, condition, QUT_SAMPLE_WAIT, 0, agent_condition_is_private(condition));
    if (agent_lock_has_waiters(mutex) && agent_mutex_is_let_go(mutex))
        agent_lock_releases(mutex, QUT_SAMPLE_UNLOCK, LOCK_RELEASED_ALONE);
    agent_lock_is_held(mutex, false);
    return true;
}

__attribute__((always_inline)) static inline int waited(struct blocked_lock *blocked, pthread_cond_t *condition,
                                                        pthread_mutex_t *mutex, int result)
{
    agent_lock_is_held(mutex, true);
    agent_blocked_lock_end(blocked, condition, result);
    agent_leave();
    return result;
}

EXPORTED int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    struct blocked_lock blocked;
    if (!begins(&blocked, condition, mutex))
        return agent_real()->pthread_cond_wait(condition, mutex);
    return waited(&blocked, condition, mutex, agent_real()->pthread_cond_wait(condition, mutex));
}

EXPORTED int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    struct blocked_lock blocked;
    if (!begins(&blocked, condition, mutex))
        return agent_real()->pthread_cond_timedwait(condition, mutex, until);
    return waited(&blocked, condition, mutex, agent_real()->pthread_cond_timedwait(condition, mutex, until));
}

EXPORTED int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                                    const struct timespec *until)
{
    struct blocked_lock blocked;
    if (!begins(&blocked, condition, mutex))
        return agent_real()->pthread_cond_clockwait(condition, mutex, clock, until);
    return waited(&blocked, condition, mutex, agent_real()->pthread_cond_clockwait(condition, mutex, clock, until));
}

__attribute__((always_inline)) static inline void before_wake(const void *condition)
{
    if (__builtin_expect(agent_lock_has_waiters(condition), 0)) {
        if (agent_enter(AGENT_SYNC_LOCK)) {
            agent_lock_releases(condition, QUT_SAMPLE_WAKE, LOCK_RELEASED_SHARED);
            agent_leave();
        } else {
            agent_lock_releases_untold(condition);
        }
    }
}

EXPORTED int pthread_cond_signal(pthread_cond_t *condition)
{
    before_wake(condition);
    return agent_real()->pthread_cond_signal(condition);
}

EXPORTED int pthread_cond_broadcast(pthread_cond_t *condition)
{
    before_wake(condition);
    return agent_real()->pthread_cond_broadcast(condition);
}

// ---- C11's, which have the same bytes, and their own results

__attribute__((always_inline)) static inline int waited_cnd(struct blocked_lock *blocked, cnd_t *condition,
                                                            mtx_t *mutex, int result)
{
    waited(blocked, (pthread_cond_t *)(void *)condition, (pthread_mutex_t *)(void *)mutex,
           result == thrd_success ? 0 : result);
    return result;
}

EXPORTED int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    struct blocked_lock blocked;
    if (!begins(&blocked, (pthread_cond_t *)(void *)condition, (pthread_mutex_t *)(void *)mutex))
        return agent_real()->cnd_wait(condition, mutex);
    return waited_cnd(&blocked, condition, mutex, agent_real()->cnd_wait(condition, mutex));
}

EXPORTED int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until)
{
    struct blocked_lock blocked;
    if (!begins(&blocked, (pthread_cond_t *)(void *)condition, (pthread_mutex_t *)(void *)mutex))
        return agent_real()->cnd_timedwait(condition, mutex, until);
    return waited_cnd(&blocked, condition, mutex, agent_real()->cnd_timedwait(condition, mutex, until));
}

EXPORTED int cnd_signal(cnd_t *condition)
{
    before_wake(condition);
    return agent_real()->cnd_signal(condition);
}

EXPORTED int cnd_broadcast(cnd_t *condition)
{
    before_wake(condition);
    return agent_real()->cnd_broadcast(condition);
}

// SPDX-License-Identifier: Apache-2.0
#include "agent/blocked.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "libqut/host/host.h"

// The interval of the hook that is under way: here, not in the hook's frame, which may be left for good.
static _Thread_local struct {
    struct qut_scope scope;
    uint32_t is_open;
} interval __attribute__((tls_model("initial-exec")));

// As agent_blocked_begin, for one more frame between it and the hook.
__attribute__((always_inline)) static inline void begin(uint32_t kind)
{
    int saved_errno = errno;
    qut_guard_begin();
    interval.scope = (struct qut_scope){.kind = kind, .skip_frames = 1};
    interval.is_open = 1;
    qut_scope_begin(&interval.scope);
    errno = saved_errno;
}

__attribute__((always_inline)) static inline void end(uint32_t total, const struct qut_extra *extras, uint32_t count)
{
    int saved_errno = errno;
    if (interval.is_open) {
        interval.is_open = 0;
        qut_scope_end(&interval.scope, total, agent_settings.blocked_least_ns, extras, count);
        qut_guard_end();
    }
    errno = saved_errno;
}

__attribute__((noinline)) void agent_blocked_begin(uint32_t kind)
{
    begin(kind);
}

__attribute__((noinline)) void agent_blocked_end(uint32_t total, const struct qut_extra *extras, uint32_t extra_count)
{
    end(total, extras, extra_count);
}

__attribute__((noinline)) void agent_blocked_end_call(int fd, size_t size, int64_t result)
{
    struct qut_extra extras[3] = {{QUT_EXTRA_RESULT, 0, (uint64_t)result}};
    uint32_t count = 1;
    if (fd >= 0)
        extras[count++] = (struct qut_extra){QUT_EXTRA_FD, 0, (uint64_t)fd};
    if (size)
        extras[count++] = (struct qut_extra){QUT_EXTRA_SIZE, 0, size};
    end(QUT_TOTAL_BLOCKED_CALLS, extras, count);
}

__attribute__((noinline)) void agent_blocked_lock_begin(struct blocked_lock *blocked, const void *lock, uint32_t kind,
                                                        uint32_t owner_tid, bool is_private)
{
    *blocked = (struct blocked_lock){.kind = kind, .owner_tid = owner_tid};
    if (is_private)
        agent_lock_wait_begins(&blocked->wait, lock);
    begin(kind);
    if (interval.scope.begin_node || interval.scope.flags)
        agent_lock_wait_is_stored(&blocked->wait);
}

__attribute__((noinline)) void agent_blocked_lock_end(struct blocked_lock *blocked, const void *lock, int result)
{
    struct lock_wake wake = {0};
    if (!result)
        agent_lock_wake_of(&blocked->wait, &wake);
    agent_lock_wait_ends(&blocked->wait);
    struct qut_extra extras[5] = {{QUT_EXTRA_LOCK, 0, (uintptr_t)lock}};
    uint32_t count = 1;
    if (blocked->owner_tid)
        extras[count++] = (struct qut_extra){QUT_EXTRA_OWNER_TID, 0, blocked->owner_tid};
    if (wake.waker_tid)
        extras[count++] = (struct qut_extra){QUT_EXTRA_WAKER_TID, 0, wake.waker_tid};
    if (wake.flow)
        extras[count++] = (struct qut_extra){QUT_EXTRA_FLOW, 0, wake.flow};
    if (result)
        extras[count++] = (struct qut_extra){QUT_EXTRA_RESULT, 0, (uint64_t)(int64_t)result};
    end(blocked->kind == QUT_SAMPLE_LOCK ? QUT_TOTAL_LOCK_WAITS : QUT_TOTAL_BLOCKED_CALLS, extras, count);
}

const sigset_t *agent_blocked_mask(const sigset_t *mask, sigset_t *room)
{
    if (!agent_settings.traps || !mask || sigismember(mask, SIGTRAP) != 1)
        return mask;
    *room = *mask;
    sigdelset(room, SIGTRAP);
    return room;
}

bool agent_blocked_again(int64_t result, const sigset_t *mask)
{
    int number = qut_sampling_signal();
    return result < 0 && errno == EINTR && number != 0 && mask && os_signal_waits(number, mask);
}

void agent_blocked_leave_for_good(void)
{
    agent_lock_wait_was_left();
    end(QUT_TOTAL_BLOCKED_CALLS, NULL, 0);
    agent_thread.inside = 0;
}

// A hook inside a hook stands further in, one behind it in the same place or further out; unless it is on a stack of
// its own.
bool agent_was_left(uintptr_t here)
{
    if (here < agent_thread.inside)
        return false;
    stack_t stack;
    if (sigaltstack(NULL, &stack) || stack.ss_flags & SS_ONSTACK)
        return false;
    agent_blocked_leave_for_good();
    return true;
}

__attribute__((noinline)) static void release_joiners(const void *self)
{
    if (!agent_enter(AGENT_SYNC_LOCK))
        return;
    agent_lock_releases(self, QUT_SAMPLE_WAKE, LOCK_RELEASED_ALONE);
    agent_leave();
}

void agent_blocked_thread_ends(void)
{
    if (agent_thread.inside)
        agent_blocked_leave_for_good();
    const void *self = (const void *)pthread_self();
    if (agent_lock_has_waiters(self))
        release_joiners(self);
}

// SPDX-License-Identifier: Apache-2.0
// Sleeping, and waiting for signals and children.
#include "agent/blocked.h"
#include "agent/real.h"

EXPORTED unsigned int sleep(unsigned int seconds)
{
    if (!agent_blocked_enter(AGENT_SYNC_SLEEP, QUT_SAMPLE_SLEEP))
        return agent_real()->sleep(seconds);
    return (unsigned int)agent_blocked_leave(agent_real()->sleep(seconds), -1, 0);
}

EXPORTED int usleep(useconds_t microseconds)
{
    if (!agent_blocked_enter(AGENT_SYNC_SLEEP, QUT_SAMPLE_SLEEP))
        return agent_real()->usleep(microseconds);
    return (int)agent_blocked_leave(agent_real()->usleep(microseconds), -1, 0);
}

EXPORTED int nanosleep(const struct timespec *time, struct timespec *left)
{
    if (!agent_blocked_enter(AGENT_SYNC_SLEEP, QUT_SAMPLE_SLEEP))
        return agent_real()->nanosleep(time, left);
    return (int)agent_blocked_leave(agent_real()->nanosleep(time, left), -1, 0);
}

EXPORTED int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    if (!agent_blocked_enter(AGENT_SYNC_SLEEP, QUT_SAMPLE_SLEEP))
        return agent_real()->clock_nanosleep(clock, flags, time, left);
    return (int)agent_blocked_leave(agent_real()->clock_nanosleep(clock, flags, time, left), -1, 0);
}

EXPORTED int thrd_sleep(const struct timespec *time, struct timespec *left)
{
    if (!agent_blocked_enter(AGENT_SYNC_SLEEP, QUT_SAMPLE_SLEEP))
        return agent_real()->thrd_sleep(time, left);
    return (int)agent_blocked_leave(agent_real()->thrd_sleep(time, left), -1, 0);
}

EXPORTED int pause(void)
{
    if (!agent_blocked_enter(AGENT_SYNC_SLEEP, QUT_SAMPLE_WAIT))
        return agent_real()->pause();
    return (int)agent_blocked_leave(agent_real()->pause(), -1, 0);
}

static int suspend(const sigset_t *mask)
{
    int result;
    sigset_t without;
    mask = agent_blocked_mask(mask, &without);
    do
        result = agent_real()->sigsuspend(mask);
    while (agent_blocked_again(result, mask));
    return result;
}

EXPORTED int sigsuspend(const sigset_t *mask)
{
    if (!agent_blocked_enter(AGENT_SYNC_SLEEP, QUT_SAMPLE_WAIT))
        return suspend(mask);
    return (int)agent_blocked_leave(suspend(mask), -1, 0);
}

EXPORTED int sigwait(const sigset_t *restrict signals, int *restrict signal_number)
{
    if (!agent_blocked_enter(AGENT_SYNC_SLEEP, QUT_SAMPLE_WAIT))
        return agent_real()->sigwait(signals, signal_number);
    return (int)agent_blocked_leave(agent_real()->sigwait(signals, signal_number), -1, 0);
}

EXPORTED int sigwaitinfo(const sigset_t *restrict signals, siginfo_t *restrict information)
{
    if (!agent_blocked_enter(AGENT_SYNC_SLEEP, QUT_SAMPLE_WAIT))
        return agent_real()->sigwaitinfo(signals, information);
    return (int)agent_blocked_leave(agent_real()->sigwaitinfo(signals, information), -1, 0);
}

EXPORTED int sigtimedwait(const sigset_t *restrict signals, siginfo_t *restrict information,
                          const struct timespec *restrict timeout)
{
    if (!agent_blocked_enter(AGENT_SYNC_SLEEP, QUT_SAMPLE_WAIT))
        return agent_real()->sigtimedwait(signals, information, timeout);
    return (int)agent_blocked_leave(agent_real()->sigtimedwait(signals, information, timeout), -1, 0);
}

EXPORTED pid_t wait(int *status)
{
    if (!agent_blocked_enter(AGENT_SYNC_SLEEP, QUT_SAMPLE_WAIT))
        return agent_real()->wait(status);
    return (pid_t)agent_blocked_leave(agent_real()->wait(status), -1, 0);
}

EXPORTED pid_t waitpid(pid_t pid, int *status, int options)
{
    if (!agent_blocked_enter(AGENT_SYNC_SLEEP, QUT_SAMPLE_WAIT))
        return agent_real()->waitpid(pid, status, options);
    return (pid_t)agent_blocked_leave(agent_real()->waitpid(pid, status, options), -1, 0);
}

EXPORTED int waitid(idtype_t type, id_t id, siginfo_t *information, int options)
{
    if (!agent_blocked_enter(AGENT_SYNC_SLEEP, QUT_SAMPLE_WAIT))
        return agent_real()->waitid(type, id, information, options);
    return (int)agent_blocked_leave(agent_real()->waitid(type, id, information, options), -1, 0);
}

EXPORTED pid_t wait3(int *status, int options, struct rusage *usage)
{
    if (!agent_blocked_enter(AGENT_SYNC_SLEEP, QUT_SAMPLE_WAIT))
        return agent_real()->wait3(status, options, usage);
    return (pid_t)agent_blocked_leave(agent_real()->wait3(status, options, usage), -1, 0);
}

EXPORTED pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    if (!agent_blocked_enter(AGENT_SYNC_SLEEP, QUT_SAMPLE_WAIT))
        return agent_real()->wait4(pid, status, options, usage);
    return (pid_t)agent_blocked_leave(agent_real()->wait4(pid, status, options, usage), -1, 0);
}

// SPDX-License-Identifier: Apache-2.0
// Waiting for one of many descriptors. A mask of the program's for the time of the call is passed on as it is: while a
// call is guarded no tick comes, whatever the mask lets through; where it is not, agent_blocked_again says what can
// happen.
#include "agent/blocked.h"
#include "agent/real.h"

EXPORTED int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    if (!agent_blocked_enter(AGENT_SYNC_POLL, QUT_SAMPLE_POLL))
        return agent_real()->poll(fds, count, timeout_ms);
    return (int)agent_blocked_leave(agent_real()->poll(fds, count, timeout_ms), -1, 0);
}

static int again_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    int result;
    sigset_t without;
    mask = agent_blocked_mask(mask, &without);
    do
        result = agent_real()->ppoll(fds, count, timeout, mask);
    while (agent_blocked_again(result, mask));
    return result;
}

EXPORTED int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    if (!agent_blocked_enter(AGENT_SYNC_POLL, QUT_SAMPLE_POLL))
        return again_ppoll(fds, count, timeout, mask);
    return (int)agent_blocked_leave(again_ppoll(fds, count, timeout, mask), -1, 0);
}

EXPORTED int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room)
{
    if (!agent_blocked_enter(AGENT_SYNC_POLL, QUT_SAMPLE_POLL))
        return agent_real()->__poll_chk(fds, count, timeout_ms, room);
    return (int)agent_blocked_leave(agent_real()->__poll_chk(fds, count, timeout_ms, room), -1, 0);
}

static int again_ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask,
                           size_t room)
{
    int result;
    sigset_t without;
    mask = agent_blocked_mask(mask, &without);
    do
        result = agent_real()->__ppoll_chk(fds, count, timeout, mask, room);
    while (agent_blocked_again(result, mask));
    return result;
}

EXPORTED int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask,
                         size_t room)
{
    if (!agent_blocked_enter(AGENT_SYNC_POLL, QUT_SAMPLE_POLL))
        return again_ppoll_chk(fds, count, timeout, mask, room);
    return (int)agent_blocked_leave(again_ppoll_chk(fds, count, timeout, mask, room), -1, 0);
}

EXPORTED int select(int count, fd_set *restrict to_read, fd_set *restrict to_write, fd_set *restrict others,
                    struct timeval *restrict timeout)
{
    if (!agent_blocked_enter(AGENT_SYNC_POLL, QUT_SAMPLE_POLL))
        return agent_real()->select(count, to_read, to_write, others, timeout);
    return (int)agent_blocked_leave(agent_real()->select(count, to_read, to_write, others, timeout), -1, 0);
}

static int again_pselect(int count, fd_set *to_read, fd_set *to_write, fd_set *others, const struct timespec *timeout,
                         const sigset_t *mask)
{
    int result;
    sigset_t without;
    mask = agent_blocked_mask(mask, &without);
    do
        result = agent_real()->pselect(count, to_read, to_write, others, timeout, mask);
    while (agent_blocked_again(result, mask));
    return result;
}

EXPORTED int pselect(int count, fd_set *restrict to_read, fd_set *restrict to_write, fd_set *restrict others,
                     const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
    if (!agent_blocked_enter(AGENT_SYNC_POLL, QUT_SAMPLE_POLL))
        return again_pselect(count, to_read, to_write, others, timeout, mask);
    return (int)agent_blocked_leave(again_pselect(count, to_read, to_write, others, timeout, mask), -1, 0);
}

EXPORTED int epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms)
{
    if (!agent_blocked_enter(AGENT_SYNC_POLL, QUT_SAMPLE_POLL))
        return agent_real()->epoll_wait(fd, events, count, timeout_ms);
    return (int)agent_blocked_leave(agent_real()->epoll_wait(fd, events, count, timeout_ms), fd, 0);
}

static int again_epoll_pwait(int fd, struct epoll_event *events, int count, int timeout_ms, const sigset_t *mask)
{
    int result;
    sigset_t without;
    mask = agent_blocked_mask(mask, &without);
    do
        result = agent_real()->epoll_pwait(fd, events, count, timeout_ms, mask);
    while (agent_blocked_again(result, mask));
    return result;
}

EXPORTED int epoll_pwait(int fd, struct epoll_event *events, int count, int timeout_ms, const sigset_t *mask)
{
    if (!agent_blocked_enter(AGENT_SYNC_POLL, QUT_SAMPLE_POLL))
        return again_epoll_pwait(fd, events, count, timeout_ms, mask);
    return (int)agent_blocked_leave(again_epoll_pwait(fd, events, count, timeout_ms, mask), fd, 0);
}

static int again_epoll_pwait2(int fd, struct epoll_event *events, int count, const struct timespec *timeout,
                              const sigset_t *mask)
{
    int result;
    sigset_t without;
    mask = agent_blocked_mask(mask, &without);
    do
        result = agent_real()->epoll_pwait2(fd, events, count, timeout, mask);
    while (agent_blocked_again(result, mask));
    return result;
}

EXPORTED int epoll_pwait2(int fd, struct epoll_event *events, int count, const struct timespec *timeout,
                          const sigset_t *mask)
{
    if (!agent_blocked_enter(AGENT_SYNC_POLL, QUT_SAMPLE_POLL))
        return again_epoll_pwait2(fd, events, count, timeout, mask);
    return (int)agent_blocked_leave(again_epoll_pwait2(fd, events, count, timeout, mask), fd, 0);
}

// SPDX-License-Identifier: Apache-2.0
// Sockets. A connection is asked for as something is written, and accepted as something is read.
#include "agent/blocked.h"
#include "agent/real.h"

EXPORTED ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->recv(fd, bytes, size, flags);
    return (ssize_t)agent_blocked_leave(agent_real()->recv(fd, bytes, size, flags), fd, size);
}

EXPORTED ssize_t recvfrom(int fd, void *restrict bytes, size_t size, int flags, __SOCKADDR_ARG address,
                          socklen_t *restrict address_size)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->recvfrom(fd, bytes, size, flags, address, address_size);
    return (ssize_t)agent_blocked_leave(agent_real()->recvfrom(fd, bytes, size, flags, address, address_size), fd,
                                        size);
}

EXPORTED ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->recvmsg(fd, message, flags);
    return (ssize_t)agent_blocked_leave(agent_real()->recvmsg(fd, message, flags), fd, 0);
}

EXPORTED int recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags, struct timespec *timeout)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->recvmmsg(fd, messages, count, flags, timeout);
    return (int)agent_blocked_leave(agent_real()->recvmmsg(fd, messages, count, flags, timeout), fd, 0);
}

EXPORTED ssize_t __recv_chk(int fd, void *bytes, size_t size, size_t room, int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->__recv_chk(fd, bytes, size, room, flags);
    return (ssize_t)agent_blocked_leave(agent_real()->__recv_chk(fd, bytes, size, room, flags), fd, size);
}

EXPORTED ssize_t __recvfrom_chk(int fd, void *bytes, size_t size, size_t room, int flags, struct sockaddr *address,
                                socklen_t *address_size)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->__recvfrom_chk(fd, bytes, size, room, flags, address, address_size);
    return (ssize_t)agent_blocked_leave(
        agent_real()->__recvfrom_chk(fd, bytes, size, room, flags, address, address_size), fd, size);
}

EXPORTED ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->send(fd, bytes, size, flags);
    return (ssize_t)agent_blocked_leave(agent_real()->send(fd, bytes, size, flags), fd, size);
}

EXPORTED ssize_t sendto(int fd, const void *bytes, size_t size, int flags, __CONST_SOCKADDR_ARG address,
                        socklen_t address_size)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->sendto(fd, bytes, size, flags, address, address_size);
    return (ssize_t)agent_blocked_leave(agent_real()->sendto(fd, bytes, size, flags, address, address_size), fd, size);
}

EXPORTED ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->sendmsg(fd, message, flags);
    return (ssize_t)agent_blocked_leave(agent_real()->sendmsg(fd, message, flags), fd, 0);
}

EXPORTED int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->sendmmsg(fd, messages, count, flags);
    return (int)agent_blocked_leave(agent_real()->sendmmsg(fd, messages, count, flags), fd, 0);
}

EXPORTED int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t address_size)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->connect(fd, address, address_size);
    return (int)agent_blocked_leave(agent_real()->connect(fd, address, address_size), fd, 0);
}

EXPORTED int accept(int fd, __SOCKADDR_ARG address, socklen_t *restrict address_size)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->accept(fd, address, address_size);
    return (int)agent_blocked_leave(agent_real()->accept(fd, address, address_size), fd, 0);
}

EXPORTED int accept4(int fd, __SOCKADDR_ARG address, socklen_t *restrict address_size, int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->accept4(fd, address, address_size, flags);
    return (int)agent_blocked_leave(agent_real()->accept4(fd, address, address_size, flags), fd, 0);
}

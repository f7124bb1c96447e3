// SPDX-License-Identifier: Apache-2.0
// Reading and writing. What stdio reads and writes inside libc does not come by here.
#include "agent/blocked.h"
#include "agent/real.h"

EXPORTED ssize_t read(int fd, void *bytes, size_t size)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->read(fd, bytes, size);
    return (ssize_t)agent_blocked_leave(agent_real()->read(fd, bytes, size), fd, size);
}

EXPORTED ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->pread(fd, bytes, size, offset);
    return (ssize_t)agent_blocked_leave(agent_real()->pread(fd, bytes, size, offset), fd, size);
}

EXPORTED ssize_t pread64(int fd, void *bytes, size_t size, off64_t offset)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->pread64(fd, bytes, size, offset);
    return (ssize_t)agent_blocked_leave(agent_real()->pread64(fd, bytes, size, offset), fd, size);
}

EXPORTED ssize_t readv(int fd, const struct iovec *parts, int count)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->readv(fd, parts, count);
    return (ssize_t)agent_blocked_leave(agent_real()->readv(fd, parts, count), fd, 0);
}

EXPORTED ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->preadv(fd, parts, count, offset);
    return (ssize_t)agent_blocked_leave(agent_real()->preadv(fd, parts, count, offset), fd, 0);
}

EXPORTED ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->preadv64(fd, parts, count, offset);
    return (ssize_t)agent_blocked_leave(agent_real()->preadv64(fd, parts, count, offset), fd, 0);
}

EXPORTED ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->preadv2(fd, parts, count, offset, flags);
    return (ssize_t)agent_blocked_leave(agent_real()->preadv2(fd, parts, count, offset, flags), fd, 0);
}

EXPORTED ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->preadv64v2(fd, parts, count, offset, flags);
    return (ssize_t)agent_blocked_leave(agent_real()->preadv64v2(fd, parts, count, offset, flags), fd, 0);
}

EXPORTED ssize_t __read_chk(int fd, void *bytes, size_t size, size_t room)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->__read_chk(fd, bytes, size, room);
    return (ssize_t)agent_blocked_leave(agent_real()->__read_chk(fd, bytes, size, room), fd, size);
}

EXPORTED ssize_t __pread_chk(int fd, void *bytes, size_t size, off_t offset, size_t room)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->__pread_chk(fd, bytes, size, offset, room);
    return (ssize_t)agent_blocked_leave(agent_real()->__pread_chk(fd, bytes, size, offset, room), fd, size);
}

EXPORTED ssize_t __pread64_chk(int fd, void *bytes, size_t size, off64_t offset, size_t room)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->__pread64_chk(fd, bytes, size, offset, room);
    return (ssize_t)agent_blocked_leave(agent_real()->__pread64_chk(fd, bytes, size, offset, room), fd, size);
}

EXPORTED ssize_t write(int fd, const void *bytes, size_t size)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->write(fd, bytes, size);
    return (ssize_t)agent_blocked_leave(agent_real()->write(fd, bytes, size), fd, size);
}

EXPORTED ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->pwrite(fd, bytes, size, offset);
    return (ssize_t)agent_blocked_leave(agent_real()->pwrite(fd, bytes, size, offset), fd, size);
}

EXPORTED ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->pwrite64(fd, bytes, size, offset);
    return (ssize_t)agent_blocked_leave(agent_real()->pwrite64(fd, bytes, size, offset), fd, size);
}

EXPORTED ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->writev(fd, parts, count);
    return (ssize_t)agent_blocked_leave(agent_real()->writev(fd, parts, count), fd, 0);
}

EXPORTED ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->pwritev(fd, parts, count, offset);
    return (ssize_t)agent_blocked_leave(agent_real()->pwritev(fd, parts, count, offset), fd, 0);
}

EXPORTED ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->pwritev64(fd, parts, count, offset);
    return (ssize_t)agent_blocked_leave(agent_real()->pwritev64(fd, parts, count, offset), fd, 0);
}

EXPORTED ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->pwritev2(fd, parts, count, offset, flags);
    return (ssize_t)agent_blocked_leave(agent_real()->pwritev2(fd, parts, count, offset, flags), fd, 0);
}

EXPORTED ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->pwritev64v2(fd, parts, count, offset, flags);
    return (ssize_t)agent_blocked_leave(agent_real()->pwritev64v2(fd, parts, count, offset, flags), fd, 0);
}

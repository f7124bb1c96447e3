// SPDX-License-Identifier: Apache-2.0
// Files as a whole: written to disk, copied, locked; and System V's queues and semaphores.
#include <stdarg.h>

#include "agent/blocked.h"
#include "agent/real.h"

EXPORTED int fsync(int fd)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->fsync(fd);
    return (int)agent_blocked_leave(agent_real()->fsync(fd), fd, 0);
}

EXPORTED int fdatasync(int fd)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->fdatasync(fd);
    return (int)agent_blocked_leave(agent_real()->fdatasync(fd), fd, 0);
}

EXPORTED int msync(void *start, size_t size, int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->msync(start, size, flags);
    return (int)agent_blocked_leave(agent_real()->msync(start, size, flags), -1, size);
}

EXPORTED int sync_file_range(int fd, off64_t offset, off64_t size, unsigned int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->sync_file_range(fd, offset, size, flags);
    return (int)agent_blocked_leave(agent_real()->sync_file_range(fd, offset, size, flags), fd, (size_t)size);
}

EXPORTED ssize_t sendfile(int to, int from, off_t *offset, size_t size)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->sendfile(to, from, offset, size);
    return (ssize_t)agent_blocked_leave(agent_real()->sendfile(to, from, offset, size), to, size);
}

EXPORTED ssize_t sendfile64(int to, int from, off64_t *offset, size_t size)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->sendfile64(to, from, offset, size);
    return (ssize_t)agent_blocked_leave(agent_real()->sendfile64(to, from, offset, size), to, size);
}

EXPORTED ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size, unsigned int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->splice(from, from_offset, to, to_offset, size, flags);
    return (ssize_t)agent_blocked_leave(agent_real()->splice(from, from_offset, to, to_offset, size, flags), to, size);
}

EXPORTED ssize_t tee(int from, int to, size_t size, unsigned int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->tee(from, to, size, flags);
    return (ssize_t)agent_blocked_leave(agent_real()->tee(from, to, size, flags), to, size);
}

EXPORTED ssize_t vmsplice(int fd, const struct iovec *parts, size_t count, unsigned int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->vmsplice(fd, parts, count, flags);
    return (ssize_t)agent_blocked_leave(agent_real()->vmsplice(fd, parts, count, flags), fd, 0);
}

EXPORTED ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size,
                                 unsigned int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->copy_file_range(from, from_offset, to, to_offset, size, flags);
    return (ssize_t)agent_blocked_leave(agent_real()->copy_file_range(from, from_offset, to, to_offset, size, flags),
                                        to, size);
}

EXPORTED int flock(int fd, int operation)
{
    if (!agent_blocked_enter(AGENT_SYNC_LOCK, QUT_SAMPLE_LOCK))
        return agent_real()->flock(fd, operation);
    return (int)agent_blocked_leave(agent_real()->flock(fd, operation), fd, 0);
}

EXPORTED int lockf(int fd, int command, off_t size)
{
    if (!agent_blocked_enter(AGENT_SYNC_LOCK, QUT_SAMPLE_LOCK))
        return agent_real()->lockf(fd, command, size);
    return (int)agent_blocked_leave(agent_real()->lockf(fd, command, size), fd, 0);
}

EXPORTED int lockf64(int fd, int command, off64_t size)
{
    if (!agent_blocked_enter(AGENT_SYNC_LOCK, QUT_SAMPLE_LOCK))
        return agent_real()->lockf64(fd, command, size);
    return (int)agent_blocked_leave(agent_real()->lockf64(fd, command, size), fd, 0);
}

// The argument is a word, whatever the command makes of it: as libc takes it.
__attribute__((always_inline)) static inline bool may_wait(int command)
{
    return command == F_SETLKW || command == F_OFD_SETLKW;
}

EXPORTED int fcntl(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (!may_wait(command) || !agent_blocked_enter(AGENT_SYNC_LOCK, QUT_SAMPLE_LOCK))
        return agent_real()->fcntl(fd, command, argument);
    return (int)agent_blocked_leave(agent_real()->fcntl(fd, command, argument), fd, 0);
}

EXPORTED int fcntl64(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (!may_wait(command) || !agent_blocked_enter(AGENT_SYNC_LOCK, QUT_SAMPLE_LOCK))
        return agent_real()->fcntl64(fd, command, argument);
    return (int)agent_blocked_leave(agent_real()->fcntl64(fd, command, argument), fd, 0);
}

EXPORTED ssize_t msgrcv(int queue, void *message, size_t size, long type, int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))
        return agent_real()->msgrcv(queue, message, size, type, flags);
    return (ssize_t)agent_blocked_leave(agent_real()->msgrcv(queue, message, size, type, flags), -1, size);
}

EXPORTED int msgsnd(int queue, const void *message, size_t size, int flags)
{
    if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_WRITE))
        return agent_real()->msgsnd(queue, message, size, flags);
    return (int)agent_blocked_leave(agent_real()->msgsnd(queue, message, size, flags), -1, size);
}

EXPORTED int semop(int set, struct sembuf *operations, size_t count)
{
    if (!agent_blocked_enter(AGENT_SYNC_LOCK, QUT_SAMPLE_WAIT))
        return agent_real()->semop(set, operations, count);
    return (int)agent_blocked_leave(agent_real()->semop(set, operations, count), -1, 0);
}

EXPORTED int semtimedop(int set, struct sembuf *operations, size_t count, const struct timespec *timeout)
{
    if (!agent_blocked_enter(AGENT_SYNC_LOCK, QUT_SAMPLE_WAIT))
        return agent_real()->semtimedop(set, operations, count, timeout);
    return (int)agent_blocked_leave(agent_real()->semtimedop(set, operations, count, timeout), -1, 0);
}

// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/probe.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracer/record/endpoint.h"

static int denied(struct base_error *error, const char *call)
{
    return base_fail(error, BASE_ERR_IO, "", 0, "%s: %s", call, strerror(errno));
}

static int try_to_wait(struct base_error *error)
{
    struct epoll_event event = {.events = EPOLLIN};
    uint32_t word = 0;
    if (syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) < 0)
        return denied(error, "futex");
    int fd = epoll_create1(EPOLL_CLOEXEC), watched = eventfd(0, EFD_CLOEXEC), result = 0;
    if (fd < 0)
        result = denied(error, "epoll_create");
    else if (watched < 0)
        result = denied(error, "eventfd");
    else if (epoll_ctl(fd, EPOLL_CTL_ADD, watched, &event) != 0)
        result = denied(error, "epoll_ctl");
    else if (epoll_wait(fd, &event, 1, 0) < 0 && errno != EINTR)
        result = denied(error, "epoll_wait");
    else if (poll(NULL, 0, 0) < 0 && errno != EINTR)
        result = denied(error, "poll");
    else if (waitpid(-1, NULL, WNOHANG) < 0 && errno != ECHILD)
        result = denied(error, "wait4");
    if (fd >= 0)
        close(fd);
    if (watched >= 0)
        close(watched);
    return result;
}

static bool is_nobody_there(int error)
{
    return error == EAGAIN || error == EINTR;
}

// A name that the kernel chooses.
static int try_to_listen(struct base_error *error)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), copy = -1, result = 0;
    if (fd < 0)
        return denied(error, "socket");
    if (bind(fd, (const struct sockaddr *)&address, sizeof address.sun_family) != 0)
        result = denied(error, "bind");
    else if (listen(fd, 1) != 0)
        result = denied(error, "listen");
    else if (accept4(fd, NULL, NULL, SOCK_CLOEXEC) < 0 && !is_nobody_there(errno))
        result = denied(error, "accept4");
    else if ((copy = record_dup_cloexec(fd)) < 0)
        result = denied(error, "fcntl");
    close(fd);
    if (copy >= 0)
        close(copy);
    return result;
}

static int try_to_talk(struct base_error *error)
{
    int ends[2], result = 0;
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    // The recorder itself makes no pair.
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return 0;
    if (sendmsg(ends[0], &message, MSG_NOSIGNAL) != 1)
        result = denied(error, "sendmsg");
    else if (recvmsg(ends[1], &message, MSG_DONTWAIT) != 1)
        result = denied(error, "recvmsg");
    close(ends[0]);
    close(ends[1]);
    return result;
}

// Or it cannot be told, since a filter denies the question.
static bool may_be_filtered(void)
{
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0;
}

int record_probe(struct base_error *error)
{
    if (!may_be_filtered())
        return 0;
    return try_to_wait(error) == 0 && try_to_listen(error) == 0 ? try_to_talk(error) : -1;
}

// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

int record_loop_begin(struct loop *loop, struct base_error *error)
{
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return loop->epoll_fd >= 0 ? 0 : base_fail(error, BASE_ERR_IO, "", 0, "epoll_create: %s", strerror(errno));
}

void record_loop_end(struct loop *loop)
{
    if (loop->epoll_fd >= 0)
        close(loop->epoll_fd);
    loop->epoll_fd = -1;
}

int record_loop_add(struct loop *loop, struct loop_source *source, struct base_error *error)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) == 0)
        return 0;
    return base_fail(error, BASE_ERR_IO, "", 0, "epoll_ctl: %s", strerror(errno));
}

void record_loop_remove(struct loop *loop, struct loop_source *source)
{
    if (source->fd < 0)
        return;
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
    close(source->fd);
    source->fd = -1;
}

// One event at a time: what one source does may take another one away.
void record_loop_wait(struct loop *loop, int timeout_ms)
{
    enum { AT_MOST = 256 }; // then the caller looks after its own things
    struct epoll_event event;
    for (int i = 0; i < AT_MOST && epoll_wait(loop->epoll_fd, &event, 1, i ? 0 : timeout_ms) == 1; i++) {
        struct loop_source *source = event.data.ptr;
        source->ready(source);
    }
}

int record_loop_event(void)
{
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void record_loop_event_set(int fd)
{
    const uint64_t one = 1;
    // Fails where it was set 2^64 times: then it can be read all the same.
    if (fd >= 0 && write(fd, &one, sizeof one) < 0)
        return;
}

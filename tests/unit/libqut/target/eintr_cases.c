// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/libqut/target/eintr_cases.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LONG_S = 1000, LARGE_BYTES = 1 << 20 };
static const struct timespec long_time = {LONG_S, 0};
static char large[LARGE_BYTES];

static int nothing(void)
{
    return 0;
}

// ---- epoll

static int new_epoll(void)
{
    return epoll_create1(0);
}

static long wait_epoll(int fd)
{
    struct epoll_event event;
    return epoll_wait(fd, &event, 1, -1);
}

static long wait_epoll_timed(int fd)
{
    struct epoll_event event;
    return epoll_wait(fd, &event, 1, LONG_S * 1000);
}

static long wait_epoll_masked(int fd)
{
    struct epoll_event event;
    sigset_t none;
    sigemptyset(&none);
    return epoll_pwait(fd, &event, 1, -1, &none);
}

static int new_epoll2(void)
{
    int fd = new_epoll();
    struct epoll_event event;
    const struct timespec at_once = {0, 0};
    return syscall(SYS_epoll_pwait2, fd, &event, 1, &at_once, NULL, 8) == 0 ? fd : -1;
}

static long wait_epoll2(int fd)
{
    struct epoll_event event;
    return syscall(SYS_epoll_pwait2, fd, &event, 1, &long_time, NULL, 8);
}

// ---- System V, signals

static int new_semaphore(void)
{
    return semget(IPC_PRIVATE, 1, 0600);
}

static long wait_semaphore(int id)
{
    struct sembuf down = {0, -1, 0};
    return semop(id, &down, 1);
}

static long wait_semaphore_timed(int id)
{
    struct sembuf down = {0, -1, 0};
    return semtimedop(id, &down, 1, &long_time);
}

static int new_queue(void)
{
    return msgget(IPC_PRIVATE, 0600);
}

static long receive_message(int id)
{
    struct {
        long kind;
        char text[8];
    } message;
    return msgrcv(id, &message, sizeof message.text, 1, 0);
}

static sigset_t one_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return set;
}

static long wait_signal(int unused)
{
    (void)unused;
    const sigset_t set = one_signal();
    return sigwaitinfo(&set, NULL);
}

static long wait_signal_timed(int unused)
{
    (void)unused;
    const sigset_t set = one_signal();
    return sigtimedwait(&set, NULL, &long_time);
}

static long wait_pause(int unused)
{
    (void)unused;
    return pause();
}

// ---- asynchronous I/O

// One for all cases; 0: not made yet.
static uintptr_t aio_context;

static int new_aio(void)
{
    return aio_context || syscall(SYS_io_setup, 4, &aio_context) == 0 ? 0 : -1;
}

static long get_events(int unused)
{
    (void)unused;
    char event[32];
    return syscall(SYS_io_getevents, aio_context, 1L, 1L, event, NULL);
}

static long get_events_masked(int unused)
{
    (void)unused;
    char event[32];
    return syscall(SYS_io_pgetevents, aio_context, 1L, 1L, event, NULL, NULL);
}

static int new_ring(void)
{
    uint32_t parameters[30] = {0}; // struct io_uring_params
    return (int)syscall(SYS_io_uring_setup, 4, parameters);
}

static long wait_ring(int fd)
{
    return syscall(SYS_io_uring_enter, fd, 0, 1, 1 /* IORING_ENTER_GETEVENTS */, NULL, 0);
}

// ---- sockets

static int new_pair(int option)
{
    int ends[2];
    const struct timeval time = {LONG_S, 0};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 ||
        (option && setsockopt(ends[0], SOL_SOCKET, option, &time, sizeof time) != 0))
        return -1;
    return ends[0];
}

static int plain_socket(void)
{
    return new_pair(0);
}

static int timed_socket(void)
{
    return new_pair(SO_RCVTIMEO);
}

static long receive(int fd)
{
    char byte;
    return recv(fd, &byte, 1, 0);
}

static long read_one(int fd)
{
    char bytes[8];
    return read(fd, bytes, sizeof bytes);
}

static long read_vector(int fd)
{
    char bytes[8];
    const struct iovec vector = {bytes, sizeof bytes};
    return readv(fd, &vector, 1);
}

static long receive_vector(int fd)
{
    char bytes[8];
    struct iovec vector = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    return recvmsg(fd, &message, 0);
}

// Two, of which one is there.
static long receive_several(int fd)
{
    char bytes[2][8];
    struct iovec vectors[] = {{bytes[0], 8}, {bytes[1], 8}};
    struct mmsghdr messages[] = {{.msg_hdr = {.msg_iov = &vectors[0], .msg_iovlen = 1}},
                                 {.msg_hdr = {.msg_iov = &vectors[1], .msg_iovlen = 1}}};
    return recvmmsg(fd, messages, 2, 0, NULL);
}

// Of which a part is there.
static int half_full_socket(void)
{
    int ends[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && write(ends[1], "four", 4) == 4 ? ends[0] : -1;
}

static long receive_all(int fd)
{
    char bytes[8];
    return recv(fd, bytes, sizeof bytes, MSG_WAITALL);
}

static long send_large(int fd)
{
    return send(fd, large, sizeof large, 0);
}

static int timed_listener(void)
{
    const struct timeval time = {LONG_S, 0};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un own = {.sun_family = AF_UNIX}; // any abstract name
    if (bind(fd, (struct sockaddr *)&own, sizeof own.sun_family) != 0 || listen(fd, 0) != 0)
        return -1;
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) == 0 ? fd : -1;
}

static int listener(void)
{
    const struct timeval never = {0, 0};
    int fd = timed_listener();
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &never, sizeof never) == 0 ? fd : -1;
}

static long accept_one(int fd)
{
    return accept(fd, NULL, NULL);
}

static long accept_flags(int fd)
{
    return accept4(fd, NULL, NULL, SOCK_CLOEXEC);
}

// A socket whose other side has no room for one more in its queue.
static struct sockaddr_un full_name;
static socklen_t full_name_size = sizeof full_name;

static int connecting_socket(void)
{
    const struct timeval time = {LONG_S, 0};
    int full = listener();
    if (full < 0 || getsockname(full, (struct sockaddr *)&full_name, &full_name_size) != 0)
        return -1;
    int first = socket(AF_UNIX, SOCK_STREAM, 0), second = socket(AF_UNIX, SOCK_STREAM, 0);
    return connect(first, (struct sockaddr *)&full_name, full_name_size) == 0 &&
                   setsockopt(second, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) == 0
               ? second
               : -1;
}

static long connect_full(int fd)
{
    return connect(fd, (struct sockaddr *)&full_name, full_name_size);
}

// ---- pipes, files

static int pipe_to_read(void)
{
    int ends[2];
    return pipe(ends) == 0 ? ends[0] : -1;
}

static int pipe_to_write(void)
{
    int ends[2];
    return pipe(ends) == 0 ? ends[1] : -1;
}

static long write_large(int fd)
{
    return write(fd, large, sizeof large);
}

static int new_eventfd(void)
{
    return eventfd(0, 0);
}

static int new_timer(void)
{
    return timerfd_create(CLOCK_MONOTONIC, 0);
}

static int new_inotify(void)
{
    return inotify_init1(0);
}

static long poll_pipe(int fd)
{
    struct pollfd wanted = {fd, POLLIN, 0};
    return poll(&wanted, 1, LONG_S * 1000);
}

static long select_pipe(int fd)
{
    fd_set wanted;
    FD_ZERO(&wanted);
    FD_SET(fd, &wanted);
    return select(fd + 1, &wanted, NULL, NULL, NULL);
}

static long sleep_long(int unused)
{
    (void)unused;
    return nanosleep(&long_time, NULL);
}

static uint32_t futex_word;

static long wait_futex(int unused)
{
    (void)unused;
    return syscall(SYS_futex, &futex_word, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
}

static long wait_futex_timed(int unused)
{
    (void)unused;
    return syscall(SYS_futex, &futex_word, 0, 0, &long_time, NULL, 0);
}

const struct eintr_case eintr_cases[] = {
    {"epoll_wait", NULL, new_epoll, wait_epoll, true},
    {"epoll_wait, timed", "epoll_wait", new_epoll, wait_epoll_timed, false},
    {"epoll_pwait", NULL, new_epoll, wait_epoll_masked, true},
    {"epoll_pwait2", "epoll_pwait2", new_epoll2, wait_epoll2, false},
    {"semop", NULL, new_semaphore, wait_semaphore, true}, // semtimedop in newer glibc
    {"semtimedop", "semtimedop", new_semaphore, wait_semaphore_timed, false},
    {"sigwaitinfo", NULL, nothing, wait_signal, true},
    {"sigtimedwait", "rt_sigtimedwait", nothing, wait_signal_timed, false},
    {"io_getevents", "io_getevents", new_aio, get_events, false},
    {"io_pgetevents", NULL, new_aio, get_events_masked, false},
    {"io_uring_enter", "io_uring_enter", new_ring, wait_ring, false},
    {"recv, SO_RCVTIMEO", "recv", timed_socket, receive, false},
    {"read, SO_RCVTIMEO", "read", timed_socket, read_one, false},
    {"readv, SO_RCVTIMEO", "readv", timed_socket, read_vector, false},
    {"recvmsg, SO_RCVTIMEO", "recvmsg", timed_socket, receive_vector, false},
    {"recvmmsg, half", "recvmmsg", half_full_socket, receive_several, false},
    {"recv, MSG_WAITALL, half", "recv", half_full_socket, receive_all, false},
    {"accept, SO_RCVTIMEO", "accept", timed_listener, accept_one, false},
    {"accept4, SO_RCVTIMEO", "accept4", timed_listener, accept_flags, false},
    {"connect, SO_SNDTIMEO", "connect", connecting_socket, connect_full, false},
    {"send, half", "send", plain_socket, send_large, false},
    {"write to a pipe, half", "write", pipe_to_write, write_large, false},
    {"recv", NULL, plain_socket, receive, false},
    {"read from a socket", NULL, plain_socket, read_one, false},
    {"recvmsg", NULL, plain_socket, receive_vector, false},
    {"accept", NULL, listener, accept_one, false},
    {"read from a pipe", NULL, pipe_to_read, read_one, false},
    {"eventfd", NULL, new_eventfd, read_one, false},
    {"timerfd", NULL, new_timer, read_one, false},
    {"inotify", NULL, new_inotify, read_one, false},
    {"msgrcv", NULL, new_queue, receive_message, false},
    {"poll", NULL, pipe_to_read, poll_pipe, false},
    {"select", NULL, pipe_to_read, select_pipe, false},
    {"nanosleep", NULL, nothing, sleep_long, false},
    {"pause", NULL, nothing, wait_pause, false},
    {"futex", NULL, nothing, wait_futex, false},
    {"futex, timed", NULL, nothing, wait_futex_timed, false},
};
const unsigned eintr_case_count = sizeof eintr_cases / sizeof *eintr_cases;

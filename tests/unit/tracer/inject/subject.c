// SPDX-License-Identifier: Apache-2.0
// A program that was not made for this: subject CALL | malloc | spin | load FILE | threads. It runs until it is told to
// stop, and counts what it would not see alone.
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/tracer/inject/subject.h"

enum { PAUSE_MS = 20, NS_PER_MS = 1000000 };

static struct subject_state *state;

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void count(long result, long wanted)
{
    if (result < 0 && errno == EINTR)
        state->eintr++;
    else if (result != wanted)
        state->wrong++;
    state->calls++;
}

static int input, listening;
static struct sockaddr_un name = {.sun_family = AF_UNIX};

// ---- one thread, always in the same call

static void call_nanosleep(void)
{
    uint64_t from = now_ns();
    const struct timespec pause = {0, PAUSE_MS * NS_PER_MS};
    count(nanosleep(&pause, NULL), 0);
    state->wrong += now_ns() - from < PAUSE_MS * NS_PER_MS;
}

static void call_poll(void)
{
    uint64_t from = now_ns();
    count(poll(NULL, 0, PAUSE_MS), 0);
    state->wrong += now_ns() - from < (PAUSE_MS - 1) * NS_PER_MS;
}

static void call_epoll(void)
{
    static int epoll = -1;
    struct epoll_event event;
    if (epoll < 0)
        epoll = epoll_create1(0);
    uint64_t from = now_ns();
    count(epoll_wait(epoll, &event, 1, PAUSE_MS), 0);
    state->wrong += now_ns() - from < (PAUSE_MS - 1) * NS_PER_MS;
}

static void call_semaphore(void)
{
    static sem_t semaphore;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PAUSE_MS * NS_PER_MS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    errno = 0;
    int result = sem_timedwait(&semaphore, &until);
    if (errno == EINTR)
        state->eintr++;
    else if (result != -1 || errno != ETIMEDOUT)
        state->wrong++;
    state->calls++;
}

static void call_read(void)
{
    char byte;
    count(read(input, &byte, 1), 1);
}

static void call_recv(void)
{
    char byte;
    count(recv(input, &byte, 1, 0), 1);
}

static void call_recv_timeout(void)
{
    char byte;
    const struct timeval long_time = {100, 0};
    setsockopt(input, SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof long_time);
    count(recv(input, &byte, 1, 0), 1);
}

// Awake about as long as asleep: it looks as if it ran, and sleeps when it is asked to stop.
static void call_recv_often(void)
{
    for (volatile unsigned spin = 0; spin < 30000; spin++)
        ;
    if (write(input, "x", 1) != 1)
        abort();
    call_recv_timeout();
}

static void call_accept(void)
{
    int fd = accept(listening, NULL, NULL);
    count(fd < 0 ? -1 : 0, 0);
    if (fd >= 0)
        close(fd);
}

// Whose system calls are filtered, though this filter lets all of them through.
static void call_filtered(void)
{
    static bool is_filtered;
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {1, &all};
    if (!is_filtered &&
        (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0))
        abort();
    is_filtered = true;
    call_nanosleep();
}

// Writes, answers and connects, from outside.
static void feed(int output, bool connects, bool answers)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (answers) {
        char byte;
        if (read(output, &byte, 1) != 1 || write(output, &byte, 1) != 1)
            _exit(0);
    }
    for (;;) {
        usleep(PAUSE_MS * 1000);
        if (connects) {
            int fd = socket(AF_UNIX, SOCK_STREAM, 0);
            connect(fd, (struct sockaddr *)&name, sizeof name);
            close(fd);
        } else if (write(output, "x", 1) != 1) {
            _exit(0);
        }
    }
}

static void begin_feeding(const char *call)
{
    int ends[2];
    bool connects = strcmp(call, "accept") == 0;
    bool sockets = strncmp(call, "recv", 4) == 0;
    if (!connects && !sockets && strcmp(call, "read") != 0)
        return;
    if ((sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) != 0)
        abort();
    input = ends[0];
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "qut-inject-%d", (int)getpid());
    listening = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&name, sizeof name) != 0 || listen(listening, 5) != 0)
        abort();
    if (fork() == 0)
        feed(ends[1], connects, strcmp(call, "recv_often") == 0);
}

// ---- busy

static void storm_malloc(void)
{
    for (unsigned i = 0; i < 1000; i++) {
        void *volatile memory = malloc(i * 37 % 5000);
        free(memory);
    }
    state->calls++;
}

// Registers that only the thread knows must stay as they are.
static void spin(void)
{
    double sum = 0;
    uint64_t x = 88172645463325252u;
    for (unsigned i = 0; i < 20000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        sum = sum + (double)(x % 1000) * 0.5;
    }
    static double first;
    static uint64_t first_x;
    if (first_x == 0) {
        first_x = x;
        first = sum;
    }
    double now = sum;
    state->wrong += x != first_x || memcmp(&now, &first, sizeof now) != 0;
    state->calls++;
}

static const char *file;

static void storm_load(void)
{
    void *handle = dlopen(file, RTLD_NOW);
    state->wrong += !handle;
    if (handle)
        dlclose(handle);
    usleep(100);
    state->calls++;
}

// ---- many threads

static void *one_of_many(void *number)
{
    unsigned which = (unsigned)(uintptr_t)number;
    for (unsigned i = 0; i < 5 && !state->stop; i++) {
        if (which % 4 == 0)
            storm_malloc();
        else if (which % 4 == 1)
            spin();
        else if (which % 4 == 2)
            call_nanosleep();
        else
            storm_load();
    }
    return NULL;
}

static void many_threads(void)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, one_of_many, (void *)i) != 0)
            abort();
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static const struct {
    const char *name;
    void (*once)(void);
} modes[] = {
    {"nanosleep", call_nanosleep},
    {"poll", call_poll},
    {"epoll_wait", call_epoll},
    {"sem_timedwait", call_semaphore},
    {"read", call_read},
    {"recv", call_recv},
    {"recv_timeout", call_recv_timeout},
    {"recv_often", call_recv_often},
    {"accept", call_accept},
    {"malloc", storm_malloc},
    {"spin", spin},
    {"load", storm_load},
    {"threads", many_threads},
    {"filtered", call_filtered},
};

int main(int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, SUBJECT_FD, 0);
    static struct subject_state own; // no test looks at it
    if (state == MAP_FAILED)
        state = &own;
    if (argc < 3)
        return 2;
    file = argv[2];
    void *volatile memory = malloc(1000);
    free(memory);
    begin_feeding(argv[1]);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        while (strcmp(modes[i].name, argv[1]) == 0 && !state->stop)
            modes[i].once();
    return 0;
}

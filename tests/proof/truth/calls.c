// SPDX-License-Identifier: Apache-2.0
// calls MS TIMES: calls that wait, each in a thread of its own, for MS ms, so many times; beside threads that work.
// A line for each: NAME TID NS EINTR SHORT WRONG MASK, NS being how long they took together, MASK how often the mask
// of signals was another one afterwards.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

static int wait_ms, times;
static int quiet[2], fed[2], wanted_feed[2], pair[2], listener, epoll;
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static uint64_t now_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

static struct timespec in_time(clockid_t clock)
{
    uint64_t until = now_ns(clock) + (uint64_t)wait_ms * NS_PER_MS;
    return (struct timespec){(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};
}

// ---- the calls: 0 where it ended as it should, else errno, or -1

static int ended(bool as_it_should)
{
    return as_it_should ? 0 : errno == EINTR ? EINTR : -1;
}

__attribute__((noinline)) static int do_nanosleep(void)
{
    struct timespec rest = {wait_ms / 1000, wait_ms % 1000 * NS_PER_MS};
    return ended(nanosleep(&rest, NULL) == 0);
}
__attribute__((noinline)) static int do_poll(void)
{
    struct pollfd wanted = {.fd = quiet[0], .events = POLLIN};
    return ended(poll(&wanted, 1, wait_ms) == 0);
}
__attribute__((noinline)) static int do_epoll_wait(void)
{
    struct epoll_event event;
    return ended(epoll_wait(epoll, &event, 1, wait_ms) == 0);
}
__attribute__((noinline)) static int do_sem_timedwait(void)
{
    struct timespec until = in_time(CLOCK_REALTIME);
    return ended(sem_timedwait(&semaphore, &until) != 0 && errno == ETIMEDOUT);
}
__attribute__((noinline)) static int do_cond_timedwait(void)
{
    struct timespec until = in_time(CLOCK_REALTIME);
    pthread_mutex_lock(&mutex);
    int result = pthread_cond_timedwait(&condition, &mutex, &until);
    pthread_mutex_unlock(&mutex);
    return result == ETIMEDOUT ? 0 : -1;
}
__attribute__((noinline)) static int do_recv(void)
{
    char byte;
    return ended(recv(pair[0], &byte, 1, 0) < 0 && errno == EAGAIN);
}
__attribute__((noinline)) static int do_accept(void)
{
    return ended(accept(listener, NULL, NULL) < 0 && errno == EAGAIN);
}
__attribute__((noinline)) static int do_read(void)
{
    char byte = 'r';
    if (write(wanted_feed[1], &byte, 1) != 1)
        return -1;
    return ended(read(fed[0], &byte, 1) == 1);
}
__attribute__((noinline)) static int do_wait4(void)
{
    int status;
    pid_t child = (pid_t)atoi(getenv("CHILD") ? getenv("CHILD") : "0");
    return ended(child && wait4(child, &status, 0, NULL) == child && status == 0);
}

static const struct {
    const char *name;
    int (*call)(void);
} calls[] = {{"nanosleep", do_nanosleep},
             {"poll", do_poll},
             {"epoll_wait", do_epoll_wait},
             {"sem_timedwait", do_sem_timedwait},
             {"cond_timedwait", do_cond_timedwait},
             {"recv", do_recv},
             {"accept", do_accept},
             {"read", do_read},
             {"wait4", do_wait4}};
enum { CALLS = sizeof calls / sizeof *calls };

// ---- the threads

static void *run(void *index)
{
    unsigned number = (unsigned)(uintptr_t)index, eintr = 0, wrong = 0, too_short = 0, mask = 0;
    uint64_t all_ns = 0, least_ns = (uint64_t)wait_ms * NS_PER_MS;
    sigset_t before, after; // only 8 bytes of them are written
    memset(&before, 0, sizeof before);
    memset(&after, 0, sizeof after);
    int count = strcmp(calls[number].name, "wait4") == 0 ? 1 : times;
    for (int i = 0; i < count; i++) {
        pthread_sigmask(SIG_BLOCK, NULL, &before);
        uint64_t from_ns = now_ns(CLOCK_MONOTONIC);
        int result = calls[number].call();
        uint64_t took_ns = now_ns(CLOCK_MONOTONIC) - from_ns;
        pthread_sigmask(SIG_BLOCK, NULL, &after);
        all_ns += took_ns;
        eintr += result == EINTR;
        wrong += result != 0 && result != EINTR;
        // SO_RCVTIMEO counts in ticks of the kernel, and the child's time began before the call.
        too_short += took_ns + 4 * NS_PER_MS < least_ns && count != 1;
        mask += memcmp(&before, &after, sizeof before) != 0;
    }
    printf("%s %ld %llu %u %u %u %u\n", calls[number].name, syscall(SYS_gettid), (unsigned long long)all_ns, eintr,
           too_short, wrong, mask);
    return NULL;
}

// Writes a byte some time after it was asked for.
static void *feed(void *unused)
{
    char byte;
    (void)unused;
    while (read(wanted_feed[0], &byte, 1) == 1 && byte == 'r') {
        struct timespec rest = {wait_ms / 1000, wait_ms % 1000 * NS_PER_MS};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
        if (write(fed[1], &byte, 1) != 1)
            abort();
    }
    return NULL;
}

static atomic_bool is_over;

static void *spin(void *unused)
{
    (void)unused;
    while (!atomic_load_explicit(&is_over, memory_order_relaxed))
        for (volatile int i = 0; i < 1000; i++)
            ;
    return NULL;
}

static bool prepare(void)
{
    struct timeval patience = {wait_ms / 1000, wait_ms % 1000 * 1000};
    struct sockaddr_un address = {.sun_family = AF_UNIX}; // the kernel gives it a name
    char text[16];
    pid_t child = fork();
    if (child == 0) {
        usleep((useconds_t)wait_ms * 1000);
        _exit(0);
    }
    snprintf(text, sizeof text, "%d", (int)child);
    setenv("CHILD", text, 1);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    epoll = epoll_create1(0);
    sem_init(&semaphore, 0, 0);
    return child > 0 && pipe(quiet) == 0 && pipe(fed) == 0 && pipe(wanted_feed) == 0 &&
           socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 &&
           bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0 && listen(listener, 1) == 0 &&
           setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
           setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0;
}

int main(int argc, char **argv)
{
    pthread_t threads[CALLS], feeder, spinner;
    wait_ms = argc > 2 ? atoi(argv[1]) : 0;
    times = argc > 2 ? atoi(argv[2]) : 0;
    if (!times || !prepare() || pthread_create(&feeder, NULL, feed, NULL) != 0 ||
        pthread_create(&spinner, NULL, spin, NULL) != 0)
        return 2;
    for (uintptr_t i = 0; i < CALLS; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)i) != 0)
            return 2;
    for (unsigned i = 0; i < CALLS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&is_over, true);
    pthread_join(spinner, NULL);
    if (write(wanted_feed[1], "e", 1) != 1)
        return 2;
    pthread_join(feeder, NULL);
    return 0;
}

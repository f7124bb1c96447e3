// SPDX-License-Identifier: Apache-2.0
// What a hook costs over the plain call, in ns: the least of many rounds. Not a test: prints.
//   waits_cost [wall]
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/agent/waits/world.h"

enum { ROUNDS = 60, CALLS = 5000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static int fds[2], epoll_fd;
static char byte;
static struct epoll_event event;

static void mutex_pair(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}
static void rwlock_pair(void)
{
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
}
static void semaphore_pair(void)
{
    sem_post(&semaphore);
    sem_wait(&semaphore);
}
static void write_and_read(void)
{
    if (write(fds[1], &byte, 1) + read(fds[0], &byte, 1) != 2)
        _exit(1);
}
static void poll_once(void)
{
    epoll_wait(epoll_fd, &event, 1, 0);
}

#define REAL(name) ((__typeof__(name) *)real_##name)
#define LOOKED_UP(X)                                                                                                   \
    X(pthread_mutex_lock)                                                                                              \
    X(pthread_mutex_unlock)                                                                                            \
    X(pthread_rwlock_rdlock) X(pthread_rwlock_unlock) X(sem_post) X(sem_wait) X(write) X(read) X(epoll_wait)
#define DECLARE(name) static void *real_##name;
LOOKED_UP(DECLARE)

static void real_mutex_pair(void)
{
    REAL(pthread_mutex_lock)(&mutex);
    REAL(pthread_mutex_unlock)(&mutex);
}
static void real_rwlock_pair(void)
{
    REAL(pthread_rwlock_rdlock)(&rwlock);
    REAL(pthread_rwlock_unlock)(&rwlock);
}
static void real_semaphore_pair(void)
{
    REAL(sem_post)(&semaphore);
    REAL(sem_wait)(&semaphore);
}
static void real_write_and_read(void)
{
    if (REAL(write)(fds[1], &byte, 1) + REAL(read)(fds[0], &byte, 1) != 2)
        _exit(1);
}
static void real_poll_once(void)
{
    REAL(epoll_wait)(epoll_fd, &event, 1, 0);
}

static double least_ns(void (*call)(void))
{
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int i = 0; i < CALLS; i++)
            call();
        clock_gettime(CLOCK_MONOTONIC, &to);
        double ns = ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / CALLS;
        if (ns < least)
            least = ns;
    }
    return least;
}

static const struct {
    const char *name;
    void (*hooked)(void), (*real)(void);
} pairs[] = {
    {"mutex lock + unlock", mutex_pair, real_mutex_pair},
    {"rwlock rdlock + unlock", rwlock_pair, real_rwlock_pair},
    {"semaphore post + wait", semaphore_pair, real_semaphore_pair},
    {"write + read of a pipe, 1 byte", write_and_read, real_write_and_read},
    {"epoll_wait, nothing there", poll_once, real_poll_once},
};

int main(int argc, char **argv)
{
#define LOOK_UP(name) real_##name = dlsym(RTLD_NEXT, #name);
    LOOKED_UP(LOOK_UP)
    if (pipe(fds) != 0)
        return 1;
    epoll_fd = epoll_create1(0);
    sem_init(&semaphore, 0, 0);
    bool wall = argc > 1 && !strcmp(argv[1], "wall");
    printf("%-32s %8s %8s %8s %8s ns\n", "", "plain", "off", "on", "over");
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        double off = least_ns(pairs[i].hooked);
        world_open(AGENT_SYNC_ALL, 10000000, 10000000, wall ? QUT_TRIGGER_WALL : QUT_TRIGGER_NONE);
        // With the walks' thread there: libc's locks are cheaper in a program of one thread.
        double real = least_ns(pairs[i].real), on = least_ns(pairs[i].hooked);
        world_close(NULL);
        printf("%-32s %8.1f %8.1f %8.1f %8.1f\n", pairs[i].name, real, off, on, on - real);
    }
    return 0;
}

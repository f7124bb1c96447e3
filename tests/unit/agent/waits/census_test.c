// SPDX-License-Identifier: Apache-2.0
// While ticks come at 1 kHz, calls that wait return neither EINTR nor too early, whatever the ticks come by.
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/agent/waits/world.h"

enum { WAIT_NS = 2000000, EACH_DEFAULT = 100, TICKS_MIN = 100 };

static uint32_t each = EACH_DEFAULT, is_over;
static int pipe_fds[2], sockets[2], listener, epoll_fd;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_size;
static sem_t semaphore, asks;
static void (*feed)(void);
static sigset_t all;

static struct timespec in_a_while(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += WAIT_NS;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void feed_pipe(void)
{
    ck_assert_int_eq(write(pipe_fds[1], "x", 1), 1);
}
static void feed_socket(void)
{
    ck_assert_int_eq(send(sockets[1], "x", 1, 0), 1);
}
static void connects(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, address_size), 0);
    close(fd);
}
static void posts(void)
{
    sem_post(&semaphore);
}

static char byte;
static const struct timespec a_while = {0, WAIT_NS};
static struct epoll_event event;
static bool by_nanosleep(void)
{
    struct timespec left;
    return nanosleep(&a_while, &left) == 0;
}
static bool by_clock(void)
{
    return clock_nanosleep(CLOCK_MONOTONIC, 0, &a_while, NULL) == 0;
}
static bool by_usleep(void)
{
    return usleep(WAIT_NS / 1000) == 0;
}
static bool by_poll(void)
{
    return poll(&(struct pollfd){pipe_fds[0], POLLIN, 0}, 1, 2) == 0;
}
static bool by_ppoll(void)
{
    return ppoll(&(struct pollfd){pipe_fds[0], POLLIN, 0}, 1, &a_while, &all) == 0;
}
static bool by_select(void)
{
    return select(0, NULL, NULL, NULL, &(struct timeval){0, WAIT_NS / 1000}) == 0;
}
static bool by_epoll(void)
{
    return epoll_wait(epoll_fd, &event, 1, 2) == 0;
}
static bool by_epoll_with_mask(void)
{
    return epoll_pwait(epoll_fd, &event, 1, 2, &all) == 0;
}
static bool by_semaphore(void)
{
    struct timespec until = in_a_while();
    return sem_timedwait(&semaphore, &until) != 0 && errno == ETIMEDOUT;
}
static bool by_sigtimedwait(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, NULL, &a_while) == -1 && errno == EAGAIN;
}
static bool by_post(void)
{
    return sem_wait(&semaphore) == 0;
}
static bool by_read(void)
{
    return read(pipe_fds[0], &byte, 1) == 1;
}
static bool by_recv(void)
{
    return recv(sockets[0], &byte, 1, 0) == 1;
}
static bool by_accept(void)
{
    int fd = accept(listener, NULL, NULL);
    close(fd);
    return fd >= 0;
}

static const struct {
    const char *name;
    bool (*call)(void);
    void (*feed)(void); // NULL: it waits for time to pass
} calls[] = {
    {"nanosleep", by_nanosleep, NULL},
    {"clock_nanosleep", by_clock, NULL},
    {"usleep", by_usleep, NULL},
    {"poll", by_poll, NULL},
    {"ppoll", by_ppoll, NULL},
    {"select", by_select, NULL},
    {"epoll_wait", by_epoll, NULL},
    {"epoll_pwait", by_epoll_with_mask, NULL},
    {"sem_timedwait", by_semaphore, NULL},
    {"sigtimedwait", by_sigtimedwait, NULL},
    {"sem_wait", by_post, posts},
    {"read", by_read, feed_pipe},
    {"recv", by_recv, feed_socket},
    {"accept", by_accept, connects},
};

static void *spins(void *argument)
{
    ck_assert_int_eq(qut_sampling_thread_begin(), 0);
    for (volatile uint64_t i = 0; !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE); i++) {
    }
    qut_sampling_thread_end();
    return argument;
}

static void *feeds(void *argument)
{
    for (;;) {
        while (sem_wait(&asks) != 0) {
        }
        if (__atomic_load_n(&is_over, __ATOMIC_ACQUIRE))
            return argument;
        usleep(WAIT_NS / 1000);
        feed();
    }
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint32_t failed_calls, early_calls;

static void *waits(void *argument)
{
    size_t which = (size_t)(uintptr_t)argument;
    ck_assert_int_eq(qut_sampling_thread_begin(), 0);
    volatile uint64_t work = 0;
    for (uint32_t i = 0; i < each; i++) {
        for (int k = 0; k < 200000; k++) // so that it has ticks of its own, by whatever clock
            work = work + (uint64_t)k;
        if (calls[which].feed)
            sem_post(&asks);
        uint64_t from = now_ns();
        if (!calls[which].call())
            failed_calls++;
        if (!calls[which].feed && now_ns() - from < WAIT_NS)
            early_calls++;
    }
    qut_sampling_thread_end();
    return NULL;
}

static const uint32_t triggers[] = {QUT_TRIGGER_TASK_CLOCK, QUT_TRIGGER_CPU_TIMER, QUT_TRIGGER_WALL};

static void call_all(uint32_t trigger)
{
    pthread_t waiter;
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        failed_calls = early_calls = 0;
        feed = calls[i].feed;
        pthread_create(&waiter, NULL, waits, (void *)(uintptr_t)i);
        pthread_join(waiter, NULL);
        ck_assert_msg(!failed_calls && !early_calls, "%s, trigger %u: of %u calls %u failed, %u came back early",
                      calls[i].name, trigger, each, failed_calls, early_calls);
    }
}

START_TEST(test_census)
{
    uint32_t trigger = triggers[_i];
    if (world_has_trigger(trigger) != 0) {
        printf("SKIP: trigger %u is not to be had here\n", trigger);
        return;
    }
    is_over = 0;
    world_open(AGENT_SYNC_ALL, 1000000, 10000000, trigger);
    pthread_t spinner, feeder;
    struct qut_sampling_counters counters;
    pthread_create(&spinner, NULL, spins, NULL);
    pthread_create(&feeder, NULL, feeds, NULL);
    do { // again where the machine is so busy that ticks are rare
        call_all(trigger);
        qut_sampling_get_counters(&counters, sizeof(counters));
    } while (counters.taken < TICKS_MIN);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    sem_post(&asks);
    pthread_join(feeder, NULL);
    pthread_join(spinner, NULL);
    qut_sampling_get_counters(&counters, sizeof(counters));
    ck_assert_uint_eq(counters.eintr_seen, 0);
    printf("trigger %u: %zu calls, %u times each: no EINTR; %llu ticks\n", trigger, sizeof(calls) / sizeof(*calls),
           each, (unsigned long long)counters.taken);
    world_close(NULL);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1)
        each = (uint32_t)atoi(argv[1]);
    sigfillset(&all);
    sigset_t usr2;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    sigprocmask(SIG_BLOCK, &usr2, NULL);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "qut-census-%d", (int)getpid());
    address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address.sun_path + 1));
    if (pipe(pipe_fds) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) ||
        bind(listener, (struct sockaddr *)&address, address_size) || listen(listener, 4) ||
        (epoll_fd = epoll_create1(0)) < 0)
        return 1;
    sem_init(&semaphore, 0, 0);
    sem_init(&asks, 0, 0);
    Suite *suite = suite_create("census");
    TCase *tests = tcase_create("census");
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, test_census, 0, (int)(sizeof(triggers) / sizeof(*triggers)));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

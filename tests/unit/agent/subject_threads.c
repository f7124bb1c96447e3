// SPDX-License-Identifier: Apache-2.0
// What a program's threads see, and with which of them it ends.
#include "tests/unit/agent/subject.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

void subject_spin_ms(long ms)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

void *subject_work(void *argument)
{
    void *volatile memory = malloc(1000);
    free(memory);
    if ((intptr_t)argument % 3 == 0)
        pthread_exit(argument);
    return argument;
}

static int work_c11(void *argument)
{
    return (int)(intptr_t)subject_work((void *)((intptr_t)argument * 3 + 1));
}

enum { SMALL_STACK_BYTES = 16 << 10 }; // PTHREAD_STACK_MIN here

static void *use_small_stack(void *argument)
{
    volatile char room[SMALL_STACK_BYTES / 2];
    memset((char *)room, 1, sizeof room);
    subject_spin_ms(10);
    return argument;
}

void subject_threads(void)
{
    enum { AT_ONCE = 20, ROUNDS = 20 };
    pthread_t all[AT_ONCE];
    intptr_t sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (intptr_t i = 0; i < AT_ONCE; i++)
            pthread_create(&all[i], NULL, subject_work, (void *)i);
        for (intptr_t i = 0; i < AT_ONCE; i++) {
            void *result;
            pthread_join(all[i], &result);
            sum += (intptr_t)result;
        }
    }
    printf("sum %ld\n", (long)sum);
    // libc has every thread do this.
    printf("user %d\n", setreuid(getuid(), getuid()));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    printf("set size %d\n", pthread_attr_setstacksize(&attributes, SMALL_STACK_BYTES));
    for (int i = 0; i < 4; i++) {
        printf("small %d\n", pthread_create(&all[i], &attributes, use_small_stack, NULL));
        pthread_join(all[i], NULL);
    }
    void *own = mmap(NULL, SMALL_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("set stack %d\n", pthread_attr_setstack(&attributes, own, SMALL_STACK_BYTES));
    printf("own %d\n", pthread_create(&all[0], &attributes, use_small_stack, NULL));
    pthread_join(all[0], NULL);
    thrd_t c11;
    int result = 0;
    printf("c11 %d\n", thrd_create(&c11, work_c11, (void *)5));
    thrd_join(c11, &result);
    printf("c11 result %d\n", result);
}

void *subject_end_last(void *argument)
{
    (void)argument;
    subject_spin_ms(10);
    fflush(stdout);
    pid_t child = fork(); // in which this is the only thread
    if (child == 0) {
        puts("child");
        return NULL;
    }
    int status;
    waitpid(child, &status, 0);
    printf("thread of a child %x\n", (unsigned)status);
    pthread_t thread;
    pthread_create(&thread, NULL, subject_work, NULL);
    pthread_detach(thread);
    return NULL;
}

// A child whose other threads, if it has any, come to nothing for half a second: they begin on a processor with one
// that goes first. Needs two processors and the right to go first; without them it is an ordinary child.
static bool makes_others_late;

static void make_others_late(void)
{
    struct sched_param first = {.sched_priority = 2};
    if (makes_others_late)
        sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
}

static void before_all_others(void)
{
    pthread_atfork(NULL, NULL, make_others_late);
}

__attribute__((section(".preinit_array"), used)) static void (*const before_libraries)(void) = before_all_others;

static void leave_processor(size_t cpu, const cpu_set_t *all)
{
    struct sched_param ordinary = {0};
    cpu_set_t others = *all;
    CPU_CLR(cpu, &others);
    sched_setaffinity(0, sizeof others, &others);
    sched_setscheduler(0, SCHED_OTHER, &ordinary);
}

void *subject_end_last_late(void *argument)
{
    (void)argument;
    struct sched_param first = {.sched_priority = 2}, second = {.sched_priority = 1};
    cpu_set_t all, busy;
    size_t cpu = 0;
    pid_t spinner, child;
    int status, ready[2];
    char byte = 0;
    sched_getaffinity(0, sizeof all, &all);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&busy);
    CPU_SET(cpu, &busy);
    fflush(stdout);
    if (pipe(ready) != 0)
        return NULL;
    if ((spinner = fork()) == 0) {
        sched_setaffinity(0, sizeof busy, &busy);
        sched_setscheduler(0, SCHED_FIFO, &second);
        if (write(ready[1], &byte, 1) == 1)
            subject_spin_ms(500);
        _exit(0);
    }
    if (read(ready[0], &byte, 1) != 1)
        return NULL;
    sched_setscheduler(0, SCHED_FIFO, &first);
    sched_setaffinity(0, sizeof busy, &busy);
    makes_others_late = true;
    if ((child = fork()) == 0) {
        leave_processor(cpu, &all);
        puts("late child");
        return NULL;
    }
    leave_processor(cpu, &all);
    waitpid(child, &status, 0);
    printf("late thread of a child %x\n", (unsigned)status);
    waitpid(spinner, &status, 0);
    return NULL;
}

void subject_end_with(void *(*last)(void *argument))
{
    pthread_t thread;
    // pthread_exit would load it, and a child that is forked meanwhile have a loader in the midst of that: glibc 2.36
    // then ends the child with an assertion.
    dlopen("libgcc_s.so.1", RTLD_NOW);
    pthread_create(&thread, NULL, last, NULL);
    pthread_exit(NULL);
}

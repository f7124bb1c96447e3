// SPDX-License-Identifier: Apache-2.0
// Walks while the interrupted code, or another thread, holds a lock of libc's.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/discipline.h"
#include "tests/support/tap.h"

enum { SIGNALS = 400, DEADLOCK_SECONDS = 60 };

static _Atomic unsigned handled, errno_changed, frames_least;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    uintptr_t pcs[128];
    struct qut_end end;
    bool kept;
    size_t count = discipline_walk_every_way(context, pcs, 128, &end, &kept);
    errno_changed += !kept;
    if (count < frames_least)
        frames_least = (unsigned)count;
    handled++;
}

static _Atomic bool over;

static void in_malloc(void)
{
    void *blocks[32] = {0};
    for (unsigned i = 0; i < 500; i++) {
        free(blocks[i % 32]);
        blocks[i % 32] = malloc(i * 331 % 20000 + 1);
    }
    for (unsigned i = 0; i < 32; i++)
        free(blocks[i]);
}

static void in_dlopen(void)
{
    void *library = dlopen("libm.so.6", RTLD_NOW);
    void *missing = dlopen("libresolv.so.2", RTLD_LAZY);
    if (missing)
        dlclose(missing);
    if (library)
        dlclose(library);
}

static void *short_life(void *argument)
{
    qut_thread_register();
    return argument;
}

static void in_pthread_create(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, short_life, NULL) == 0)
        pthread_join(thread, NULL);
}

static void in_registration(void)
{
    qut_thread_unregister();
    qut_thread_register();
}

static void *work(void *function)
{
    void (*run)(void) = *(void (**)(void))function;
    while (!over)
        run();
    return NULL;
}

// Threads that do it, hit by signals from here; alarm ends the test if they stand still.
static void hit(void (*run)(void))
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    over = false;
    handled = errno_changed = 0;
    frames_least = ~0u;
    alarm(DEADLOCK_SECONDS);
    pthread_t threads[2];
    for (unsigned i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &run);
    for (unsigned i = 0; i < SIGNALS; i++) {
        unsigned before = handled;
        pthread_kill(threads[i % 2], SIGUSR1);
        struct timespec pause = {.tv_nsec = 20000};
        while (handled == before)
            nanosleep(&pause, NULL);
    }
    over = true;
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    alarm(0);
    CHECK(handled == SIGNALS && errno_changed == 0, "%u of %d, errno changed %u times", handled, SIGNALS,
          errno_changed);
    CHECK(frames_least >= 1 && frames_least != ~0u, "%u frames", frames_least);
}

TEST(walks_inside_malloc)
{
    hit(in_malloc);
}
TEST(walks_inside_dlopen)
{
    hit(in_dlopen);
}
TEST(walks_inside_pthread_create)
{
    hit(in_pthread_create);
}
TEST(walks_while_the_thread_registers)
{
    hit(in_registration);
}

// ---- the loader's lock

static sem_t is_held, let_go;

static int hold(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)info, (void)size, (void)context;
    sem_post(&is_held);
    while (sem_wait(&let_go) != 0)
        ;
    return 1;
}

static void *hold_loader(void *argument)
{
    dl_iterate_phdr(hold, argument);
    return NULL;
}

static void spin(void)
{
    for (volatile unsigned i = 0; i < 1000; i++)
        ;
}

TEST(walks_while_another_thread_holds_the_loaders_lock)
{
    pthread_t holder;
    sem_init(&is_held, 0, 0);
    sem_init(&let_go, 0, 0);
    // Something new, so that the walks want a refresh, which cannot be had now.
    void *library = dlopen("libresolv.so.2", RTLD_LAZY);
    pthread_create(&holder, NULL, hold_loader, NULL);
    sem_wait(&is_held);
    hit(spin);
    for (unsigned i = 0; i < 100; i++) {
        uintptr_t pcs[32];
        bool kept;
        size_t count = discipline_walk_every_way(NULL, pcs, 32, NULL, &kept);
        CHECK(count >= 1 && kept, "%zu frames", count);
    }
    sem_post(&let_go);
    pthread_join(holder, NULL);
    if (library)
        dlclose(library);
}

// ---- a handler that does not return

static sigjmp_buf out;

static void jump(int number)
{
    (void)number;
    siglongjmp(out, 1);
}

static void *kill_later(void *target)
{
    for (unsigned i = 0; i < 200 && !over; i++) {
        struct timespec pause = {.tv_nsec = 50000};
        nanosleep(&pause, NULL);
        pthread_kill(*(pthread_t *)target, SIGUSR2);
    }
    over = true;
    return NULL;
}

// A program's own handler may leave by a jump in the middle of a walk. Nothing may wait for that walk for ever.
TEST(a_walk_that_is_jumped_out_of_holds_nothing_up)
{
    struct sigaction action = {.sa_handler = jump, .sa_flags = SA_NODEFER};
    pthread_t self = pthread_self(), killer;
    over = false;
    volatile unsigned jumps = 0;
    if (sigsetjmp(out, 1))
        jumps++;
    else {
        sigaction(SIGUSR2, &action, NULL);
        pthread_create(&killer, NULL, kill_later, &self);
    }
    while (!over) {
        uintptr_t pcs[32];
        qut_backtrace(pcs, 32, NULL);
    }
    signal(SIGUSR2, SIG_IGN);
    pthread_join(killer, NULL);
    alarm(DEADLOCK_SECONDS);
    qut_refresh();
    qut_stop();
    CHECK(discipline_start(), "cannot start again");
    alarm(0);
    CHECK(jumps > 0, "%u jumps", jumps);
}

int main(void)
{
    if (!discipline_start())
        return 1;
    RUN(walks_inside_malloc);
    RUN(walks_inside_dlopen);
    RUN(walks_inside_pthread_create);
    RUN(walks_while_the_thread_registers);
    RUN(walks_while_another_thread_holds_the_loaders_lock);
    RUN(a_walk_that_is_jumped_out_of_holds_nothing_up);
    return tap_finish();
}

// SPDX-License-Identifier: Apache-2.0
// Each call of traced functions is there where signal handlers come in at any instruction of the stubs; children of
// fork write nothing into their parent's rings; counts are exact.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/unit/agent/calls/handled.h"

// ---- signals

#ifndef STORM_ROUNDS // fewer under emulation
#define STORM_ROUNDS 3000
#endif

// Two timers, each of which rings once a round: so handlers interrupt each other, and the program gets on however slow
// they are.
static void storm(bool on_other_stack)
{
    enum { ROUNDS = STORM_ROUNDS, TIMERS = 2 };
    static char other_stack[65536];
    const stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | (on_other_stack ? SA_ONSTACK : 0)};
    timer_t timers[TIMERS];
    trace_begins(RING, 4);
    THUNKS_TRACE(fib, FIB);
    THUNKS_TRACE(leaf, LEAF);
    THUNKS_TRACE(handled, HANDLED);
    if (on_other_stack)
        sigaltstack(&stack, NULL);
    for (int i = 0; i < TIMERS; i++) {
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = i == 0 ? SIGUSR1 : SIGUSR2};
        sigaction(event.sigev_signo, &action, NULL);
        timer_create(CLOCK_MONOTONIC, &event, &timers[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < TIMERS; i++) {
            const struct itimerspec once = {{0, 0}, {0, 1000 + round * 7 % 5000 + i * 300}};
            timer_settime(timers[i], 0, &once, NULL);
        }
        fib(11);
        if (round % 8 == 0)
            thunks_drain();
    }
    for (int i = 0; i < TIMERS; i++)
        timer_delete(timers[i]);
    thunks_drain();
    check_whole(FIB);
    check_whole(LEAF);
    check_whole(HANDLED);
    CHECK(thunks_sums()->bad_ids == 0 && thunks_sums()->open == 0, "%lu", thunks_sums()->bad_ids);
    CHECK(told[LEAF] > 0, "no signal came");
    // Only where a handler came between an event's place and its time.
    CHECK(thunks_sums()->backwards <= told[LEAF], "%lu of %lu", thunks_sums()->backwards, told[LEAF]);
}

TEST(handlers_at_any_instruction)
{
    storm(false);
}

TEST(handlers_on_another_stack)
{
    storm(true);
}

// ---- children

// qemu's emulation of programs takes the wish, and does nothing.
static bool is_wiped_at_fork(void)
{
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, 4096, MADV_WIPEONFORK) != 0)
        return false;
    *memory = 1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(*memory);
    int status = -1;
    waitpid(pid, &status, 0);
    munmap(memory, 4096);
    return status == 0;
}

static void run_with_children(const char *name, void (*body)(void))
{
    if (is_wiped_at_fork()) {
        alone_run(name, body);
        return;
    }
    printf("SKIP %s: memory is not wiped at fork\n", name);
    tap.skipped++;
}

static long child_calls(void)
{
    return fib(10) + leaf(3);
}

TEST(children_write_nothing)
{
    trace_begins(RING, 4);
    THUNKS_TRACE(fib, FIB);
    THUNKS_TRACE(leaf, LEAF);
    child_calls();
    for (int way = 0; way < 2; way++) {
        pid_t pid = way == 0 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (pid == 0)
            _exit(child_calls() == 55 + (3 ^ 5) ? 0 : 1);
        int status = -1;
        waitpid(pid, &status, 0);
        CHECK(status == 0, "way %d: 0x%x", way, (unsigned)status);
    }
    thunks_drain();
    check_whole(FIB);
    check_whole(LEAF);
    CHECK(thunks_header()->lost_enters == 0 && thunks_ring(0)->lost_enters == 0, "counted for the parent");
}

static int grandchild(void)
{
    if (thunks_begin(RING, 2) != 0)
        return 2;
    memset(told, 0, sizeof told);
    child_calls(); // patched since before the fork: stubs and thunks are the same
    thunks_drain();
    return thunks_sums()->enters[FIB] == told[FIB] && thunks_sums()->exits[LEAF] == 1 ? 0 : 3;
}

TEST(a_child_can_be_traced_by_itself)
{
    trace_begins(RING, 4);
    THUNKS_TRACE(fib, FIB);
    THUNKS_TRACE(leaf, LEAF);
    leaf(1);
    pid_t pid = fork();
    if (pid == 0)
        _exit(grandchild());
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK(status == 0, "0x%x", (unsigned)status);
}

// ---- counts

TRACED static int counted(int n)
{
    tell(FIB);
    return n + 1;
}

static void *count_many(void *unused)
{
    (void)unused;
    for (int i = 0; i < 10000; i++)
        if (counted(i) != i + 1)
            abort();
    return NULL;
}

static void count(bool by_stub)
{
    pthread_t threads[4];
    trace_begins(RING, 8);
    CHECK(thunks_count((void (*)(void))counted, 7, by_stub), "no nops");
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, count_many, NULL);
    count_many(NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    pid_t pid = is_wiped_at_fork() ? fork() : -1;
    if (pid == 0) {
        count_many(NULL);
        _exit(0);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
    CHECK(thunks_counted(7) == 50000 && thunks_counted(6) == 0 && thunks_counted(8) == 0, "%lu", thunks_counted(7));
    CHECK(thunks_header()->uncounted == 0, "%lu", thunks_header()->uncounted);
}

TEST(counts_are_exact)
{
    count(false);
}

TEST(counts_by_the_stub_are_exact)
{
    count(true);
}

int main(void)
{
    RUN_ALONE(handlers_at_any_instruction);
    RUN_ALONE(handlers_on_another_stack);
    run_with_children("children_write_nothing", children_write_nothing);
    run_with_children("a_child_can_be_traced_by_itself", a_child_can_be_traced_by_itself);
    RUN_ALONE(counts_are_exact);
    RUN_ALONE(counts_by_the_stub_are_exact);
    return tap_finish();
}

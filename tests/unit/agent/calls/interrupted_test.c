// SPDX-License-Identifier: Apache-2.0
// Each call of traced functions is there where signal handlers come in at any instruction of the stubs; children of
// fork write nothing into their parent's rings; counts are exact.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

#include "tests/unit/agent/calls/account.h"

// ---- signals

TRACED static void handled(int depth)
{
    tell(HANDLED);
    if (depth > 0)
        handled(depth - 1);
}

static void handler(int signal_number)
{
    (void)signal_number;
    handled(3);
    sink += leaf(2);
}

// Two timers, each of which rings once a round: so handlers interrupt each other, and the program gets on however slow
// they are.
static void storm(bool on_other_stack)
{
    enum { ROUNDS = 3000, TIMERS = 2 };
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

// Between any two instructions: the processor stops after each of them, and the handler makes traced calls.
static volatile uint64_t steps, steps_in_stubs;

static void step(int signal_number, siginfo_t *info, void *context)
{
    (void)info;
    const ucontext_t *at = context;
    const uint64_t pc = (uint64_t)at->uc_mcontext.gregs[REG_RIP];
    const struct qut_calls_header *header = thunks_header();
    handler(signal_number);
    steps++;
    steps_in_stubs += pc >= header->stub_begin && pc < header->stub_end;
}

#define STEPS_BEGIN "leaq -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tleaq 128(%%rsp), %%rsp"
#define STEPS_END   "leaq -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tleaq 128(%%rsp), %%rsp"

static void *stepped(void *unused)
{
    (void)unused;
    __asm__ volatile(STEPS_BEGIN ::: "memory", "cc");
    const long sum = fib(4);
    __asm__ volatile(STEPS_END ::: "memory", "cc");
    CHECK(sum == 3, "%ld", sum);
    return NULL;
}

static void step_through(uint64_t ring_bytes)
{
    const struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO | SA_NODEFER};
    pthread_t thread;
    trace_begins(ring_bytes, 8);
    THUNKS_TRACE(fib, FIB);
    THUNKS_TRACE(leaf, LEAF);
    THUNKS_TRACE(handled, HANDLED);
    sigaction(SIGTRAP, &action, NULL);
    pthread_create(&thread, NULL, stepped, NULL); // the first call of a thread, on a stack that is new, too
    pthread_join(thread, NULL);
    CHECK(steps > 500 && steps_in_stubs > 500, "%lu, %lu", steps, steps_in_stubs);
    CHECK(told[FIB] == 9 && told[LEAF] == steps, "%lu, %lu of %lu", told[FIB], told[LEAF], steps);
}

TEST(handlers_behind_each_instruction)
{
    step_through(RING);
    thunks_drain();
    check_whole(FIB);
    check_whole(LEAF);
    check_whole(HANDLED);
    CHECK(thunks_sums()->bad_ids == 0, "%lu", thunks_sums()->bad_ids);
}

TEST(handlers_behind_each_instruction_of_a_loss)
{
    uint64_t lost_enters = 0, lost_exits = 0, enters = 0, exits = 0, calls = 0;
    step_through(SMALL_RING);
    for (uint32_t i = 0; i < 8; i++) {
        lost_enters += thunks_ring(i)->lost_enters;
        lost_exits += thunks_ring(i)->lost_exits;
    }
    thunks_drain();
    for (unsigned id = 0; id <= ENDS; id++) {
        enters += thunks_sums()->enters[id];
        exits += thunks_sums()->exits[id];
        calls += told[id];
    }
    CHECK(enters + lost_enters == calls && exits + lost_exits == calls, "%lu calls, %lu + %lu, %lu + %lu", calls,
          enters, lost_enters, exits, lost_exits);
    CHECK(lost_enters > 0 && enters > 0, "%lu", lost_enters);
}

// ---- children

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
        pid_t pid = way == 0 ? fork() : (pid_t)syscall(SYS_fork);
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
    pid_t pid = fork();
    if (pid == 0) {
        count_many(NULL);
        _exit(0);
    }
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
    RUN_ALONE(handlers_behind_each_instruction);
    RUN_ALONE(handlers_behind_each_instruction_of_a_loss);
    RUN_ALONE(children_write_nothing);
    RUN_ALONE(a_child_can_be_traced_by_itself);
    RUN_ALONE(counts_are_exact);
    RUN_ALONE(counts_by_the_stub_are_exact);
    return tap_finish();
}

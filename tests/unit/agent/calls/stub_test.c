// SPDX-License-Identifier: Apache-2.0
// Traced functions do what they did, and each of their calls is there: nested, recursive, by tail calls, left by jumps,
// on other stacks, in many threads, in signal handlers at any instruction, in children.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

#include "agent/calls/calls.h"
#include "tests/unit/agent/calls/alone.h"
#include "tests/unit/agent/calls/tail.h"
#include "tests/unit/agent/calls/thunks.h"

enum { FIB = 1, TAIL_A, TAIL_B, JUMPER, MIDDLE, LEAF, HANDLED, YIELDER, ENDS };
enum { RING = 1 << 20, SMALL_RING = 4096 };

static volatile int sink, always = 1;
static uint64_t told[ENDS + 1]; // by the functions themselves

static void tell(unsigned id)
{
    __atomic_fetch_add(&told[id], 1, __ATOMIC_RELAXED);
}

static void trace_begins(uint64_t ring_bytes, uint32_t rings)
{
    int error = thunks_begin(ring_bytes, rings);
    CHECK(error == 0, "error %d", error);
    if (error != 0)
        _exit(1);
}

// All that was called was entered, and all that was entered was left.
static void check_whole(unsigned id)
{
    const struct thunks_sums *sums = thunks_sums();
    CHECK(sums->enters[id] == told[id] && sums->exits[id] == told[id], "function %u: %lu calls, %lu enters, %lu exits",
          id, told[id], sums->enters[id], sums->exits[id]);
}

static void check_order(void)
{
    const struct thunks_sums *sums = thunks_sums();
    CHECK(sums->unpaired == 0 && sums->bad_ids == 0 && sums->open == 0, "%lu exits unpaired, %lu ids unknown, %lu open",
          sums->unpaired, sums->bad_ids, sums->open);
}

// ---- plain calls

TRACED static long fib(int n)
{
    tell(FIB);
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

TEST(calls_nest)
{
    trace_begins(RING, 4);
    CHECK(THUNKS_TRACE(fib, FIB), "no nops");
    CHECK(fib(19) == 4181, "wrong");
    thunks_drain();
    check_whole(FIB);
    check_order();
    CHECK(thunks_sums()->backwards == 0, "%lu", thunks_sums()->backwards);
    CHECK(told[FIB] == 13529, "%lu", told[FIB]);
    thunks_undo();
    fib(3);
    thunks_drain();
    CHECK(thunks_sums()->enters[FIB] == 13529, "traced still");
}

TEST(tail_calls_have_one_exit)
{
    trace_begins(RING, 4);
    THUNKS_TRACE(tail_a, TAIL_A);
    THUNKS_TRACE(tail_b, TAIL_B);
    for (int i = 0; i < 1000; i++)
        CHECK(tail_a(i) == i + 3, "at %d", i);
    thunks_drain();
    const struct thunks_sums *sums = thunks_sums();
    CHECK(sums->enters[TAIL_A] == 1000 && sums->enters[TAIL_B] == 1000, "%lu, %lu", sums->enters[TAIL_A],
          sums->enters[TAIL_B]);
    CHECK(sums->exits[TAIL_B] == 1000 && sums->exits[TAIL_A] == 0, "%lu, %lu", sums->exits[TAIL_A],
          sums->exits[TAIL_B]);
    check_order();
}

// ---- jumps

static jmp_buf back;

TRACED static void jumper(int depth)
{
    tell(JUMPER);
    if (depth == 0 && always)
        longjmp(back, 1);
    if (depth > 0)
        jumper(depth - 1);
    sink++;
}

TRACED static int leaf(int n)
{
    tell(LEAF);
    return n ^ 5;
}

TRACED static int middle(int n)
{
    tell(MIDDLE);
    if (setjmp(back) == 0)
        jumper(n);
    return leaf(n);
}

TEST(jumps_close_what_they_leave)
{
    trace_begins(RING, 4);
    THUNKS_TRACE(jumper, JUMPER);
    THUNKS_TRACE(middle, MIDDLE);
    THUNKS_TRACE(leaf, LEAF);
    for (int i = 0; i < 1000; i++)
        CHECK(middle(i % 7) == (i % 7 ^ 5), "at %d", i);
    thunks_drain();
    check_whole(MIDDLE);
    check_whole(LEAF);
    check_order();
    CHECK(thunks_sums()->enters[JUMPER] == told[JUMPER] && thunks_sums()->exits[JUMPER] == 0, "%lu of %lu, %lu",
          thunks_sums()->enters[JUMPER], told[JUMPER], thunks_sums()->exits[JUMPER]);
}

// ---- other stacks

static ucontext_t main_context, coroutine_context;

TRACED static int yielder(int n)
{
    tell(YIELDER);
    swapcontext(&coroutine_context, &main_context);
    return n + leaf(n);
}

static void coroutine(void)
{
    for (;;)
        sink += yielder(sink);
}

static void *resume(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++)
        swapcontext(&main_context, &coroutine_context);
    return NULL;
}

TEST(coroutines_move_between_threads)
{
    char *stack = malloc(256 << 10);
    pthread_t thread;
    trace_begins(RING, 4);
    THUNKS_TRACE(yielder, YIELDER);
    THUNKS_TRACE(leaf, LEAF);
    getcontext(&coroutine_context);
    coroutine_context.uc_stack.ss_sp = stack;
    coroutine_context.uc_stack.ss_size = 256 << 10;
    makecontext(&coroutine_context, coroutine, 0);
    resume(NULL);
    for (int i = 0; i < 3; i++) {
        pthread_create(&thread, NULL, resume, NULL);
        pthread_join(thread, NULL);
    }
    calls_look_for_ended();
    thunks_drain();
    check_whole(LEAF);
    const struct thunks_sums *sums = thunks_sums();
    CHECK(told[YIELDER] == 400 && sums->enters[YIELDER] == 400 && sums->exits[YIELDER] == 399, "%lu, %lu, %lu",
          told[YIELDER], sums->enters[YIELDER], sums->exits[YIELDER]);
}

// ---- threads

TRACED static void ends(int depth)
{
    tell(ENDS);
    if (depth == 0 && always)
        pthread_exit(NULL);
    if (depth > 0)
        ends(depth - 1);
    sink++;
}

static void *thread_body(void *argument)
{
    sink += (int)fib(12);
    if (argument)
        ends(5);
    calls_thread_ends();
    return NULL;
}

TEST(threads_have_rings_in_turn)
{
    enum { ROUNDS = 50, AT_ONCE = 8 };
    trace_begins(65536, AT_ONCE);
    THUNKS_TRACE(fib, FIB);
    THUNKS_TRACE(ends, ENDS);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            pthread_create(&threads[i], NULL, thread_body, i % 2 ? &told : NULL);
        for (int i = 0; i < AT_ONCE; i++)
            pthread_join(threads[i], NULL);
        calls_look_for_ended();
        thunks_drain();
    }
    check_whole(FIB);
    CHECK(thunks_sums()->enters[ENDS] == told[ENDS] && thunks_sums()->exits[ENDS] == 0, "%lu", told[ENDS]);
    CHECK(thunks_sums()->unpaired == 0, "%lu", thunks_sums()->unpaired);
    uint64_t taken = 0;
    for (uint32_t i = 0; i < AT_ONCE; i++)
        taken += thunks_ring(i)->generation;
    CHECK(taken == ROUNDS * AT_ONCE && thunks_header()->lost_enters == 0, "%lu rings, %lu lost", taken,
          thunks_header()->lost_enters);
}

static pthread_barrier_t all_there, all_read;

static void *one_more(void *unused)
{
    (void)unused;
    sink += leaf(1);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_read);
    return NULL;
}

TEST(a_thread_without_a_ring_is_counted)
{
    pthread_t threads[4];
    trace_begins(RING, 3);
    THUNKS_TRACE(leaf, LEAF);
    pthread_barrier_init(&all_there, NULL, 5);
    pthread_barrier_init(&all_read, NULL, 5);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, one_more, NULL);
    pthread_barrier_wait(&all_there);
    thunks_drain();
    CHECK(thunks_sums()->enters[LEAF] == 3 && thunks_sums()->exits[LEAF] == 3, "%lu", thunks_sums()->enters[LEAF]);
    CHECK(thunks_header()->lost_enters == 1 && thunks_header()->lost_exits == 1, "%lu", thunks_header()->lost_enters);
    pthread_barrier_wait(&all_read);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

TEST(what_a_full_ring_loses_is_counted)
{
    trace_begins(SMALL_RING, 2);
    THUNKS_TRACE(fib, FIB);
    fib(15);
    const struct qut_calls_ring *ring = thunks_ring(0);
    const uint64_t lost_enters = ring->lost_enters, lost_exits = ring->lost_exits;
    thunks_drain();
    const struct thunks_sums *sums = thunks_sums();
    CHECK(sums->events == SMALL_RING / 16 - QUT_CALLS_SPARE_EVENTS, "%lu", sums->events);
    CHECK(sums->enters[FIB] + lost_enters == told[FIB] && sums->exits[FIB] + lost_exits == told[FIB],
          "%lu calls, %lu + %lu, %lu + %lu", told[FIB], sums->enters[FIB], lost_enters, sums->exits[FIB], lost_exits);
    // There is room again.
    const uint64_t before = sums->enters[FIB];
    told[FIB] = 0;
    fib(5);
    thunks_drain();
    CHECK(sums->enters[FIB] - before == told[FIB] && ring->lost_enters == lost_enters, "%lu of %lu",
          sums->enters[FIB] - before, told[FIB]);
}

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

// ---- what cannot be traced

static long call_misaligned(long (*function)(int), int n)
{
    long result;
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tmovq %%rsp, %%rbx\n\tandq $-16, %%rsp\n\tsubq $8, %%rsp\n\t"
                     "call *%1\n\tmovq %%rbx, %%rsp\n\tleaq 128(%%rsp), %%rsp"
                     : "=a"(result)
                     : "r"(function), "D"((long)n)
                     : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
    return result;
}

TEST(misaligned_calls_pass)
{
    trace_begins(RING, 4);
    THUNKS_TRACE(leaf, LEAF);
    CHECK((int)call_misaligned((long (*)(int))(void (*)(void))leaf, 3) == (3 ^ 5), "wrong");
    thunks_drain();
    CHECK(thunks_sums()->events == 0 && thunks_header()->passed_misaligned == 1, "%lu events, %lu passed",
          thunks_sums()->events, thunks_header()->passed_misaligned);
}

TEST(stacks_without_a_shadow_pass)
{
    trace_begins(RING, 4);
    THUNKS_TRACE(leaf, LEAF);
    static const uint64_t granule = (uint64_t)1 << QUT_CALLS_GRANULE_LOG2;
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    void *shadow = (void *)(((here & ~(granule - 1)) - ((uintptr_t)1 << QUT_CALLS_X86_64_SHADOW_LOG2)));
    CHECK(mmap(shadow, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == shadow, "no room");
    for (int i = 0; i < 10; i++)
        CHECK(leaf(i) == (i ^ 5), "at %d", i);
    thunks_drain();
    CHECK(thunks_sums()->events == 0 && thunks_header()->passed_no_shadow == 10, "%lu events, %lu passed",
          thunks_sums()->events, thunks_header()->passed_no_shadow);
    CHECK(calls_shadow(here - 8, here) == -EEXIST, "mapped");
}

int main(void)
{
    RUN_ALONE(calls_nest);
    RUN_ALONE(tail_calls_have_one_exit);
    RUN_ALONE(jumps_close_what_they_leave);
    RUN_ALONE(coroutines_move_between_threads);
    RUN_ALONE(threads_have_rings_in_turn);
    RUN_ALONE(a_thread_without_a_ring_is_counted);
    RUN_ALONE(what_a_full_ring_loses_is_counted);
    RUN_ALONE(handlers_at_any_instruction);
    RUN_ALONE(handlers_on_another_stack);
    RUN_ALONE(children_write_nothing);
    RUN_ALONE(a_child_can_be_traced_by_itself);
    RUN_ALONE(counts_are_exact);
    RUN_ALONE(counts_by_the_stub_are_exact);
    RUN_ALONE(misaligned_calls_pass);
    RUN_ALONE(stacks_without_a_shadow_pass);
    return tap_finish();
}

// SPDX-License-Identifier: Apache-2.0
// Traced functions do what they did, and each of their calls is there: nested, recursive, by tail calls, left by jumps,
// on other stacks, in many threads.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "agent/calls/calls.h"
#include "agent/calls/inside.h"
#include "tests/unit/agent/calls/account.h"
#include "tests/unit/agent/calls/tail.h"

static volatile int always = 1;

// ---- plain calls

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
    CHECK(sums->tails[TAIL_B] == 1000 && sums->tails[TAIL_A] == 0, "%lu, %lu", sums->tails[TAIL_B],
          sums->tails[TAIL_A]);
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
    // middle calls leaf at the slot that the outermost jumper has left.
    CHECK(thunks_sums()->tails[LEAF] == 0 && thunks_sums()->tails[JUMPER] == 0, "%lu, %lu", thunks_sums()->tails[LEAF],
          thunks_sums()->tails[JUMPER]);
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

static bool is_any_taken(uint32_t rings)
{
    for (uint32_t i = 0; i < rings; i++)
        if (thunks_ring(i)->state != QUT_CALLS_RING_FREE)
            return true;
    return false;
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
        // One that was joined is there for the kernel a moment longer.
        do {
            calls_look_for_ended();
            thunks_drain();
        } while (is_any_taken(AT_ONCE));
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

static void *agents_own(void *unused)
{
    (void)unused;
    calls_thread_is_agents();
    sink += (int)fib(5);
    return NULL;
}

TEST(threads_of_the_agent_write_nothing)
{
    pthread_t thread;
    trace_begins(RING, 3);
    THUNKS_TRACE(fib, FIB);
    pthread_create(&thread, NULL, agents_own, NULL);
    pthread_join(thread, NULL);
    thunks_drain();
    CHECK(thunks_sums()->events == 0 && thunks_header()->rings_used == 0 && thunks_header()->lost_enters == 0,
          "%lu events, %lu lost", thunks_sums()->events, thunks_header()->lost_enters);
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

static volatile bool is_done;

static void *drain_all_along(void *unused)
{
    (void)unused;
    calls_thread_is_agents();
    while (!is_done)
        thunks_drain();
    return NULL;
}

TEST(a_thread_waits_for_its_reader)
{
    pthread_t reader;
    trace_begins(SMALL_RING, 2);
    THUNKS_TRACE(fib, FIB);
    thunks_header()->full_wait_us = 10000000;
    pthread_create(&reader, NULL, drain_all_along, NULL);
    fib(17);
    is_done = true;
    pthread_join(reader, NULL);
    thunks_drain();
    check_whole(FIB);
    check_order();
    CHECK(thunks_header()->waits > 0 && thunks_ring(0)->lost_enters == 0, "%u waits", thunks_header()->waits);
    // There is none: one wait, and then losses.
    const uint32_t before = thunks_header()->waits;
    thunks_header()->full_wait_us = 100;
    fib(10);
    CHECK(thunks_header()->waits == before + 1 && thunks_ring(0)->lost_enters > 0, "%u waits more",
          thunks_header()->waits - before);
}

// ---- the end

TRACED static int end_inside(void)
{
    return calls_end();
}

TEST(memory_is_given_back_when_nobody_needs_it)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)4095;
    void *shadow = (void *)(here - ((uintptr_t)1 << calls_machine.shadow_log2));
    trace_begins(RING, 2);
    THUNKS_TRACE(leaf, LEAF);
    THUNKS_TRACE(end_inside, ENDS);
    sink += leaf(1);
    CHECK(end_inside() == -EBUSY, "a call that is under way");
    thunks_undo();
    thunks_header()->must_stay = 1;
    CHECK(calls_end() == -EBUSY, "the tracer says so");
    thunks_header()->must_stay = 0;
    CHECK(msync(shadow, 4096, MS_ASYNC) == 0, "no shadow");
    CHECK(calls_end() == 0 && msync(shadow, 4096, MS_ASYNC) != 0, "the shadow is there");
}

// ---- what cannot be traced

TEST(stacks_without_a_shadow_pass)
{
    trace_begins(RING, 4);
    THUNKS_TRACE(leaf, LEAF);
    static const uint64_t granule = (uint64_t)1 << QUT_CALLS_GRANULE_LOG2;
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    void *shadow = (void *)(((here & ~(granule - 1)) - ((uintptr_t)1 << calls_machine.shadow_log2)));
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
    RUN_ALONE(threads_of_the_agent_write_nothing);
    RUN_ALONE(what_a_full_ring_loses_is_counted);
    RUN_ALONE(a_thread_waits_for_its_reader);
    RUN_ALONE(memory_is_given_back_when_nobody_needs_it);
    RUN_ALONE(stacks_without_a_shadow_pass);
    return tap_finish();
}

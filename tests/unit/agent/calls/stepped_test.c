// SPDX-License-Identifier: Apache-2.0
// Signal handlers between any two instructions of the stubs of x86-64.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

#include "tests/unit/agent/calls/handled.h"

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

static void step_all(void)
{
    const struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO | SA_NODEFER};
    pthread_t thread;
    sigaction(SIGTRAP, &action, NULL);
    pthread_create(&thread, NULL, stepped, NULL); // the first call of a thread, on a stack that is new, too
    pthread_join(thread, NULL);
    CHECK(told[FIB] == 9 && told[LEAF] == steps, "%lu, %lu of %lu", told[FIB], told[LEAF], steps);
}

static void step_through(uint64_t ring_bytes)
{
    trace_begins(ring_bytes, 8);
    THUNKS_TRACE(fib, FIB);
    THUNKS_TRACE(leaf, LEAF);
    THUNKS_TRACE(handled, HANDLED);
    step_all();
    CHECK(steps > 500 && steps_in_stubs > 500, "%lu, %lu", steps, steps_in_stubs);
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

// Of functions that are thinned, in the handler as well: all are counted, and what is recorded is whole.
TEST(handlers_behind_each_instruction_of_thinned_functions)
{
    enum { THINNED = 20 };
    trace_begins(RING, 8);
    CHECK(thunks_thin((void (*)(void))fib, FIB, THINNED + FIB, 1) &&
              thunks_thin((void (*)(void))leaf, LEAF, THINNED + LEAF, 2) &&
              thunks_thin((void (*)(void))handled, HANDLED, THINNED + HANDLED, 3),
          "no thunks");
    step_all();
    thunks_drain();
    const struct thunks_sums *sums = thunks_sums();
    for (unsigned id = FIB; id <= HANDLED; id++) {
        CHECK(thunks_counted(id) == told[id] && sums->enters[id] == 0, "function %u: %lu counted of %lu, %lu whole", id,
              thunks_counted(id), told[id], sums->enters[id]);
        CHECK(sums->enters[THINNED + id] == sums->exits[THINNED + id], "function %u: %lu enters, %lu exits", id,
              sums->enters[THINNED + id], sums->exits[THINNED + id]);
        CHECK(!told[id] || (sums->enters[THINNED + id] > 0 && sums->enters[THINNED + id] < told[id]),
              "function %u: %lu of %lu", id, sums->enters[THINNED + id], told[id]);
    }
    CHECK(sums->bad_ids == 0 && steps > 200, "%lu, %lu steps", sums->bad_ids, steps);
}

int main(void)
{
    RUN_ALONE(handlers_behind_each_instruction);
    RUN_ALONE(handlers_behind_each_instruction_of_a_loss);
    RUN_ALONE(handlers_behind_each_instruction_of_thinned_functions);
    return tap_finish();
}

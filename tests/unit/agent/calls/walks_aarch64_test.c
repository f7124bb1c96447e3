// SPDX-License-Identifier: Apache-2.0
// Walks through traced functions of aarch64 are what they are without: from inside, many times over, and from handlers
// that come in anywhere. A handler may find a thread in a thunk, which is in no module: that frame alone is guessed.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

#include "libqut/runtime/tiers.h"
#include "tests/support/discipline.h"
#include "tests/unit/agent/calls/account.h"
#include "tests/unit/agent/calls/tail.h"

enum { FRAMES_MAX = 64, DEPTH = 12, REPEATS = 50, ROUNDS = 200 };

struct walk {
    size_t count;
    struct qut_end end;
    uintptr_t pcs[FRAMES_MAX];
};

static struct walk inside;

// As compilers begin functions, paciasp included; no nops.
__attribute__((noinline)) static int innermost(int n)
{
    inside.count = qut_backtrace(inside.pcs, FRAMES_MAX, &inside.end);
    return n + tail_a(n);
}

TRACED static int recursive(int n)
{
    volatile char room[72];
    room[n] = (char)n;
    return (n > 0 ? recursive(n - 1) : innermost(n)) + room[n] + leaf(n);
}

static void trace(void)
{
    trace_begins(RING, 4);
    CHECK(THUNKS_TRACE(recursive, 1) && THUNKS_TRACE(leaf, 2) && THUNKS_TRACE(tail_a, 3) && THUNKS_TRACE(tail_b, 4) &&
              thunks_trace_moved((void (*)(void))innermost, 5),
          "not planned");
}

// ---- from handlers: all callers of the function that is interrupted in the end

static size_t program_frames; // from the one that calls `recursive` on
static uintptr_t program_pcs[FRAMES_MAX];
static volatile size_t walks, guesses, guesses_elsewhere, wrong;
static volatile bool is_running;

static void on_alarm(int number, siginfo_t *info, void *ucontext)
{
    (void)number, (void)info;
    static struct walk walk;
    if (!is_running || program_frames == 0)
        return;
    const ucontext_t *at = ucontext;
    const struct qut_calls_header *header = thunks_header();
    walk.count = qut_backtrace_context(ucontext, walk.pcs, FRAMES_MAX, &walk.end);
    const bool is_stub = at->uc_mcontext.pc >= header->stub_begin && at->uc_mcontext.pc < header->stub_end;
    walks++;
    guesses += walk.end.guessed_frame != QUT_NO_GUESS;
    guesses_elsewhere += walk.end.guessed_frame != QUT_NO_GUESS && is_stub;
    const size_t callers = program_frames - 1;
    wrong += walk.count < callers || walk.end.reason != inside.end.reason ||
             memcmp(walk.pcs + walk.count - callers, program_pcs + 1, callers * sizeof *walk.pcs) != 0;
}

__attribute__((noinline)) static void program(unsigned rounds)
{
    is_running = true;
    for (unsigned i = 0; i < rounds; i++)
        sink += recursive(DEPTH);
    is_running = false;
}

static void storm(void)
{
    const struct sigaction action = {.sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct itimerval once = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    for (unsigned i = 0; i < ROUNDS; i++) {
        once.it_value.tv_usec = 100 + i * 37 % 900;
        setitimer(ITIMER_REAL, &once, NULL);
        program(8);
        if (i == 0) { // that is what is right for calls from here
            memcpy(program_pcs, inside.pcs + DEPTH + 2, (inside.count - (DEPTH + 2)) * sizeof *program_pcs);
            program_frames = inside.count - (DEPTH + 2);
        }
        if (i % 16 == 0)
            thunks_drain();
    }
    printf("# %zu walks from handlers, %zu with a guess\n", walks, guesses);
    CHECK(walks > 0 && wrong == 0 && guesses_elsewhere == 0, "%zu of %zu wrong; %zu guesses in stubs", wrong, walks,
          guesses_elsewhere);
}

static void walk_with(uint32_t tiers)
{
    static struct walk before;
    if (!discipline_start())
        abort();
    qut_thread_register();
    atomic_store_explicit(&runtime_tiers, tiers, memory_order_relaxed);
    volatile unsigned round_count = 2; // unknown to the compiler: both are called from one place
    for (unsigned round = 0; round < round_count; round++) {
        if (round)
            trace();
        for (unsigned i = 0; i < REPEATS; i++) {
            program(1);
            if (round == 0 && i == 0)
                before = inside;
            CHECK(inside.count == before.count && inside.end.reason == before.end.reason &&
                      memcmp(inside.pcs, before.pcs, before.count * sizeof *before.pcs) == 0,
                  "round %u: %zu frames, before %zu: %s", round, inside.count, before.count,
                  qut_end_reason_name(inside.end.reason));
        }
    }
    CHECK(before.count > DEPTH + 3 && before.end.reason == QUT_END_OUTERMOST, "%zu frames: %s", before.count,
          qut_end_reason_name(before.end.reason));
    storm();
}

TEST(walks_are_the_same)
{
    walk_with(0);
}

TEST(walks_with_shortcuts_are_the_same)
{
    walk_with(RUNTIME_TIERS_ALL | RUNTIME_TIER_STUBBORN);
}

int main(void)
{
    if (!discipline_has_compiler()) {
        printf("SKIP: no QUT_TEST_QUTC: no tables\n");
        return 77;
    }
    RUN_ALONE(walks_are_the_same);
    RUN_ALONE(walks_with_shortcuts_are_the_same);
    return tap_finish();
}

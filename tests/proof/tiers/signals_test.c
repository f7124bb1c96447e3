// SPDX-License-Identifier: Apache-2.0
// Walks in handlers: on the interrupted stack and on one of their own, called by the program and out of nowhere, and in
// the middle of another walk.
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#include "libqut/arch/native.h"
#include "tests/proof/tiers/play.h"
#include "tests/support/tap.h"

enum { ROUNDS = 40, ALTERNATE_BYTES = 512 << 10, TICK_US = 200, TICKS = 1500, PATIENCE_SECONDS = 8 };

static struct play play, inner;
static struct play_script script, inner_script;
static _Alignas(64) char alternate_memory[ALTERNATE_BYTES], *alternate = alternate_memory;
static unsigned handled, inner_wrong;
static bool from_context;

static void begin(void)
{
    play_reset(&inner);
    play_reset(&play);
    script.count = inner_script.count = 0;
    handled = inner_wrong = 0;
}

static void set_handler(void (*handler)(int, siginfo_t *, void *), int number, int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
    stack_t stack = {.ss_sp = alternate, .ss_size = ALTERNATE_BYTES};
    if (!(flags & SA_ONSTACK))
        stack = (stack_t){.ss_flags = SS_DISABLE};
    sigaltstack(&stack, NULL);
}

// ---- a play in a play: the signal frame is in the middle of the stack

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    if (from_context && handled % 3 != 2)
        play_judge_context(&play, context);
    play_run(&inner, inner_script.ops, inner_script.count);
    // What is beneath the inner play is the handler, the signal frame, and the outer play.
    inner_wrong += !play_is_outer_part(&play, inner.outer, inner.outer_count, inner.outer_end.reason);
    if (from_context && handled % 3 != 1)
        play_judge_context(&play, context);
    handled++;
}

static void raise_it(struct play *unused)
{
    (void)unused;
    raise(SIGUSR1);
}

static void play_in_handler(int flags, bool with_context)
{
    begin();
    from_context = with_context;
    set_handler(on_signal, SIGUSR1, flags);
    play.act = raise_it;
    play_descend(&inner_script, 12, 4);
    for (unsigned i = 0; i < 4; i++) {
        play_walk(&inner_script, 0);
        play_walk(&inner_script, i ? 0 : 9);
        play_back(&inner_script, i);
        play_descend(&inner_script, i, 3 + i);
    }
    play_descend(&script, 25, 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (i % 2)
            play_walk(&script, 0);
        play_act(&script);
        if (i % 3)
            play_act(&script);
        play_walk(&script, 0);
        play_back(&script, 1 + i % 9);
        play_descend(&script, 1 + i % 9, i);
    }
    play_run(&play, script.ops, script.count);
    CHECK_JUDGED();
    CHECK(handled > ROUNDS && inner_wrong == 0, "%u of %u handlers not above the play", inner_wrong, handled);
    // After a walk that began on another stack nothing may be remembered.
    CHECK(judged.remembered > 0 && (flags & SA_ONSTACK || judged.missed_last <= PLAY_MISSED_MAX),
          "%zu remembered, %zu missed in the last walk", (size_t)judged.remembered, judged.missed_last);
    CHECK(judged.ended_elsewhere == 0, "%zu walks did not end where the play's do", (size_t)judged.ended_elsewhere);
    printf("# %zu walks, %zu frames, %zu remembered\n", (size_t)judged.walks, (size_t)judged.frames,
           (size_t)judged.remembered);
}

TEST(handlers_on_the_same_stack)
{
    play_in_handler(0, false);
    play_in_handler(0, true);
}

TEST(handlers_on_a_stack_of_their_own)
{
    play_in_handler(SA_ONSTACK, false);
    play_in_handler(SA_ONSTACK, true);
}

// The same context, again and again: what is remembered of a walk that began where code was interrupted.
static size_t least_remembered;

static void on_same_context(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    for (unsigned i = 0; i < 8; i++) {
        play_judge_context(&play, context);
        size_t missed = judged.count - judged.last_remembered;
        if (i && least_remembered < missed)
            least_remembered = missed;
    }
    handled++;
}

TEST(a_context_is_remembered)
{
    for (unsigned on_stack = 0; on_stack < 2; on_stack++) {
        begin();
        least_remembered = 0;
        set_handler(on_same_context, SIGUSR1, on_stack ? SA_ONSTACK : 0);
        play.act = raise_it;
        play_descend(&script, 30, 1);
        for (unsigned i = 0; i < ROUNDS; i++) {
            play_act(&script);
            play_back(&script, i % 4);
            play_descend(&script, i % 4, i);
        }
        play_run(&play, script.ops, script.count);
        CHECK_JUDGED();
        CHECK(judged.remembered > 0, "%zu frames remembered", (size_t)judged.remembered);
        // raise() and what it calls lie in libc.
        CHECK(least_remembered <= 6, "%zu of %zu frames not remembered in a second walk from the same context",
              least_remembered, judged.count);
    }
}

// ---- the same pc and sp, interrupted there and called from there: that is not the same state

static struct play nobody; // no walk is compared with it

static void put(ucontext_t *context, unsigned offset_bytes, uintptr_t value)
{
    memcpy((char *)context + offset_bytes, &value, sizeof value);
}

static void on_turn(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    static ucontext_t turned;
    const struct arch_register_layout *layout = arch_native_arch.ucontext_registers;
    struct qut_cursor cursor;
    struct qut_frame frame;
    uintptr_t pc = (uintptr_t)play_turned & ~(uintptr_t)arch_native_arch.has_thumb;
    qut_cursor_context(&cursor, context);
    do
        qut_cursor_frame(&cursor, &frame);
    while (frame.pc != pc && qut_cursor_next(&cursor));
    memcpy(&turned, context, layout->size_bytes);
    put(&turned, layout->pc_offset, pc);
    put(&turned, layout->reg_offset[arch_native_arch.sp_reg], (uintptr_t)frame.sp);
    for (unsigned slot = 0; slot < arch_native_arch.tracked_count; slot++) {
        uint64_t value;
        unsigned reg = arch_native_arch.tracked[slot];
        if (qut_cursor_register(&cursor, reg, &value))
            put(&turned, layout->reg_offset[reg], (uintptr_t)value);
    }
    for (unsigned i = 0; i < 1 + handled % 3; i++)
        play_judge_context(&nobody, &turned);
    handled += frame.pc == pc && judged.count == 1 && judged.reason == QUT_END_OUTERMOST;
}

TEST(interrupted_where_a_call_returns)
{
    begin();
    set_handler(on_turn, SIGUSR1, 0);
    play.act = raise_it;
    play_descend(&script, 5, 1);
    play_call(&script, PLAY_TURN, 0, 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        play_descend(&script, i % 3, 1);
        for (unsigned k = 0; k < i % 4; k++)
            play_walk(&script, 0);
        play_act(&script);
        play_walk(&script, i % 5 < 2 ? 3 + i % 2 * 9 : 0); // cut within and outside of where the last one ended
        play_walk(&script, 0);
        play_back(&script, i % 3);
    }
    play_run(&play, script.ops, script.count);
    CHECK_JUDGED();
    CHECK(handled == ROUNDS, "%u of %u walks ended where they began", handled, ROUNDS);
}

// ---- ticks: handlers at any instruction, also of a walk

static volatile unsigned ticks;
static bool walk_in_tick;

static void set_tick(void)
{
    struct itimerval once = {.it_value.tv_usec = TICK_US};
    setitimer(ITIMER_REAL, &once, NULL);
}

static void on_tick(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    if (play.is_on) {
        play_judge_context(&play, context);
        if (walk_in_tick)
            play_run(&inner, inner_script.ops, inner_script.count);
        ticks++;
    }
    set_tick();
}

static size_t walks_left;

// gcc 12 says of the `ret` of a function that aligns its stack and has an alloca that rbp is saved still, where it was
// restored already. All ways of walking believe it alike, and a tick may hit it.
static struct play_op a_call_that_is_described(struct play *made)
{
    struct play_op call = play_any_call(made);
    while (call.kind == PLAY_CALL && call.function == PLAY_ALIGNED_ALLOCA)
        call = play_any_call(made);
    return call;
}

static struct play_op at_random(struct play *made)
{
    size_t dice = play_below(made, 100);
    if (walks_left == 0)
        return (struct play_op){.kind = PLAY_RETURN};
    if (made->depth == 0 || (dice < 45 && made->depth < 40))
        return a_call_that_is_described(made);
    if (dice < 88)
        return (struct play_op){.kind = PLAY_RETURN};
    walks_left--;
    return (struct play_op){.kind = PLAY_WALK, .max = dice < 90 ? (uint16_t)(1 + play_below(made, 20)) : 0};
}

static void tick(int flags, bool walk)
{
    begin();
    walk_in_tick = walk;
    play_descend(&inner_script, 3, 2);
    play_walk(&inner_script, 0);
    set_handler(on_tick, SIGALRM, flags);
    play.invent = at_random;
    play.data_varies = true;
    play.skip_nodes = true; // a handler's walk may have come between
    play.random_state = 77;
    time_t start = time(NULL);
    ticks = 0;
    set_tick();
    while (ticks < TICKS && time(NULL) - start < PATIENCE_SECONDS) {
        walks_left = 200;
        play_run(&play, NULL, 0);
    }
    signal(SIGALRM, SIG_IGN);
    CHECK_JUDGED();
    printf("# %u handlers, %zu walks; %zu of %zu frames remembered; from contexts %zu ended elsewhere\n", ticks,
           (size_t)judged.walks, (size_t)judged.remembered, (size_t)judged.frames, (size_t)judged.ended_elsewhere);
    CHECK(ticks > 20 && judged.remembered > 0, "%u ticks, %zu frames remembered", ticks, (size_t)judged.remembered);
}

TEST(interrupted_anywhere)
{
    tick(0, false);
    tick(SA_ONSTACK, false);
}

TEST(handlers_that_walk_from_where_they_are)
{
    tick(0, true);
    tick(SA_ONSTACK, true);
}

// The alternate stack lies in a frame further out: walks come from it to what lies below.
TEST(handlers_on_a_part_of_the_same_stack)
{
    _Alignas(64) char part[ALTERNATE_BYTES];
    alternate = part;
    play_in_handler(SA_ONSTACK, false);
    play_in_handler(SA_ONSTACK, true);
    tick(SA_ONSTACK, true);
    stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    alternate = alternate_memory;
}

int main(void)
{
    if (!play_start())
        return 77;
    RUN(handlers_on_the_same_stack);
    RUN(handlers_on_a_stack_of_their_own);
    RUN(handlers_on_a_part_of_the_same_stack);
    RUN(a_context_is_remembered);
    RUN(interrupted_where_a_call_returns);
    RUN(interrupted_anywhere);
    RUN(handlers_that_walk_from_where_they_are);
    return tap_finish();
}

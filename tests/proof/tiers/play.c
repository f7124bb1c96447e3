// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/tiers/play.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/runtime/tiers.h"
#include "tests/support/discipline.h"

uint64_t play_random(struct play *play)
{
    play->random_state ^= play->random_state << 13;
    play->random_state ^= play->random_state >> 7;
    play->random_state ^= play->random_state << 17;
    return play->random_state * UINT64_C(0x9e3779b97f4a7c15);
}

size_t play_below(struct play *play, size_t limit)
{
    return (size_t)(play_random(play) >> 33) % limit;
}

static void add(struct play_script *script, struct play_op op)
{
    if (script->count == sizeof script->ops / sizeof *script->ops)
        abort();
    script->ops[script->count++] = op;
}

void play_call(struct play_script *script, unsigned function, unsigned site, unsigned bytes)
{
    add(script, (struct play_op){PLAY_CALL, (uint8_t)site, (uint16_t)function, (uint16_t)bytes, 0});
}

void play_back(struct play_script *script, size_t levels)
{
    while (levels--)
        add(script, (struct play_op){.kind = PLAY_RETURN});
}

void play_walk(struct play_script *script, size_t max)
{
    add(script, (struct play_op){.kind = PLAY_WALK, .max = (uint16_t)max});
}

void play_act(struct play_script *script)
{
    add(script, (struct play_op){.kind = PLAY_ACT});
}

void play_descend(struct play_script *script, unsigned count, unsigned first)
{
    unsigned from = PLAY_FIRST, functions = (unsigned)play_function_count - from;
    for (unsigned i = first; i < first + count; i++)
        play_call(script, from + i * 5 % functions, i & 1, i % 3 * 64);
}

uintptr_t play_pc_of_return(uintptr_t return_address)
{
    return (return_address & ~(uintptr_t)arch_native_arch.has_thumb) - 1;
}

__attribute__((noinline)) void play_enter(struct play *play, uintptr_t return_address)
{
    if (play->depth >= PLAY_DEPTH_MAX)
        abort();
    if (return_address == (uintptr_t)exchange_exit)
        return_address = play->exchange.true_return;
    // In this order: what a handler finds in the list is on the stack.
    play->returns[play->depth] = return_address;
    play->positions[play->depth] = (uintptr_t)__builtin_frame_address(0);
    atomic_signal_fence(memory_order_seq_cst);
    play->depth++;
    atomic_signal_fence(memory_order_seq_cst);
}

void play_leave(struct play *play)
{
    if (play->depth) // else the root ends
        play->depth--;
    atomic_signal_fence(memory_order_seq_cst);
}

bool play_exchanges(void)
{
    static const char *set;
    if (!set)
        set = getenv("PLAY_EXCHANGES");
    return set != NULL;
}

play_function *play_exchanged(struct play *play, play_function *function)
{
    static const char *const ways[] = {exchange_enter, exchange_twice, NULL, NULL, NULL, NULL};
    const char *way = play_exchanges() ? ways[play_below(play, sizeof ways / sizeof *ways)] : NULL;
    if (!way || !exchange_prepare((uintptr_t)__builtin_frame_address(0)))
        return function;
    memcpy(&play->exchange.target, &function, sizeof function);
    memcpy(&function, &way, sizeof function);
    return function;
}

__attribute__((noinline)) static void act(struct play *play)
{
    play_enter(play, (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)));
    play->act(play);
    play_leave(play);
}

play_function *play_next(struct play *play)
{
    struct play_op op = {PLAY_RETURN, 0, 0, 0, 0};
    if (play->invent)
        op = play->invent(play);
    else if (play->op_next < play->op_count)
        op = play->ops[play->op_next++];
    if (op.kind == PLAY_RETURN)
        return play_leave(play), NULL;
    if (play->data_varies)
        play->data = (uintptr_t)play_random(play);
    play->site = op.site;
    play->bytes = (uintptr_t)op.bytes & ~(uintptr_t)63;
    play->walk_max = op.max ? op.max : PLAY_PCS_MAX;
    switch (op.kind) {
    case PLAY_WALK: return play_exchanged(play, play_judge);
    case PLAY_ACT: return play_exchanged(play, act);
    default: return play_exchanged(play, play_functions[op.function % play_function_count]);
    }
}

struct play_op play_any_call(struct play *play)
{
    uint16_t function = (uint16_t)play_below(play, play_function_count);
    if (function == PLAY_LOSE || function == PLAY_TURN || (function == PLAY_OTHER && !play->needs_others))
        function = PLAY_BASE;
    return (struct play_op){PLAY_CALL, (uint8_t)play_below(play, 2), function, (uint16_t)(play_below(play, 4) * 64), 0};
}

// ---- the root

void play_reset(struct play *play)
{
    memset(play, 0, sizeof *play);
    judged_reset();
    qut_thread_unregister();
    qut_thread_register();
}

__attribute__((noinline)) static size_t walk_without_shortcuts(uintptr_t *pcs, size_t max, struct qut_end *end)
{
    uint32_t tiers = atomic_exchange_explicit(&runtime_tiers, 0, memory_order_relaxed);
    size_t count = qut_backtrace(pcs, max, end);
    atomic_store_explicit(&runtime_tiers, tiers, memory_order_relaxed);
    return count;
}

// Frame 0 is the function above, 1 this one, 2 the root, which the first of the play's return addresses leads to.
__attribute__((noinline)) static void note_outer(struct play *play)
{
    enum { OWN = 3 };
    static uintptr_t pcs[PLAY_OUTER_MAX + OWN];
    size_t count = walk_without_shortcuts(pcs, PLAY_OUTER_MAX + OWN, &play->outer_end);
    play->outer_count = count > OWN ? count - OWN : 0;
    // The first one that a guess led to is what a register said; what lies behind it rests on a stack pointer that may
    // be wrong.
    size_t sure = (size_t)play->outer_end.guessed_frame + 1; // more than all, without a guess
    play->outer_sure_count = sure > OWN && sure < count ? sure - OWN : play->outer_count;
    for (size_t i = 0; i < play->outer_count; i++)
        play->outer[i] = pcs[i + OWN];
}

__attribute__((noinline)) void play_run(struct play *play, const struct play_op *ops, size_t op_count)
{
    play->ops = ops;
    play->op_count = op_count;
    play->op_next = play->depth = 0;
    judged_forget();
    if (!play->random_state)
        play->random_state = UINT64_C(88172645463325252);
    note_outer(play);
    play->is_on = true;
    for (play_function *next; (next = play_next(play)) != NULL;) {
        next(play);
        __asm__ volatile("" ::: "memory");
    }
    play->is_on = false;
}

bool play_start(void)
{
    // As discipline_start, but without a thread.
    struct qut_options options = {.size = sizeof options, .compile = discipline_compile, .flags = QUT_START_NO_THREAD};
    if (!discipline_has_compiler()) {
        printf("SKIP: no QUT_TEST_QUTC: no tables, nothing to remember\n");
        return false;
    }
    if (qut_start(&options) != 0)
        abort();
    qut_refresh();
    return true;
}

// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/libqut/modules/jit/player.h"

#include <stdio.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/runtime/tiers.h"
#include "tests/support/discipline.h"

qut_compile_fn player_compile_jit = code_compile;

int player_compile(void *context, const struct qut_compile_request *request, void **table, size_t *table_size,
                   char *reason, size_t reason_size)
{
    return request->flags & QUT_COMPILE_JIT
               ? player_compile_jit(NULL, request, table, table_size, reason, reason_size)
               : discipline_compile(context, request, table, table_size, reason, reason_size);
}

// One walk at a time in each thread.
static _Thread_local struct player *walking;
static _Thread_local enum verdict verdict;
static _Thread_local uintptr_t jit_pc; // as walks give it; 0: compiled code is in its place
static _Thread_local uintptr_t compiled_pc;

bool player_is_outer(const struct player *player, const uintptr_t *pcs, size_t count, size_t at,
                     const struct qut_end *end)
{
    return end->reason == player->outer_reason && end->guessed_frame == QUT_NO_GUESS &&
           count - at - 1 == player->outer_count &&
           memcmp(pcs + at + 1, player->outer, player->outer_count * sizeof *pcs) == 0;
}

static size_t frame_in(const uintptr_t *pcs, size_t count, uintptr_t pc)
{
    size_t at = 0;
    while (at < count && pcs[at] != pc)
        at++;
    return at;
}

static enum verdict judge(const struct player *player)
{
    size_t at = frame_in(player->pcs, player->count, jit_pc);
    if (at == player->count)
        return WRONG;
    if (at + 1 == player->count && player->end.reason == QUT_END_TABLE_PENDING)
        return PENDING;
    if (at + 1 == player->count && player->end.reason == QUT_END_NO_MODULE)
        return UNKNOWN;
    return player_is_outer(player, player->pcs, player->count, at, &player->end) ? CROSSED : WRONG;
}

static void note_flags(struct player *player)
{
    struct qut_cursor cursor;
    struct qut_frame frame;
    player->jit_frame_flags = 0;
    qut_cursor_here(&cursor);
    do {
        qut_cursor_frame(&cursor, &frame);
        if (frame.lookup_pc == jit_pc)
            player->jit_frame_flags = frame.flags;
    } while (qut_cursor_next(&cursor));
}

// What the code calls.
__attribute__((noinline)) static void walk(void)
{
    struct player *player = walking;
    static const uint32_t tiers[] = {0, RUNTIME_TIERS_ALL, RUNTIME_TIERS_ALL};
    for (unsigned i = 0; i < sizeof tiers / sizeof *tiers; i++) {
        bool errno_kept;
        atomic_store_explicit(&runtime_tiers, tiers[i], memory_order_relaxed);
        player->count = discipline_walk(NULL, player->pcs, PLAYER_FRAMES_MAX, &player->end, &errno_kept);
        if (jit_pc == 0) {
            compiled_pc = arch_native_key((uintptr_t)__builtin_return_address(0)) - 1;
            continue;
        }
        enum verdict now = errno_kept ? judge(player) : WRONG;
        if (i > 0 && now != verdict && now != WRONG)
            now = verdict == WRONG ? WRONG : now;
        verdict = now;
        if (verdict == WRONG)
            return;
    }
    note_flags(player);
}

static _Thread_local volatile int after_call;

__attribute__((noinline)) static void compiled(code_callee *callee)
{
    callee();
    after_call++; // so that its frame stays
}

__attribute__((noinline)) static void call(code_function *function)
{
    function(walk);
    after_call++;
}

enum verdict player_walk(struct player *player, unsigned slot)
{
    walking = player;
    for (volatile unsigned i = 0; i < 2; i++) { // one place that calls, whatever a compiler would like
        jit_pc = i ? (uintptr_t)code_of(slot) + MACHINE_RETURN - 1 : 0;
        call(i ? code_of(slot) : compiled);
        if (i)
            continue;
        size_t at = frame_in(player->pcs, player->count, compiled_pc);
        if (player->end.reason == QUT_END_TABLE_PENDING || at + 2 >= player->count)
            return WRONG;
        player->outer_reason = player->end.reason; // in a thread of Arm's C library, it has no rows
        player->outer_count = player->count - at - 1;
        memcpy(player->outer, player->pcs + at + 1, player->outer_count * sizeof *player->outer);
    }
    return verdict;
}

const char *player_text(const struct player *player)
{
    static _Thread_local char text[128 + PLAYER_FRAMES_MAX * 20];
    int length =
        snprintf(text, sizeof text,
                 "reason %u at %#llx, %zu frames; outside reason %u, %zu frames; code at %#llx:", player->end.reason,
                 (unsigned long long)player->end.pc, player->count, player->outer_reason, player->outer_count,
                 (unsigned long long)jit_pc);
    for (size_t i = 0; i < player->count && i < 24; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, " %#llx", (unsigned long long)player->pcs[i]);
    return text;
}

// SPDX-License-Identifier: Apache-2.0
// Many frames are followed at once, and where the memo's steps are known to be of one kind, that is not asked. Here
// both are compared with taking one step after the other.
#include "libqut/runtime/memo_follow_inline.h"

#include "tests/support/tap.h"

enum { FRAMES_MAX = 70, WORDS_A_FRAME = 5, ROUNDS = 30000 };

static struct runtime_memo memo;
static uintptr_t stack[FRAMES_MAX * WORDS_A_FRAME];
static uint32_t seed = 1;

static uint32_t below(uint32_t end)
{
    seed = seed * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)(seed >> 8) * end >> 24);
}

static uintptr_t *word_at(const struct runtime_memo_frame *frame, intptr_t offset_bytes)
{
    return (uintptr_t *)(frame->sp + (uintptr_t)offset_bytes);
}

// Where a step's second word lies: below ra, further below it, or nowhere.
static intptr_t fp_offset_bytes(unsigned kind)
{
    intptr_t word = sizeof(uintptr_t);
    return kind == RUNTIME_MEMO_PAIR ? -2 * word : kind == RUNTIME_MEMO_OTHER ? -3 * word : 0;
}

// The memo of a stack whose steps are of one kind for a while, then of another.
static void remember(uint32_t count)
{
    static const unsigned kinds[] = {0, RUNTIME_MEMO_PAIR, RUNTIME_MEMO_OTHER};
    const intptr_t ra_offset_bytes = -(intptr_t)sizeof(uintptr_t);
    unsigned kind = kinds[below(3)];
    runtime_memo_restart(&memo);
    memo.good = memo.good_end = memo.next = RUNTIME_MEMO_CAPACITY - count;
    for (uint32_t i = 0; i < count; i++) {
        struct runtime_memo_frame *frame = &memo.frames[memo.good + i];
        if (below(12) == 0)
            kind = kinds[below(3)];
        *frame = (struct runtime_memo_frame){.sp = (uintptr_t)&stack[(i + 1) * WORDS_A_FRAME],
                                             .ra = 0x10000 + 2 * below(1000),
                                             .fp = 0x20000 + 8 * below(1000)};
        frame->step.ra_offset_bytes = (int16_t)(ra_offset_bytes | (int)kind);
        frame->step.fp_offset_bytes = (int16_t)(fp_offset_bytes(kind) | (kind ? RUNTIME_MEMO_LIVE : 0));
        *word_at(frame, ra_offset_bytes) = frame->ra;
        if (kind)
            *word_at(frame, fp_offset_bytes(kind)) = frame->fp;
    }
}

static size_t step_by_step(const struct runtime_memo_frame *frame, size_t steps, uintptr_t *pcs)
{
    size_t taken = 0;
    for (; taken < steps && runtime_memo_holds(&frame[taken + 1]); taken++)
        pcs[taken] = arch_native_key(frame[taken + 1].ra) - 1;
    return taken;
}

static size_t at_once(const struct runtime_memo_frame *first, size_t steps, uintptr_t *pcs)
{
    const struct runtime_memo_frame *frame = first, *end = first + steps;
    if (memo.run_end)
        frame = runtime_memo_follow_run(&memo, first, end, pcs);
    return (size_t)(runtime_memo_follow_inline(frame, end, pcs + (frame - first)) - first);
}

TEST(follows_as_one_step_after_the_other)
{
    unsigned whole = 0, part = 0, by_runs = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t count = 1 + below(FRAMES_MAX);
        remember(count);
        bool knows_runs = below(2);
        if (knows_runs) {
            runtime_memo_know_run(&memo);
            CHECK(memo.run_end == 0, "known at the first same walk");
            runtime_memo_know_run(&memo);
        }
        if (below(4))
            stack[below(count * WORDS_A_FRAME)] ^= 8;
        const struct runtime_memo_frame *first = &memo.frames[memo.good];
        size_t steps = below(count);
        uintptr_t right[FRAMES_MAX] = {0}, pcs[FRAMES_MAX] = {0};
        size_t right_count = step_by_step(first, steps, right), pc_count = at_once(first, steps, pcs);
        bool is_right = pc_count == right_count;
        for (size_t i = 0; i < right_count; i++)
            is_right = is_right && pcs[i] == right[i];
        for (size_t i = steps; i < FRAMES_MAX; i++)
            is_right = is_right && pcs[i] == 0;
        if (!CHECK(is_right, "%zu steps of %zu, should be %zu", pc_count, steps, right_count))
            return;
        whole += right_count == steps;
        part += right_count && right_count < steps;
        by_runs += memo.run_end != 0 && memo.run_end < RUNTIME_MEMO_CAPACITY - 1;
    }
    CHECK(whole > ROUNDS / 4 && part > ROUNDS / 12 && by_runs > ROUNDS / 8,
          "%u whole, %u in part, %u with runs that end", whole, part, by_runs);
}

int main(void)
{
    RUN(follows_as_one_step_after_the_other);
    return tap_finish();
}

// SPDX-License-Identifier: Apache-2.0
// The frame pointer as data, and as what a frame is found by. A memory of walks must not look at saved data that no
// frame needs, or it never matches, and must look at what a frame further out is found by.
#include "tests/proof/tiers/play.h"
#include "tests/support/tap.h"

enum { ROUNDS = 60, ALWAYS_REMEMBERED = 40, LONGEST = 600 };

static struct play play;
static struct play_script script;

static void begin(bool data_varies)
{
    script.count = 0;
    play_reset(&play);
    play.data_varies = data_varies;
}

static void run(void)
{
    play_run(&play, script.ops, script.count);
    CHECK_JUDGED();
}

static void call_all(const unsigned *functions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        play_call(&script, functions[i], 0, 0);
}

// The same calls again and again, with other data in the frame pointer each time.
static void same_calls(const unsigned *functions, size_t count)
{
    begin(true);
    for (unsigned i = 0; i < ROUNDS; i++) {
        size_t again = 1 + i % count;
        call_all(functions + (i ? count - again : 0), i ? again : count);
        play_walk(&script, 0);
        play_walk(&script, 0);
        play_back(&script, 1 + (i + 1) % count);
    }
    run();
    CHECK_REMEMBERED();
}

#define SAME_CALLS(...)                                                                                                \
    same_calls((const unsigned[]){__VA_ARGS__}, sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned))

TEST(data_that_no_frame_needs_may_change)
{
    SAME_CALLS(PLAY_DATA);
    SAME_CALLS(PLAY_DATA, PLAY_DATA, PLAY_DATA, PLAY_DATA);
    SAME_CALLS(PLAY_PLAIN, PLAY_DATA, PLAY_PLAIN, PLAY_PLAIN, PLAY_DATA, PLAY_PLAIN);
    SAME_CALLS(PLAY_HEAVY, PLAY_DATA, PLAY_HEAVY, PLAY_HEAVY, PLAY_DATA, PLAY_SIZES);
}

TEST(data_above_frames_that_need_the_frame_pointer_may_change)
{
    SAME_CALLS(PLAY_BASE, PLAY_DATA, PLAY_DATA, PLAY_DATA);
    SAME_CALLS(PLAY_ALLOCA, PLAY_DATA, PLAY_PLAIN, PLAY_HEAVY, PLAY_DATA, PLAY_HEAVY);
    SAME_CALLS(PLAY_DATA, PLAY_BASE, PLAY_DATA, PLAY_BASE, PLAY_DATA, PLAY_BASE, PLAY_DATA);
    SAME_CALLS(PLAY_DATA, PLAY_DATA, PLAY_ALIGNED, PLAY_DATA, PLAY_DATA, PLAY_ALIGNED_ALLOCA, PLAY_DATA, PLAY_DATA);
}

// In place of one frame that is found by the frame pointer, several as large together: the innermost has the pc and sp
// of the one that was there, and where the return address of that was, there is the same one. Only the frame pointer,
// saved further in, tells. With `max`, walks of so many frames come first: cut at that frame, they have not asked for
// it.
static void frame_is_split(unsigned outer, const unsigned *inner, size_t count, size_t max)
{
    // As large where frames are of 64 bytes, of 32 (arm), of 48 (i386).
    static const struct split {
        unsigned more, bytes;
    } splits[] = {{1, 128}, {2, 128}, {4, 0}}, whole = {0, 192};
    begin(true);
    call_all((const unsigned[]){PLAY_SIZES, PLAY_DATA, PLAY_SIZES + 3, outer}, 4);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct split split = i % 2 ? splits[i / 2 % 3] : whole;
        for (unsigned k = 0; k < split.more; k++)
            play_call(&script, PLAY_BASE, 0, 0);
        play_call(&script, PLAY_BASE, 0, split.bytes);
        call_all(inner, count);
        if (max)
            play_walk(&script, max);
        play_walk(&script, 0);
        play_walk(&script, 0);
        play_back(&script, 1 + split.more + count);
    }
    run();
    CHECK_REMEMBERED();
}

#define FRAME_IS_SPLIT(outer, ...)                                                                                     \
    for (size_t max = 0; max < sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned) + 5; max++)                  \
    frame_is_split(outer, (const unsigned[]){__VA_ARGS__}, sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned), \
                   max)

TEST(a_saved_frame_pointer_that_is_needed_is_looked_at)
{
    static const unsigned outer[] = {PLAY_BASE, PLAY_ALLOCA, PLAY_ALIGNED_ALLOCA};
    for (size_t i = 0; i < sizeof outer / sizeof *outer; i++) {
        FRAME_IS_SPLIT(outer[i], PLAY_PLAIN);
        FRAME_IS_SPLIT(outer[i], PLAY_DATA);
        FRAME_IS_SPLIT(outer[i], PLAY_DATA, PLAY_DATA, PLAY_PLAIN, PLAY_HEAVY);
        FRAME_IS_SPLIT(outer[i], PLAY_PLAIN, PLAY_PLAIN, PLAY_DATA, PLAY_PLAIN);
        FRAME_IS_SPLIT(outer[i], PLAY_PLAIN, PLAY_HEAVY, PLAY_BASE, PLAY_DATA);
    }
}

// No frame needs what the inner frames saved; then the outer one is replaced by one that does, and back. Its callees
// have saved other data meanwhile.
TEST(saved_data_comes_to_be_needed)
{
    static const unsigned outer[] = {PLAY_PLAIN, PLAY_BASE, PLAY_DATA, PLAY_PLAIN, PLAY_DATA, PLAY_BASE};
    for (unsigned between = 0; between < 3; between++) {
        for (unsigned with_base = 0; with_base < 2; with_base++) {
            begin(true);
            play_call(&script, with_base ? PLAY_BASE : PLAY_PLAIN, 0, 0);
            play_call(&script, PLAY_SIZES, 0, 0);
            for (unsigned i = 0; i < ROUNDS; i++) {
                play_call(&script, outer[i % 6], 0, 0);
                for (unsigned k = 0; k < between; k++)
                    play_call(&script, PLAY_PLAIN, 0, 0);
                call_all((const unsigned[]){PLAY_DATA, PLAY_PLAIN, PLAY_DATA, PLAY_HEAVY}, 4);
                for (unsigned k = 0; k < i % 3; k++)
                    play_walk(&script, 0);
                play_back(&script, 5 + between);
            }
            run();
            CHECK_REMEMBERED();
        }
    }
}

// ---- at random: frames of equal size, so that whatever is replaced, all others stay where they are

static unsigned stack[LONGEST];
static uint8_t sites[LONGEST];

static void random_rounds(unsigned kinds, unsigned rounds, size_t length)
{
    for (unsigned i = 0; i < length; i++) {
        stack[i] = (unsigned)play_below(&play, kinds);
        sites[i] = 0;
    }
    for (unsigned round = 0; round < rounds; round++) {
        size_t first = length;
        for (size_t changes = play_below(&play, 4); changes--;) {
            size_t at = play_below(&play, length);
            stack[at] = (unsigned)play_below(&play, kinds);
            sites[at] = (uint8_t)(play_below(&play, 4) == 0);
            first = at < first ? at : first;
        }
        // Further out than need be: the same calls, with other data.
        first -= play_below(&play, first / 4 + 1);
        if (round == 0)
            first = 0;
        else
            play_back(&script, length - first);
        for (size_t at = first; at < length; at++)
            play_call(&script, stack[at], sites[at], 0);
        play_walk(&script, 0);
    }
}

struct plan {
    unsigned kinds; // of frames
    bool data_varies;
    uintptr_t data;
    unsigned rounds;
    size_t shortest, longest;
};

static void at_random(uint64_t seed, struct plan plan)
{
    enum { BATCHES = 8 };
    uint64_t remembered = 0, common = 0;
    size_t missed = 0;
    for (unsigned batch = 0; batch < BATCHES; batch++) {
        begin(plan.data_varies);
        play.random_state = seed * 1000 + batch + 1;
        play.data = plan.data;
        play.may_lose_fp = plan.kinds > PLAY_LOSE;
        random_rounds(plan.kinds, plan.rounds, plan.shortest + batch * (plan.longest - plan.shortest) / (BATCHES - 1));
        run();
        remembered += judged.remembered;
        common += judged.common;
        missed = judged.missed_most > missed ? judged.missed_most : missed;
    }
    printf("# %u kinds of %zu to %zu frames, data %s: %zu of %zu frames in common remembered\n", plan.kinds,
           plan.shortest, plan.longest, plan.data_varies ? "changes" : "stays", (size_t)remembered, (size_t)common);
    // A walk that finds itself without a register it needs begins anew, and remembers nothing.
    if (plan.kinds <= PLAY_LOSE && plan.longest <= ALWAYS_REMEMBERED)
        CHECK(missed <= PLAY_MISSED_MAX, "%zu missed in one walk", missed);
    CHECK(remembered > (plan.kinds <= PLAY_OTHER ? common / 4 : 0), "%zu of %zu", (size_t)remembered, (size_t)common);
}

TEST(any_frame_may_be_replaced_by_any)
{
    at_random(1, (struct plan){PLAY_BASE + 1, true, 0, 400, 3, 38});
    at_random(2, (struct plan){PLAY_BASE + 1, false, 0, 400, 3, 38});
    at_random(3, (struct plan){PLAY_BASE + 1, false, (uintptr_t)&play, 400, 3, 38});
    at_random(4, (struct plan){PLAY_BASE + 1, false, (uintptr_t)__builtin_frame_address(0), 400, 3, 38});
}

TEST(even_where_the_frame_pointer_is_lost)
{
    at_random(5, (struct plan){PLAY_LOSE + 1, true, 0, 400, 3, 38});
    at_random(6, (struct plan){PLAY_LOSE + 1, false, 0, 400, 3, 38});
    at_random(7, (struct plan){PLAY_LOSE + 1, false, (uintptr_t)__builtin_frame_address(0), 400, 3, 38});
}

TEST(even_where_other_registers_are_needed)
{
    at_random(8, (struct plan){PLAY_OTHER + 1, true, 0, 400, 3, 38});
    at_random(9, (struct plan){PLAY_OTHER + 1, false, 0, 400, 3, 38});
}

TEST(in_stacks_as_deep_as_the_memory)
{
    at_random(10, (struct plan){PLAY_BASE + 1, true, 0, 40, 440, 580});
}

int main(void)
{
    if (!play_start())
        return 77;
    RUN(data_that_no_frame_needs_may_change);
    RUN(data_above_frames_that_need_the_frame_pointer_may_change);
    RUN(a_saved_frame_pointer_that_is_needed_is_looked_at);
    RUN(saved_data_comes_to_be_needed);
    RUN(any_frame_may_be_replaced_by_any);
    RUN(even_where_the_frame_pointer_is_lost);
    RUN(even_where_other_registers_are_needed);
    RUN(in_stacks_as_deep_as_the_memory);
    return tap_finish();
}

// SPDX-License-Identifier: Apache-2.0
// Walks again and again, while the stack changes at its top, in its middle, at its root, or not at all.
#include "tests/proof/tiers/play.h"
#include "tests/support/tap.h"

enum { ROUNDS = 50 };

static struct play play;
static struct play_script script;

static void begin(void)
{
    script.count = 0;
    play_reset(&play);
}

static void run(void)
{
    play_run(&play, script.ops, script.count);
    CHECK_JUDGED();
}

// Functions of many sizes and shapes, by number.
static void call(unsigned number)
{
    unsigned from = PLAY_FIRST, count = (unsigned)play_function_count - from;
    play_call(&script, from + number * 7 % count, number & 1, number % 3 * 64);
}

static void descend(unsigned count, unsigned first)
{
    for (unsigned i = 0; i < count; i++)
        call(first + i);
}

// Where no rule says that the outermost frame is one, as in Debian's start-up code for arm, each walk finds that out
// the long way, and runtime_last_walk knows of none.
static bool ends_by_rule;

static void check_kept(size_t least)
{
    CHECK(judged.last_known == ends_by_rule && judged.last_kept >= (ends_by_rule ? least : 0),
          "%zu of %zu frames kept, last walk %s", judged.last_kept, judged.count,
          judged.last_known ? "known" : "unknown");
}

TEST(the_same_stack_is_remembered)
{
    for (unsigned depth = 0; depth <= 200; depth += depth < 20 ? 5 : 60) {
        begin();
        descend(depth, 0);
        for (unsigned i = 0; i < ROUNDS; i++)
            play_walk(&script, 0);
        run();
        CHECK_REMEMBERED();
        if (depth == 0)
            ends_by_rule = judged.last_known;
        CHECK(ends_by_rule || judged.last_looked_up > 0, "nothing is known of a walk that was remembered");
        check_kept(judged.count - PLAY_MISSED_MAX);
        CHECK(!ends_by_rule || judged.nodes_kept >= (ROUNDS - 1) * (judged.count - PLAY_MISSED_MAX),
              "%zu nodes found again", (size_t)judged.nodes_kept);
    }
}

TEST(changes_at_the_top_leave_the_rest)
{
    for (unsigned top = 1; top <= 9; top++) {
        begin();
        descend(60, 3);
        for (unsigned i = 0; i < ROUNDS; i++) {
            descend(top, i * 13 + 1);
            play_walk(&script, 0);
            play_back(&script, top);
        }
        run();
        CHECK_REMEMBERED();
        check_kept(60);
    }
}

TEST(deeper_and_shallower)
{
    begin();
    for (unsigned depth = 1, i = 0; i < ROUNDS; i++) {
        descend(i % 11, i);
        depth += i % 11;
        play_walk(&script, 0);
        unsigned back = i % 7 < depth ? i % 7 : depth;
        play_back(&script, back);
        depth -= back;
        play_walk(&script, 0);
    }
    run();
    CHECK_REMEMBERED();
}

// From the root's first callee on.
TEST(all_frames_change)
{
    begin();
    for (unsigned i = 0; i < ROUNDS; i++) {
        descend(40, i);
        play_walk(&script, 0);
        play_back(&script, 40);
    }
    run();
    CHECK(judged.remembered > 0, "none of %zu frames remembered", (size_t)judged.frames);
    CHECK(judged.without_links >= ROUNDS / 2, "%zu walks by hashed rules", (size_t)judged.without_links);
}

// No link is right twice: walks come to do without by themselves.
TEST(stacks_that_cannot_be_foretold)
{
    enum { WALKS = 200, FUNCTIONS = 60, DEPTH = 30 };
    begin();
    play.lets_memory_pause = true;
    play.lets_links_pause = true;
    unsigned drawn = 12345;
    for (unsigned i = 0; i < WALKS; i++) {
        for (unsigned k = 0; k < DEPTH; k++)
            call((drawn = drawn * 1103515245u + 12345u) / 65536 % FUNCTIONS);
        play_walk(&script, 0);
        play_back(&script, DEPTH);
    }
    run();
    // Where rules are those of whole functions and any return address can be an interrupted one (A32), there are no
    // links.
    bool has_links = judged.link_count >= DEPTH;
    CHECK(!has_links || judged.without_links >= WALKS / 2, "%zu of %d walks by hashed rules; %zu links",
          (size_t)judged.without_links, WALKS, judged.link_count);
    play.lets_memory_pause = play.lets_links_pause = false;
}

// The frames within it lie where they lay, and have the return addresses they had.
static void middle(unsigned first_site, unsigned first, unsigned other_site, unsigned other, unsigned how_many)
{
    begin();
    descend(20, 5);
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned site = i % 2 ? other_site : first_site, function = i % 2 ? other : first;
        for (unsigned k = 0; k < how_many; k++) {
            play_call(&script, function, site, 0);
            play_call(&script, PLAY_SIZES + k, 0, 0);
        }
        descend(20, 11);
        play_walk(&script, 0);
        if (i % 5 == 0)
            play_walk(&script, 0);
        play_back(&script, 20 + 2 * how_many);
    }
    run();
    CHECK_REMEMBERED();
}

TEST(a_frame_in_the_middle_is_called_from_another_place)
{
    middle(0, PLAY_TWIN, 1, PLAY_TWIN, 1);
    middle(0, PLAY_TWIN, 1, PLAY_TWIN, 2);
}

TEST(a_frame_in_the_middle_is_replaced_by_one_of_equal_size)
{
    middle(0, PLAY_TWIN, 0, PLAY_OTHER_TWIN, 1);
    middle(0, PLAY_TWIN, 0, PLAY_OTHER_TWIN, 2);
    middle(0, PLAY_PLAIN, 0, PLAY_DATA, 1);
    middle(0, PLAY_PLAIN, 0, PLAY_BASE, 2);
}

// Two frames change sizes with each other: all return addresses, and the places of all other frames, stay.
TEST(frames_in_the_middle_move_alone)
{
    static const unsigned movers[] = {PLAY_BASE, PLAY_ALLOCA, PLAY_ALIGNED_ALLOCA};
    for (size_t k = 0; k < sizeof movers / sizeof *movers; k++) {
        begin();
        descend(15, 2);
        for (unsigned i = 0; i < ROUNDS; i++) {
            unsigned bytes = i % 4 * 64;
            play_call(&script, movers[k], 0, bytes);
            play_call(&script, PLAY_SIZES, 0, 0);
            play_call(&script, movers[k], 0, 192 - bytes);
            descend(15, 4);
            play_walk(&script, 0);
            play_back(&script, 18);
        }
        run();
        CHECK_REMEMBERED();
    }
}

TEST(recursion_goes_one_deeper)
{
    begin();
    descend(5, 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned levels = 10 + i % 4;
        for (unsigned k = 0; k < levels; k++)
            play_call(&script, PLAY_SIZES + 3, 0, 0);
        descend(3, 9);
        play_walk(&script, 0);
        play_back(&script, levels + 3);
    }
    run();
    CHECK_REMEMBERED();
}

TEST(walks_that_are_cut)
{
    begin();
    descend(40, 1);
    play_walk(&script, 0);
    run();
    size_t all = judged.count;
    const size_t limits[] = {1, 2, 5, 17, all - 1, all, all + 1, 0};
    enum { LIMITS = sizeof limits / sizeof *limits };
    begin();
    descend(35, 1);
    for (unsigned i = 0; i < LIMITS * LIMITS * 2; i++) {
        descend(5, i & 1 ? 36 : 37);
        play_walk(&script, limits[i % LIMITS]);
        play_walk(&script, limits[i / LIMITS % LIMITS]);
        play_back(&script, 5);
    }
    run();
    CHECK(judged.remembered > 0, "none of %zu frames remembered", (size_t)judged.frames);
    // What was cut must not spoil the memory of what comes after it.
    begin();
    descend(40, 1);
    play_walk(&script, 17);
    for (unsigned i = 0; i < ROUNDS; i++)
        play_walk(&script, 0);
    run();
    CHECK(judged.remembered > 0 && judged.missed_last <= PLAY_MISSED_MAX, "%zu missed in the end", judged.missed_last);
}

TEST(deeper_than_any_memory)
{
    enum { DEEP = 5000, SOON = 256 };
    begin();
    for (unsigned i = 0; i < DEEP; i++)
        play_call(&script, PLAY_SIZES + i % 8, i / 3 & 1, 0);
    for (unsigned i = 0; i < 10; i++) {
        play_walk(&script, 0);
        play_walk(&script, 0);
        play_back(&script, 3);
        descend(3, i);
    }
    for (unsigned i = 0; i < 10; i++) {
        play_back(&script, DEEP / 20);
        play_walk(&script, 0);
        play_walk(&script, 500);
        play_walk(&script, 0);
    }
    play_back(&script, DEEP / 2 - 50);
    for (unsigned i = 0; i < SOON; i++)
        play_walk(&script, 0);
    run();
    CHECK(judged.last_remembered + PLAY_MISSED_MAX >= judged.count, "%zu of %zu frames remembered when it was shallow",
          judged.last_remembered, judged.count);
}

// In a stack that fills the memory some frames in the middle become twice as many of half the size: those within stay
// where they were, and have to make room.
TEST(more_frames_in_the_middle_of_a_full_memory)
{
    enum { INNER = 120, TWO = 64 };
    for (unsigned outer = 240; outer <= 400; outer += 8) {
        for (unsigned few = 5; few <= 45; few += 20) {
            begin();
            for (unsigned i = 0; i < outer; i++)
                play_call(&script, PLAY_PLAIN, 0, 0);
            for (unsigned i = 0; i < 6; i++) {
                for (unsigned k = 0; k < (i % 2 ? 2 * few : few); k++)
                    play_call(&script, i % 2 ? PLAY_PLAIN : PLAY_BASE, 0, TWO);
                // Within it the frame pointer is data: no walk sees what it was further out.
                for (unsigned k = 0; k < INNER; k++)
                    play_call(&script, k ? PLAY_PLAIN : PLAY_DATA, 0, 0);
                play_walk(&script, 0);
                play_walk(&script, 0);
                play_back(&script, INNER + (i % 2 ? 2 * few : few));
            }
            run();
        }
    }
}

// ---- no plan at all

static size_t walks_left, shallowest, deepest;

static struct play_op at_random(struct play *made)
{
    size_t dice = play_below(made, 100);
    if (walks_left == 0)
        return (struct play_op){.kind = PLAY_RETURN};
    if (made->depth <= shallowest || (dice < 44 && made->depth < deepest))
        return play_any_call(made);
    if (dice < 80)
        return (struct play_op){.kind = PLAY_RETURN};
    walks_left--;
    uint16_t max = dice < 83 ? (uint16_t)(1 + play_below(made, deepest)) : 0;
    return (struct play_op){.kind = PLAY_WALK, .max = max};
}

static void random_stacks(size_t walks, size_t from, size_t to, bool needs_others)
{
    begin();
    play.invent = at_random;
    play.data_varies = true;
    play.needs_others = needs_others;
    play.random_state = 1000 + to;
    walks_left = walks;
    shallowest = from;
    deepest = to;
    play_run(&play, NULL, 0);
    CHECK_JUDGED();
    printf("# %zu to %zu frames: %zu walks, %zu frames, %zu in common with the walk before, %zu remembered\n",
           shallowest, deepest, (size_t)judged.walks, (size_t)judged.frames, (size_t)judged.common,
           (size_t)judged.remembered);
    CHECK(judged.remembered > (needs_others ? 0 : judged.common / 2), "%zu of %zu frames remembered",
          (size_t)judged.remembered, (size_t)judged.common);
}

TEST(thousands_of_random_stacks)
{
    random_stacks(3000, 0, 4, false);
    random_stacks(3000, 0, 12, false);
    random_stacks(3000, 0, 40, false);
    random_stacks(3000, 0, 120, false);
}

TEST(random_stacks_that_need_all_registers)
{
    random_stacks(2000, 0, 15, true);
    random_stacks(2000, 0, 60, true);
}

TEST(random_stacks_as_deep_as_the_memory)
{
    random_stacks(600, 480, 520, false);
    random_stacks(600, 400, 700, false);
}

int main(void)
{
    if (!play_start())
        return 77;
    RUN(the_same_stack_is_remembered);
    RUN(changes_at_the_top_leave_the_rest);
    RUN(deeper_and_shallower);
    RUN(all_frames_change);
    RUN(stacks_that_cannot_be_foretold);
    RUN(a_frame_in_the_middle_is_called_from_another_place);
    RUN(a_frame_in_the_middle_is_replaced_by_one_of_equal_size);
    RUN(frames_in_the_middle_move_alone);
    RUN(recursion_goes_one_deeper);
    RUN(walks_that_are_cut);
    RUN(deeper_than_any_memory);
    RUN(more_frames_in_the_middle_of_a_full_memory);
    RUN(thousands_of_random_stacks);
    RUN(random_stacks_that_need_all_registers);
    RUN(random_stacks_as_deep_as_the_memory);
    return tap_finish();
}

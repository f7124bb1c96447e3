// SPDX-License-Identifier: Apache-2.0
// The memo's frames of a walk lie in two parts until it joins an older one, or ends: those that were found again, and
// those that are new and further out. tests/proof/tiers walks; here is what seldom comes about there.
#include "libqut/runtime/memo.h"

#include "tests/support/tap.h"

static struct runtime_memo memo;

// The number-th frame of a walk.
static struct runtime_memo_frame frame_of(uint32_t number)
{
    return (struct runtime_memo_frame){
        .sp = (number + 1) * sizeof(uintptr_t), .ra = number + 1000, .node = number + 1, .step.ra_offset_bytes = -8};
}

// A walk of which good_count frames were found again from `good` on, and new_count further ones recorded, comes to
// frame `next`.
static void walk(uint32_t good, uint32_t good_count, uint32_t new_count, uint32_t next)
{
    runtime_memo_restart(&memo);
    for (uint32_t i = 0; i < good_count; i++)
        memo.frames[good + i] = frame_of(i);
    for (uint32_t i = 0; i < new_count; i++)
        memo.frames[i] = frame_of(good_count + i);
    for (uint32_t i = next; i < RUNTIME_MEMO_CAPACITY; i++)
        memo.frames[i] = frame_of(good_count + new_count + i - next);
    memo.good = good;
    memo.good_end = good + good_count;
    memo.new_count = new_count;
    memo.next = next;
    memo.contiguous = memo.complete = true;
}

// All of the walk's frames are in their place, or none are and that is known. Returns whether they are.
static bool is_gathered(uint32_t frame_count, uint32_t next)
{
    if (memo.new_count != 0 || memo.good_end != memo.next || memo.next != next)
        return CHECK(false, "%u new, good [%u, %u), next %u", memo.new_count, memo.good, memo.good_end, memo.next);
    for (uint32_t i = memo.good; i < RUNTIME_MEMO_CAPACITY; i++) {
        struct runtime_memo_frame right = frame_of(frame_count + i - next);
        if (memo.frames[i].sp != right.sp || memo.frames[i].ra != right.ra)
            return CHECK(false, "frame %u is %u", i, (unsigned)(memo.frames[i].sp / sizeof(uintptr_t)));
    }
    uint32_t good = memo.good == next ? next : next - frame_count;
    CHECK(memo.good == good && memo.kept_from == next, "[%u, %u), kept from %u", memo.good, next, memo.kept_from);
    CHECK(memo.good != next || !memo.contiguous, "the last walk is said to be here");
    return memo.good != next;
}

TEST(what_is_moved_overwrites_nothing_that_is_needed)
{
    struct runtime_link_step step = {.ra_offset_bytes = -8};
    unsigned kept = 0, dropped = 0, wrong = 0;
    for (uint32_t next = 1; next <= RUNTIME_MEMO_CAPACITY; next += next < 24 ? 1 : 61)
        for (uint32_t good = 1; good < next; good += next < 24 ? 1 : 7)
            for (uint32_t good_count = 0; good_count <= next - good; good_count += next < 24 ? 1 : 11)
                for (uint32_t new_count = 1; new_count <= good; new_count += next < 24 ? 1 : 13) {
                    int failed_before = tap.failed_checks;
                    walk(good, good_count, new_count, next);
                    if (next < RUNTIME_MEMO_CAPACITY)
                        runtime_memo_join(&memo, step);
                    else
                        runtime_memo_end(&memo);
                    bool is_kept = is_gathered(good_count + new_count, next);
                    kept += is_kept;
                    dropped += !is_kept;
                    bool has_room = good_count + 2 * new_count <= next || good_count == 0;
                    CHECK(is_kept || !has_room, "dropped for nothing");
                    wrong += tap.failed_checks != failed_before;
                    if (tap.failed_checks != failed_before)
                        printf("# good [%u, %u), %u new, next %u\n", good, good + good_count, new_count, next);
                    if (wrong > 3)
                        return;
                }
    CHECK(kept > 1000 && dropped > 100, "%u kept, %u dropped", kept, dropped);
}

int main(void)
{
    RUN(what_is_moved_overwrites_nothing_that_is_needed);
    return tap_finish();
}

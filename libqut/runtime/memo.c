// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/memo_follow_inline.h"

enum {
    USELESS_WALKS_MAX = 8, // before a pause
    PAUSE_LOG2_MAX = 7,
};

void runtime_memo_restart(struct runtime_memo *memo)
{
    memo->good = memo->good_end = memo->next = memo->kept_from = RUNTIME_MEMO_CAPACITY;
    memo->new_count = 0;
    memo->complete = memo->contiguous = false;
    memo->pause = 0;
    runtime_memo_forget_run(memo);
    runtime_memo_is_worth_it(memo);
    memo->frames[RUNTIME_MEMO_CAPACITY].sp = UINTPTR_MAX;
}

void runtime_memo_mark_live(struct runtime_memo *memo, uintptr_t fp)
{
    struct runtime_memo_frame *first_new = memo->frames, *first_good = memo->frames + memo->good;
    struct runtime_memo_frame *frame = runtime_memo_last(memo);
    while (!(frame->step.fp_offset_bytes & RUNTIME_MEMO_LIVE)) {
        runtime_memo_set_live(frame);
        frame->fp = fp; // where it was not asked for, an older walk's may stand
        if (runtime_memo_ra_offset_bytes(frame->step) == 0 || runtime_memo_fp_offset_bytes(frame->step) != 0)
            return;
        // The same fp as in the frame that it called.
        if (memo->new_count && frame == first_new) {
            if (memo->good == memo->good_end)
                return;
            frame = memo->frames + memo->good_end;
        }
        if (frame == first_good)
            return;
        frame--;
    }
}

const struct runtime_memo_frame *runtime_memo_follow(const struct runtime_memo_frame *frame,
                                                     const struct runtime_memo_frame *end, uintptr_t *pc)
{
    return runtime_memo_follow_inline(frame, end, pc);
}

void runtime_memo_know_run(struct runtime_memo *memo)
{
    uint32_t end = memo->good + 1;
    bool is_second = memo->same_walks++;
    if (!is_second || end >= RUNTIME_MEMO_CAPACITY)
        return;
    memo->run_kind = runtime_memo_is_of_kind(&memo->frames[end], RUNTIME_MEMO_PAIR) ? RUNTIME_MEMO_PAIR : 0;
    while (end < RUNTIME_MEMO_CAPACITY && runtime_memo_is_of_kind(&memo->frames[end], memo->run_kind))
        end++;
    memo->run_end = end - 1;
}

// Word by word, as they were just stored: a wider load would wait until those stores are done.
static inline void move_frame(struct runtime_memo_frame *to, const volatile struct runtime_memo_frame *from)
{
    uintptr_t sp = from->sp, fp = from->fp, ra = from->ra;
    int16_t ra_offset_bytes = from->step.ra_offset_bytes, fp_offset_bytes = from->step.fp_offset_bytes;
    uint32_t node = from->node;
    *to = (struct runtime_memo_frame){sp, fp, ra, node, {ra_offset_bytes, fp_offset_bytes}};
}

static void move_frames(struct runtime_memo_frame *to, const struct runtime_memo_frame *from, size_t count)
{
    if (to < from)
        for (size_t i = 0; i < count; i++)
            move_frame(&to[i], &from[i]);
    else if (to > from)
        for (size_t i = count; i-- > 0;)
            move_frame(&to[i], &from[i]);
}

// All of this walk's frames become [good, next).
static void gather(struct runtime_memo *memo)
{
    uint32_t good_count = memo->good_end - memo->good, new_count = memo->new_count;
    if (new_count == 0 && memo->good_end == memo->next)
        return;
    memo->kept_from = memo->next;
    memo->new_count = 0;
    // What is moved must not run into what has not been moved yet. That can only be in stacks of about the capacity.
    if (good_count + (good_count ? 2 : 1) * new_count > memo->next) {
        memo->contiguous = false;
        memo->good = memo->good_end = memo->next;
        return;
    }
    struct runtime_memo_frame *end = memo->frames + memo->next, *good = end - new_count - good_count;
    move_frames(good, memo->frames + memo->good, good_count);
    move_frames(end - new_count, memo->frames, new_count);
    memo->good = memo->next - new_count - good_count;
    memo->good_end = memo->next;
    for (struct runtime_memo_frame *frame = good; frame < end; frame++)
        frame->node = 0;
}

void runtime_memo_join(struct runtime_memo *memo, struct runtime_link_step step)
{
    gather(memo);
    struct runtime_memo_frame *frame = &memo->frames[memo->next];
    int16_t flags = frame->step.fp_offset_bytes & RUNTIME_MEMO_FLAGS;
    frame->step.ra_offset_bytes = step.ra_offset_bytes;
    frame->step.fp_offset_bytes = (int16_t)(runtime_memo_fp_offset_bytes(step) | flags);
    if (!(flags & RUNTIME_MEMO_LIVE))
        return;
    runtime_memo_set_live(frame);
    bool is_same_fp = runtime_memo_ra_offset_bytes(step) != 0 && runtime_memo_fp_offset_bytes(step) == 0;
    if (is_same_fp && memo->good < memo->good_end)
        runtime_memo_mark_live(memo, frame->fp);
}

void runtime_memo_cut(struct runtime_memo *memo)
{
    gather(memo);
    if (memo->next == RUNTIME_MEMO_CAPACITY)
        memo->complete = false;
    else if (memo->good < memo->next) // a walk that comes there says how
        memo->frames[memo->next].step.ra_offset_bytes = runtime_memo_unknown_step.ra_offset_bytes;
}

void runtime_memo_end(struct runtime_memo *memo)
{
    memo->next = RUNTIME_MEMO_CAPACITY;
    gather(memo);
    memo->complete = memo->good < memo->next;
}

bool runtime_memo_make_room(struct runtime_memo *memo)
{
    memo->contiguous = false;
    if (memo->good_end > memo->good) {
        memo->new_count = 0; // what is good stays
        return false;
    }
    if (memo->good == RUNTIME_MEMO_CAPACITY)
        return false;
    memo->good = memo->good_end = memo->next = RUNTIME_MEMO_CAPACITY;
    memo->complete = false;
    return true;
}

void runtime_memo_is_useless(struct runtime_memo *memo)
{
    if (++memo->useless_walks < USELESS_WALKS_MAX)
        return;
    // After a pause two walks show whether it is of use again: one that records, one that may match.
    memo->useless_walks = USELESS_WALKS_MAX - 2;
    memo->pause = 1u << memo->pause_log2;
    if (memo->pause_log2 < PAUSE_LOG2_MAX)
        memo->pause_log2++;
}

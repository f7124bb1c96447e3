// SPDX-License-Identifier: Apache-2.0
// What a thread's last walks went through: the state at each frame, and which words of the stack led to the next. A
// walk that comes to a state it was in before need not go on: where those words are what they were, it will go the same
// way. The loads that find out depend on nothing but the memo, so they do not wait for each other. Why this is exact,
// and not a guess: docs/walk-tiers.md.
//
//   frames   [0, new_count)   of this walk, as it meets them
//            [good, good_end) of this walk, inside of those: found again, and left where they were
//            [next, CAPACITY) of walks before, further out than this walk has come
//
// Between walks good is where the innermost frame is, and good_end = next = good. Belongs to the outermost walk of its
// thread.
#ifndef QUT_RUNTIME_MEMO_H
#define QUT_RUNTIME_MEMO_H

#include "libqut/arch/native.h"
#include "libqut/os/os.h"
#include "libqut/runtime/link_cache.h"

// Only libqut calls these, so calls need no detour.
#pragma GCC visibility push(hidden)

enum { RUNTIME_MEMO_CAPACITY = 512 };

// In the low bits of a step's offsets, which are multiples of the word.
enum {
    // fp_offset_bytes
    RUNTIME_MEMO_LIVE = 1,  // frames further out are found by this frame's fp
    RUNTIME_MEMO_EXACT = 2, // pc was interrupted, else it is a return address
    // ra_offset_bytes: what has to be read again, to know that the step would be taken again
    RUNTIME_MEMO_PAIR = 1,  // ra, and fp, which lies in the word before it
    RUNTIME_MEMO_OTHER = 2, // ra, and fp from where it lies. Without an offset: how this frame is reached is not known
    RUNTIME_MEMO_FLAGS = 3,
    // ... beside the flags, as offsets are multiples of 8: a virtual machine said how the frame within is left, and
    // is to be asked again. As it stands such a step holds for none of the ways above.
    RUNTIME_MEMO_MACHINE = ARCH_NATIVE_RA_OFFSET_BYTES != 0 && ARCH_NATIVE_RA_OFFSET_BYTES % 8 == 0 ? 4 : 0,
};

struct runtime_memo_frame {
    uintptr_t sp;
    uintptr_t fp;                  // counts only where LIVE is set
    uintptr_t ra;                  // as it stands on the stack; with EXACT, the pc
    uint32_t node;                 // the store's
    struct runtime_link_step step; // to this frame from the one it called
};
static_assert(sizeof(void *) != 8 || sizeof(struct runtime_memo_frame) == 32, "two in a cache line");

struct runtime_memo {
    // sp ascends from `next` on; the last one's is higher than all.
    struct runtime_memo_frame frames[RUNTIME_MEMO_CAPACITY + 1];
    uint32_t good, good_end, next; // see above
    uint32_t new_count;
    uint32_t kept_from;    // frames from here on are, with all callers, as they were; CAPACITY: none
    uint8_t complete;      // the last frame is the outermost one
    uint8_t contiguous;    // every frame of the last walk is here
    uint8_t useless_walks; // one after another
    uint8_t pause_log2;    // how long the next pause takes
    uint32_t pause;        // so many walks do without
    // The steps behind `good`, up to that to frame run_end, are all of run_kind, 0 or PAIR. run_end is 0 until walks
    // were the same.
    uint32_t run_end;
    uint8_t run_kind;
    uint8_t same_walks; // since then
};

// Forgets all.
void runtime_memo_restart(struct runtime_memo *memo);

// Before a walk: whether it shall match and record.
static inline bool runtime_memo_is_wanted(struct runtime_memo *memo, bool in_any_case)
{
    if (memo->pause == 0 || in_any_case)
        return true;
    memo->pause--;
    return false;
}

// A walk begins that has come to frame next - 1, all before it being the last walk's; or to none: then `next` is the
// first.
static inline void runtime_memo_start(struct runtime_memo *memo, uint32_t next, uint32_t kept_from)
{
    memo->good_end = memo->next = next;
    memo->new_count = 0;
    memo->kept_from = kept_from;
    memo->contiguous = true;
}

// This walk's frame that was remembered last. There is one.
static inline struct runtime_memo_frame *runtime_memo_last(struct runtime_memo *memo)
{
    return &memo->frames[(memo->new_count ? memo->new_count : memo->good_end) - 1];
}

// A frame further out is found by the fp of this walk's last frame, whose value this is.
void runtime_memo_mark_live(struct runtime_memo *memo, uintptr_t fp);

// The step to a frame that was not reached by a link.
static const struct runtime_link_step runtime_memo_unknown_step = {.ra_offset_bytes = RUNTIME_MEMO_OTHER};

static inline intptr_t runtime_memo_ra_offset_bytes(struct runtime_link_step step)
{
    return step.ra_offset_bytes & ~RUNTIME_MEMO_FLAGS;
}

// 0: fp was not read, it is the one before.
static inline intptr_t runtime_memo_fp_offset_bytes(struct runtime_link_step step)
{
    return step.fp_offset_bytes & ~RUNTIME_MEMO_FLAGS;
}

static inline void runtime_memo_set_live(struct runtime_memo_frame *frame)
{
    intptr_t ra_offset_bytes = runtime_memo_ra_offset_bytes(frame->step);
    intptr_t fp_offset_bytes = runtime_memo_fp_offset_bytes(frame->step);
    bool is_pair = fp_offset_bytes == ra_offset_bytes - (intptr_t)sizeof(uintptr_t);
    frame->step.fp_offset_bytes |= RUNTIME_MEMO_LIVE;
    if (fp_offset_bytes)
        frame->step.ra_offset_bytes = (int16_t)(ra_offset_bytes | (is_pair ? RUNTIME_MEMO_PAIR : RUNTIME_MEMO_OTHER));
}

static inline uintptr_t runtime_memo_ra_address(const struct runtime_memo_frame *frame)
{
    intptr_t from_sp = ARCH_NATIVE_RA_OFFSET_BYTES;
    if (!ARCH_NATIVE_RA_OFFSET_BYTES)
        from_sp = runtime_memo_ra_offset_bytes(frame->step);
    return frame->sp + (uintptr_t)from_sp;
}

static inline bool runtime_memo_is_of_kind(const struct runtime_memo_frame *frame, unsigned check)
{
    if (ARCH_NATIVE_RA_OFFSET_BYTES) // in one comparison: there is only one such offset, or none
        return frame->step.ra_offset_bytes == (int16_t)(ARCH_NATIVE_RA_OFFSET_BYTES | (int)check);
    return (frame->step.ra_offset_bytes & RUNTIME_MEMO_FLAGS) == check;
}

// Whether the step to a remembered frame is of this kind, and would be taken again: the words it read are what they
// were.
static inline __attribute__((always_inline)) bool runtime_memo_holds_as(const struct runtime_memo_frame *frame,
                                                                        unsigned check)
{
    if (!runtime_memo_is_of_kind(frame, check) ||
        (check == RUNTIME_MEMO_OTHER && !runtime_memo_ra_offset_bytes(frame->step)) ||
        os_load(runtime_memo_ra_address(frame)) != frame->ra)
        return false;
    if (check == RUNTIME_MEMO_PAIR)
        return os_load(runtime_memo_ra_address(frame) - sizeof(uintptr_t)) == frame->fp;
    return check != RUNTIME_MEMO_OTHER ||
           os_load(frame->sp + (uintptr_t)runtime_memo_fp_offset_bytes(frame->step)) == frame->fp;
}

static inline bool runtime_memo_holds(const struct runtime_memo_frame *frame)
{
    return runtime_memo_holds_as(frame, 0) || runtime_memo_holds_as(frame, RUNTIME_MEMO_PAIR) ||
           runtime_memo_holds_as(frame, RUNTIME_MEMO_OTHER);
}

// Whether the words that such a step read are what they were. What the machine says of the frame within is asked
// elsewhere.
static inline bool runtime_memo_reads_the_same(const struct runtime_memo_frame *frame)
{
    return os_load(runtime_memo_ra_address(frame)) == frame->ra &&
           (!(frame->step.fp_offset_bytes & RUNTIME_MEMO_LIVE) ||
            os_load(frame->sp + (uintptr_t)runtime_memo_fp_offset_bytes(frame->step)) == frame->fp);
}

// The remembered frame is the one that a walk has come to, by `step`.
static inline bool runtime_memo_is_state(const struct runtime_memo_frame *older, uintptr_t sp, uintptr_t ra,
                                         uintptr_t fp, struct runtime_link_step step)
{
    int16_t older_flags = older->step.fp_offset_bytes;
    return older->sp == sp && older->ra == ra && ((older_flags ^ step.fp_offset_bytes) & RUNTIME_MEMO_EXACT) == 0 &&
           (!(older_flags & RUNTIME_MEMO_LIVE) || older->fp == fp);
}

// Goes from frame to frame while the steps between them would be taken again, and writes the pc of each that it comes
// to; not beyond `end`. Returns where it stands.
const struct runtime_memo_frame *runtime_memo_follow(const struct runtime_memo_frame *frame,
                                                     const struct runtime_memo_frame *end, uintptr_t *pc);

// The frame up to which a walk can go that is at `from` and has room for so many more.
static inline const struct runtime_memo_frame *
runtime_memo_end_of_room(const struct runtime_memo *memo, const struct runtime_memo_frame *from, size_t room)
{
    const struct runtime_memo_frame *last = &memo->frames[RUNTIME_MEMO_CAPACITY - 1];
    return (size_t)(last - from) < room ? last : from + room;
}

// Steps may be other ones.
static inline void runtime_memo_forget_run(struct runtime_memo *memo)
{
    memo->run_end = 0;
    memo->same_walks = 0;
}

// A walk begins like the one before: finds out how far steps are of one kind, if it is not the first such walk.
void runtime_memo_know_run(struct runtime_memo *memo);

// This walk has come to the state of frame `next`, by `step`. From here on that frame is its last one.
void runtime_memo_join(struct runtime_memo *memo, struct runtime_link_step step);

// This walk ends, or leaves the memo alone from now on: how older frames are reached from its own is not known.
void runtime_memo_cut(struct runtime_memo *memo);

// This walk's last frame is the outermost one.
void runtime_memo_end(struct runtime_memo *memo);

// There is no room for another new frame. False: none can be made.
bool runtime_memo_make_room(struct runtime_memo *memo);

// After a walk of frame_count frames, of which so many came from the memo.
enum {
    // Remembered for each frame recorded, and for a walk that records at all: fewer do not pay. Measured on x86-64: to
    // follow a frame saves 0.7 of the time that a chase of frame pointers takes for one; to record one costs 5 of
    // these.
    RUNTIME_MEMO_WORTH = 8,
    RUNTIME_MEMO_WORTH_BEFORE = 12,
    RUNTIME_MEMO_PAUSE_LOG2_MIN = 3,
};
void runtime_memo_is_useless(struct runtime_memo *memo);
static inline void runtime_memo_is_worth_it(struct runtime_memo *memo)
{
    memo->useless_walks = 0;
    memo->pause_log2 = RUNTIME_MEMO_PAUSE_LOG2_MIN;
}

static inline void runtime_memo_judge(struct runtime_memo *memo, size_t frame_count, size_t remembered_count)
{
    size_t recorded_count = frame_count - remembered_count;
    if (recorded_count > RUNTIME_MEMO_CAPACITY)
        recorded_count = RUNTIME_MEMO_CAPACITY;
    if (recorded_count && remembered_count < recorded_count * RUNTIME_MEMO_WORTH + RUNTIME_MEMO_WORTH_BEFORE)
        runtime_memo_is_useless(memo);
    else
        runtime_memo_is_worth_it(memo);
}

#pragma GCC visibility pop

#endif

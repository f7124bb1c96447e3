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

#include "libqut/runtime/link_cache.h"

enum { QUT_MEMO_CAPACITY = 512 };

// In the low bits of a step's fp_offset_bytes, which is a multiple of the word.
enum {
    QUT_MEMO_LIVE = 1,  // frames further out are found by this frame's fp
    QUT_MEMO_EXACT = 2, // pc was interrupted, else it is a return address
    QUT_MEMO_FLAGS = 3,
};

struct qut_memo_frame {
    uintptr_t sp;
    uintptr_t fp;  // counts only where LIVE is set
    uintptr_t ra;  // as it stands on the stack; with EXACT, the pc
    uint32_t node; // the store's
    // To this frame from the one it called. ra_offset_bytes 0: not by a link; the step has to be taken, to know where
    // it leads.
    struct qut_link_step step;
};
static_assert(sizeof(void *) != 8 || sizeof(struct qut_memo_frame) == 32, "two in a cache line");

struct qut_memo {
    uint32_t good, good_end, next; // see above
    uint32_t new_count;
    uint32_t kept_from;    // frames from here on are, with all callers, as they were; CAPACITY: none
    uint8_t complete;      // the last frame is the outermost one
    uint8_t contiguous;    // every frame of the last walk is here
    uint8_t useless_walks; // one after another
    uint8_t pause_log2;    // how long the next pause takes
    uint32_t pause;        // so many walks do without
    struct qut_memo_frame frames[QUT_MEMO_CAPACITY + 1]; // sp ascends from `next` on; the last one's is higher than all
};

// Forgets all.
void qut_memo_restart(struct qut_memo *memo);

// Before a walk: whether it shall match and record.
static inline bool qut_memo_begin(struct qut_memo *memo)
{
    memo->contiguous = false;
    if (memo->pause) {
        memo->pause--;
        return false;
    }
    memo->good_end = memo->next = memo->good;
    memo->new_count = 0;
    memo->kept_from = QUT_MEMO_CAPACITY;
    memo->contiguous = true;
    return true;
}

// This walk's frame that was remembered last. There is one.
static inline struct qut_memo_frame *qut_memo_last(struct qut_memo *memo)
{
    return &memo->frames[(memo->new_count ? memo->new_count : memo->good_end) - 1];
}

// A frame further out is found by the fp of this walk's last frame, whose value this is.
void qut_memo_mark_live(struct qut_memo *memo, uintptr_t fp);

// Where fp was read in the step to this frame. 0: it was not.
static inline intptr_t qut_memo_fp_offset_bytes(const struct qut_memo_frame *frame)
{
    return frame->step.fp_offset_bytes & ~QUT_MEMO_FLAGS;
}

// This walk has come to the state of frame `next`, by `step`. From here on that frame is its last one.
void qut_memo_join(struct qut_memo *memo, struct qut_link_step step);

// This walk ends, or leaves the memo alone from now on: how older frames are reached from its own is not known.
void qut_memo_cut(struct qut_memo *memo);

// This walk's last frame is the outermost one.
void qut_memo_end(struct qut_memo *memo);

// There is no room for another new frame. False: none can be made.
bool qut_memo_make_room(struct qut_memo *memo);

// After a walk of frame_count frames, of which so many came from the memo.
void qut_memo_judge(struct qut_memo *memo, size_t frame_count, size_t remembered_count);

#endif

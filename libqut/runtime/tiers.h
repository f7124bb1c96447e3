// SPDX-License-Identifier: Apache-2.0
// Which shortcuts walks of this process may take. All give what the table gives; tests and benchmarks turn them off,
// at any moment, in any thread.
#ifndef QUT_RUNTIME_TIERS_H
#define QUT_RUNTIME_TIERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct runtime_memo_frame;

enum runtime_tier {
    RUNTIME_TIER_LINKED = 1, // rules are taken from the thread's cache, each with a guess which one comes next
    RUNTIME_TIER_MEMO = 2,   // and frames from the thread's last walks. Without LINKED it does nothing
    RUNTIME_TIER_SHARED = 4, // and rules from what other threads have looked up. Without LINKED it does nothing
    RUNTIME_TIERS_ALL = 7,
    RUNTIME_TIER_STUBBORN = 8, // for tests: MEMO is used even where that does not pay
};

// Read once by each walk, relaxed: whatever is found in a cache is as true as when it was put there.
extern _Atomic uint32_t runtime_tiers;

// Of the walks that the calling thread has ended, since it was registered: where their frames came from. Walks of
// handlers that interrupted a walk are not counted. False: the thread is not registered.
struct runtime_tier_counts {
    uint64_t walks;
    uint64_t frames;        // given out; of these,
    uint64_t remembered;    // ... taken from the last walk
    uint64_t looked_up;     // ... found in a table, or left by the long way. The rest: from the cache
    uint64_t without_links; // walks, or parts of them, that went by hashed rules
};
_Bool runtime_tier_counts(struct runtime_tier_counts *counts);

// What a trace store needs to store only what has changed. Of the calling thread's last walk, where that came to a real
// end: its outermost `kept_count` frames are, each with all of its callers, as they were when their nodes were written.
// Valid until the thread walks again. False: nothing is known of the last walk.
struct runtime_last_walk {
    size_t frame_count; // as many as the walk gave
    size_t kept_count;
    struct runtime_memo_frame *frames;
};
_Bool runtime_last_walk(struct runtime_last_walk *last);
// The same between modules_enter and modules_leave of the outermost walk, behind the walk itself.
struct runtime_thread;
_Bool runtime_last_walk_inside(const struct runtime_thread *thread, struct runtime_last_walk *last);
// Nothing is known of any frame's node.
void runtime_last_walk_forget(struct runtime_thread *thread);

// The store's own word for a frame, innermost first: it stays with the frame as long as that is kept. 0 in new ones.
uint32_t *runtime_last_walk_node(const struct runtime_last_walk *last, size_t frame);

#endif

// SPDX-License-Identifier: Apache-2.0
// This process's trace: what stands between the public functions (qut/trace.h) and the segment.
//
//   feed.c          open and close
//   feed_slot.c     which slot a thread has; its beginning and its end
//   feed_stack.c    pcs -> nodes
//   feed_sample.c   hits
//   feed_steps.c    stacks that are given frame by frame
//   feed_modules.c  what is loaded -> the segment
//   feed_upkeep.c   names and ends of threads that were not told; what raw pcs lie in
//   feed_fork.c     what a child gets
//   feed_counts.c   marks, and sums, also of the last trace
//
// Appends against close: every append stands between modules_enter and modules_leave, as walks do, and looks
// for the trace behind the mark. A close takes the trace away first, and then waits as for
// walks (modules/grace.c).
#ifndef QUT_TRACE_FEED_H
#define QUT_TRACE_FEED_H

#include <qut/trace.h>

#include "libqut/modules/registry.h"
#include "libqut/segment/segment.h"
#include "libqut/walk/noted_walk.h"

#pragma GCC visibility push(hidden)

enum { FEED_TOLD_COUNT = 256, FEED_FILES_MAX = 256, FEED_DEPTH_MAX = 1 << 16 };

struct feed;
struct feed_scratch;

// Addresses that become nodes: feed_stack.c.
struct feed_stack {
    struct feed *feed;
    struct runtime_thread *thread; // whose last walk it is; NULL: it is none
    const struct modules *modules;
    const uintptr_t *pcs;
    const uint8_t *flags; // as in struct walk_noted_walk
    size_t noted_count, count;
    size_t skip_count;    // innermost frames that are left out: below count, or 0
    bool is_interrupted;  // frame 0
    bool is_in_kernel;    // which works for it
    uint32_t kernel_code; // enum qut_trace_kernel
    struct feed_scratch *scratch;
    // What was found
    bool is_up_to_date;
    const struct module *last, *confirmed;
    enum qut_trace_cut cut; // where there was no room
};

// An append: feed_entry_inline.h.
struct feed_entry {
    struct runtime_thread *thread;
    const struct modules *modules;
    struct feed *feed;
    struct qut_trace_thread *slot;   // NULL: it has none, and `reason` says why
    struct qut_trace_writer *writer; // NULL: the hit is lost, and counted
    uint32_t slot_index;
    enum qut_trace_lost reason;
};

// What one level of one thread works with, in memory of this process's own that costs nothing until it is touched.
// Behind it lie depth_max each of pcs, cached_pcs, sps, cached_nodes, and depth_max + 1 flags.
struct feed_scratch {
    struct walk_noted_walk notes; // pcs, sps and flags are set once
    struct feed_stack stack;
    struct segment_sample sample;
    struct feed_entry entry; // of a hit that walks, or stores what was walked: there is little room on stacks
    // Of the last stack that was looked up, from its outermost frame on: pcs of plain callers, and their nodes. Valid
    // as long as the list of modules is the one with this epoch.
    uintptr_t *cached_pcs;
    uint32_t *cached_nodes;
    uint32_t cached_count, cached_base, cached_epoch;
    // For qut_trace_node, at level 0: a frame found no room, this is the one outside of it.
    uint32_t cut_node;
    bool is_cut;
};

struct feed_file { // that pcs of bytecode were seen in
    uintptr_t start, end;
};

struct feed {
    struct modules_retired retired;
    struct feed *next; // of all that may still be mapped. Under the registry's lock
    bool is_closed;    // it is not the one that is open
    bool is_unmapped;  // in a child: its segment is the parent's
    bool is_given_up;  // closed, although a thread may still be writing: only to be unmapped
    struct segment segment;
    uint32_t generation; // differs from that of every other; never 0
    uint32_t flags;      // enum qut_trace_open_flag
    uint32_t depth_max;
    struct segment_options options; // for a child
    uint64_t begun_ns;              // of its first thread, which was there before the trace; 0: none was
    const char *path;               // behind this structure, in the same pages
    uint8_t *scratch;
    size_t scratch_bytes, scratch_stride_bytes;
    // Raw pcs whose place is to be found out while it can be asked for. Each is told once; when too many are told
    // at once, some are not found out.
    uint32_t *raw_is_told; // a bit for each
    size_t raw_is_told_bytes;
    uint32_t told_count;
    uint32_t read_count; // by upkeep alone
    uintptr_t told[FEED_TOLD_COUNT];
    struct feed_file files[FEED_FILES_MAX];
    uint32_t file_count;
    uint64_t looked_ns;    // when upkeep last looked at threads
    _Atomic bool had_cuts; // of stacks that are given in steps: then an append looks whether its own was cut
    _Atomic uint32_t is_short_of_slots; // upkeep shall look at once
};

// In a page that is empty in a child, whatever kind of fork made it.
struct feed_current {
    _Atomic(struct feed *) feed; // NULL: no trace is open
};
extern _Atomic(struct feed_current *) feed_current; // never NULL
extern _Atomic uint32_t feed_control;               // of open and close. Taken before all other locks

static inline struct feed *feed_now(void)
{
    struct feed_current *current = atomic_load_explicit(&feed_current, memory_order_acquire);
    return atomic_load_explicit(&current->feed, memory_order_seq_cst);
}

// ---- feed_slot.c (an append's beginning and end: feed_entry_inline.h)

void feed_thread_ends(void);
void feed_look_at_own_name(struct qut_trace_thread *slot); // the calling thread's slot
void feed_fork_begins(void);                               // of the calling thread
void feed_fork_ends(bool in_child);

// ---- feed_stack.c

// The node of frame skip_count; or, with *is_cut, of the innermost one that there was room for. `base`: what the
// outermost frame hangs from.
uint32_t feed_stack_node(struct feed_stack *stack, uint32_t base, bool *is_cut);
// Of one frame; 0: no room.
uint32_t feed_frame_node(struct feed_stack *stack, uint32_t parent, uintptr_t pc, unsigned frame_flags);
void feed_begin_stack(struct feed_stack *stack);
// What an interpreter runs, behind its frames, of the walk that the thread has just taken notes of. Then the stack is
// not the one that the thread remembers.
void feed_add_functions(struct feed_scratch *scratch, const void *ucontext, const struct arch_capture *capture);

// ---- feed_sample.c

// qut_trace_append_node, whatever has to be asked.
int feed_store_node(uint32_t node, const struct qut_event *event);

// ---- feed_modules.c; under the registry's lock

void feed_publishes(void);
void feed_find_files(void); // of what is loaded: paths that a trace will want which is opened later
void feed_module_goes(struct modules_record *record);

// ---- feed_upkeep.c

int feed_maintain(void);
void feed_tell_raw(struct feed *feed, uint32_t index, uintptr_t pc); // signal-safe
// Under work.
void feed_look_at_threads(struct feed *feed);
// What functions are called that were met and have no name yet. Under work.
void feed_name_functions(struct feed *feed);
// What the process is called by now: a server writes over its arguments. Signal-safe.
void feed_look_at_command(struct feed *feed);

// ---- feed.c

extern struct feed *feed_all; // under the registry's lock
// A trace that is not published yet. 0 or -errno. Signal-safe.
int feed_new(struct feed **feed, const struct segment_options *options, uint32_t flags, uint32_t depth_max);
// What one is to be made of later: without a segment. NULL: no memory. Signal-safe.
struct feed *feed_plan(const struct segment_options *options, uint32_t flags, uint32_t depth_max);
void feed_free(struct feed *feed); // all but the segment
void feed_publish(struct feed *feed);

// ---- feed_fork.c

void feed_before_fork(void);
void feed_in_parent(void);
void feed_in_child(void);
void feed_wait_with(struct feed *plan); // this process does, until feed_follow_now

// ---- feed_counts.c

void feed_keep_counts(const struct segment *segment); // those of the last trace, from now on

#pragma GCC visibility pop

#endif

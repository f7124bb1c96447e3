// SPDX-License-Identifier: Apache-2.0
// A segment (formats/qut_trace.h) of this process's: made, filled and let go of. Knows nothing of walks or of the
// process that it describes: libqut/trace feeds it with this process's threads, others may feed it with those of
// another.
#ifndef QUT_SEGMENT_SEGMENT_H
#define QUT_SEGMENT_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/qut_trace.h"

#pragma GCC visibility push(hidden)

struct segment_options {
    uint64_t segment_bytes;
    const char *path; // NULL: memfd
    uint32_t mode, flags, metric_mask;
    uint32_t thread_count, node_bits;
    uint64_t merge_gap_ns;
    uint32_t pid, parent_pid;
    uint8_t arch, word_bytes;
    bool on_demand; // pages are taken when they are first written to
    const char *command;
    uint64_t begun_ns; // CLOCK_MONOTONIC, when it is said to begin; 0: now
};

struct segment {
    struct qut_trace_header *header; // the mapping
    int fd;
    // Sections, so that no offset in shared memory is trusted.
    struct qut_trace_counters *counters;
    uint8_t *threads;
    struct qut_trace_module *modules;
    uint8_t *strings;
    uint32_t *string_index;
    qut_trace_u64 *raw;
    qut_trace_u64 *nodes;
    uint32_t *free_list;
    qut_trace_u64 *directory;
    uint8_t *chunks;
    uint64_t segment_bytes;
    uint32_t thread_capacity, thread_stride_bytes, module_capacity, raw_mask, node_mask, chunk_count;
    uint32_t ring_capacity[QUT_TRACE_LEVELS];
    uint32_t string_bytes, string_index_mask;
    uint32_t mode, flags, metric_mask;
    uint32_t used_bytes_max;  // of a chunk, so that one more record of a run surely fits
    uint32_t plain_bytes_max; // ... two more
    uint64_t merge_gap_units;
    _Atomic uint32_t module_lock;     // of the thread that adds modules; not signal-safe
    uint32_t retiring;                // a slot is being given to another thread; no thread waits for it
    uint32_t thread_hand, chunk_hand; // where to look for a slot, a chunk, next: no more than hints
};

// 0 or -errno: -EINVAL (what was asked for does not fit), -ENOMEM, -ENOSPC, -EMEDIUMTYPE (path is not in a memory file
// system), ... Of 0 are taken: 32 MiB; a quarter of it for nodes; 512 threads, fewer where they would take more than an
// eighth of it; a merge gap of 20 ms. Not signal-safe.
int segment_create(struct segment *segment, const struct segment_options *options);
// Seals every open chunk (no append runs any more), marks the segment closed, unmaps it.
void segment_close(struct segment *segment);
// The same, but it stays mapped: appends may still be under way, or were jumped out of by handlers; which is not known.
// What their writers have open stays so, for readers to find.
void segment_give_up(struct segment *segment);
void segment_unmap(struct segment *segment); // as it is: in a child after fork
// How the process is called from now on. Signal-safe. Of two at the same time words of either may stand.
void segment_set_command(struct segment *segment, const char *command);

// Takes whole units of time out of *ns. Processor time that a sample is said to stand for takes few bytes then
// (QUT_TRACE_TAG_TOLD), and if what is left goes to the next sample, no sum of it drifts.
static inline uint64_t segment_whole_units(uint64_t *ns)
{
    const uint64_t whole_ns = *ns >> QUT_TRACE_TIME_SHIFT << QUT_TRACE_TIME_SHIFT;
    *ns -= whole_ns;
    return whole_ns;
}

// What became of every hit so far. Exact where no append is under way. Signal-safe.
struct segment_sums {
    struct qut_trace_counts counts;
    uint64_t stored, merged, overwritten, under_way;
    uint64_t totals[QUT_TRACE_TOTAL_COUNT];
};
void segment_sum(const struct segment *segment, struct segment_sums *sums); // sum.c

// ---- segment_modules.c. Not signal-safe; any thread.

// Adds an entry for a module that was loaded now. Where one with the same build-id (or, without, the same path) and
// size is there, and code_base is 0, it gets that one's place in code space; else one of its own. Returns its index, or
// -ENOSPC.
int segment_module_add(struct segment *segment, const struct qut_trace_module *module, const char *path);
void segment_module_unloaded(struct segment *segment, uint32_t index, uint64_t now_ns);

// ---- segment_strings.c

// The id of a string, the same for the same text unless two threads add it at the same moment. 0: there is no room (or
// it is the empty string). Cut off at QUT_TRACE_STRING_BYTES_MAX. Signal-safe.
uint32_t segment_string(struct segment *segment, const char *text, size_t length);

// ---- tree.c. All signal-safe, lock-free, bounded.

// The child of `parent` with that code and kind (class << 2 | bits), found or made. 0: there is no room. A parent that
// is no node gives 0.
uint32_t segment_node(struct segment *segment, uint32_t parent, uint64_t code, unsigned kind);
// The same of a parent that was got from there, in this segment.
uint32_t segment_child(struct segment *segment, uint32_t parent, uint64_t code, unsigned kind);

// The index of an address in the table of raw pcs; 0: there is no room (index 0 is never given).
uint32_t segment_raw(struct segment *segment, uint64_t address);

// ---- segment_threads.c

// A slot, live from now on; NULL: all are taken. Signal-safe. Slots of ended threads are given again when no other is
// left: their counts go to `retired`.
struct qut_trace_thread *segment_thread_begin(struct segment *segment, uint32_t tid, const char *name, uint64_t now_ns);
// Its name, while another thread may write it: words of one name, or of two.
void segment_thread_name(const struct qut_trace_thread *thread, char name[static QUT_TRACE_NAME_BYTES]);
void segment_thread_rename(struct qut_trace_thread *thread, const char *name);
// Seals its chunks. By the thread itself, or by one that knows that it is dead.
void segment_thread_end(struct segment *segment, struct qut_trace_thread *thread, uint64_t now_ns);

// ---- segment_writer.c. All signal-safe, wait-free but for a bounded number of tries to get a chunk.

// Of one thread, appends under way. Begin gives the writer of the next level, or NULL: there are as many as levels, and
// the hit has been counted as lost. What `begin` returned goes to `end`. A handler that jumped out of an append leaves
// it under way: where `sp` and the stack's bounds prove that, its level is given again. Bounds may be 0: not known.
struct qut_trace_writer *segment_begin_nested(struct qut_trace_thread *thread, uintptr_t sp, uintptr_t stack_low,
                                              uintptr_t stack_high);
void segment_end_nested(struct qut_trace_thread *thread);

enum { SEGMENT_ENTRY_NONE = 1 };                            // under way, from a place that is not known
typedef uintptr_t __attribute__((may_alias)) segment_entry; // 32-bit machines use the lower half
static inline uintptr_t segment_entry_at(const struct qut_trace_thread *thread, uint32_t level)
{
    return __atomic_load_n((const segment_entry *)&thread->entry_sp[level], __ATOMIC_RELAXED);
}

// How many are under way: so many levels have an entry that is not 0.
static inline uint32_t segment_depth(const struct qut_trace_thread *thread)
{
    uint32_t depth = 0;
    while (depth < QUT_TRACE_LEVELS && segment_entry_at(thread, depth))
        depth++;
    return depth;
}

// A level is given and taken back with a single store, so that there is nothing in between for a handler to jump out
// of. Fences: for handlers of this thread.
static inline void segment_put_entry(struct qut_trace_thread *thread, uint32_t level, uintptr_t sp)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n((segment_entry *)&thread->entry_sp[level], sp, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

// Where none is under way. sp is not 0.
static inline struct qut_trace_writer *segment_begin_outermost(struct qut_trace_thread *thread, uintptr_t sp)
{
    segment_put_entry(thread, 0, sp);
    return &thread->writers[0];
}

static inline struct qut_trace_writer *segment_begin(struct qut_trace_thread *thread, uintptr_t sp, uintptr_t stack_low,
                                                     uintptr_t stack_high)
{
    if (__builtin_expect(segment_entry_at(thread, 0) != 0, 0))
        return segment_begin_nested(thread, sp, stack_low, stack_high);
    return segment_begin_outermost(thread, sp ? sp : (uintptr_t)SEGMENT_ENTRY_NONE);
}

static inline void segment_end_of(struct qut_trace_thread *thread)
{
    if (__builtin_expect(segment_entry_at(thread, 1) != 0, 0)) {
        segment_end_nested(thread);
        return;
    }
    segment_put_entry(thread, 0, 0);
}

struct segment_sample {
    uint64_t time_ns, cpu_ns;
    uint32_t node;
    uint16_t kind;
    uint16_t flags;          // enum qut_trace_sample_flag
    const uint64_t *metrics; // NULL: none
    const struct segment_extra {
        uint32_t key, zero;
        uint64_t value;
    } * extras;
    uint32_t extra_count;
};

// Between begin and end. Counts the hit. Returns enum qut_stored.
int segment_append(struct segment *segment, struct qut_trace_thread *thread, struct qut_trace_writer *writer,
                   const struct segment_sample *sample);
int segment_mark(struct segment *segment, struct qut_trace_thread *thread, struct qut_trace_writer *writer,
                 uint64_t time_ns, uint32_t mark_kind, uint64_t id, uint32_t string);
void segment_skip(struct qut_trace_writer *writer);
// The same and, where `total` is below QUT_TRACE_TOTAL_COUNT - 1, 1 for that sum and `amount` for the next one.
void segment_throttle(struct qut_trace_writer *writer, uint32_t total, uint64_t amount);
void segment_lose(struct qut_trace_writer *writer, enum qut_trace_lost reason); // a hit
void segment_cut(struct qut_trace_writer *writer, enum qut_trace_cut reason);   // no hit
void segment_add(struct qut_trace_writer *writer, uint32_t total, uint64_t amount);
// A hit without a slot.
void segment_lose_unowned(struct segment *segment, enum qut_trace_lost reason);
void segment_throttle_unowned(struct segment *segment);

#pragma GCC visibility pop

#endif

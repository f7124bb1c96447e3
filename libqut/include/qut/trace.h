// SPDX-License-Identifier: Apache-2.0
// The trace store: samples of this process's threads, a few bytes each, in memory that is shared with its readers
// and that outlives the process. One trace a process; everyone in it may add to it.
//
//     qut_trace_open(&options);                           once
//     qut_trace_sample(ucontext, &event);                 walks the calling thread and stores where it is; or
//     qut_trace_append(pcs, count, &end, flags, &event);  stores a stack that another walker found
//     qut_trace_mark(QUT_MARK_BEGIN, request_id, "GET");  this thread works on that from now on
//     qut_trace_close();
//
// Other processes: a child after fork has no trace, or one of its own (QUT_TRACE_FOLLOW_FORK); a hit of the thread that
// forks, while the handlers of pthread_atfork run, is lost and counted. One that was made by clone or _Fork has none,
// from its first instruction on (Linux 4.14; before, and under qemu, it must not append). A child after vfork, which
// borrows its parent's thread, adds to its parent's trace. exec ends the trace as death does: what was stored stays for
// any process that has the descriptor or the file.
//
// A handler may jump out of an append that it interrupted (siglongjmp): nothing is torn, and what had begun is counted
// as lost. Threads that are not registered do not get the level back, which counts as one nested append for ever.
//
// What is called a hit here is one call of sample, append or skip: each is stored, merged into the one before,
// throttled or lost, and counted as one of these:  hits = stored + merged + throttled + lost.
#ifndef QUT_TRACE_H
#define QUT_TRACE_H

#include <qut/frame.h>

QUT_DECLS_BEGIN

enum qut_trace_open_mode {
    QUT_TRACE_KEEP_NEWEST = 0, // a flight recorder: where there is no room, a thread's oldest samples make some
    QUT_TRACE_KEEP_ALL = 1, // for a collector that writes them to disk meanwhile: where there is no room, new samples
                            // are lost, and counted
};

enum qut_trace_open_flag {
    // After a fork the child gets a segment of its own, with the same options (its path has ".PID" added). Without
    // this flag a child has no trace until it opens one.
    QUT_TRACE_FOLLOW_FORK = 1,
    QUT_TRACE_CPU_TIME = 2, // samples carry their thread's processor time: the event's, else it is read (a system call)
    // Memory is taken page by page when it is first written to: a short process pays for little of it. Each such page
    // is a fault, also in handlers (some 1000 of them for 4 MiB, once), which counts as the thread's. Not with a path.
    QUT_TRACE_ON_DEMAND = 4,
};

struct qut_trace_options {
    size_t size;            // sizeof(struct qut_trace_options)
    uint64_t segment_bytes; // 0: 32 MiB. All of it is taken at once (see QUT_TRACE_ON_DEMAND), and no more ever
    const char *path;       // a file to be made (-EEXIST: it is there already; of a process that crashed, say: read it,
                            // then remove it) in a memory file system (/dev/shm), which stays there when the process
                            // dies; NULL: memory without a name (memfd), there as long as qut_trace_fd is open anywhere
    uint32_t mode;          // enum qut_trace_open_mode
    uint32_t flags;         // enum qut_trace_open_flag
    uint32_t metric_mask;   // 1 << QUT_METRIC_...: those that events carry
    uint32_t thread_count;  // threads at one time; 0: 512
    uint32_t node_bits;     // room for 2^node_bits frames, each 8 bytes; 0: a quarter of the segment
    uint32_t depth_max;     // frames of one stack that are looked at; 0: 1024
    uint64_t merge_gap_ns;  // equal neighbours further apart stay two; 0: 20 ms. UINT64_MAX: none are kept apart
    uint32_t zero[4];
};

// Returns 0, or -EALREADY, -EINVAL, -ENOMEM, -EMEDIUMTYPE (path is not in a memory file system: a page step costs 20 ms
// elsewhere), or what creating it failed with. The calling thread is registered (qut_trace_thread_register).
// [not signal-safe, blocks, allocates; any thread]
QUT_API int qut_trace_open(const struct qut_trace_options *options);

// Seals what is open and lets go of the segment; its file, if it has one, stays. Appends that run now finish first,
// later ones are not counted. [not signal-safe, blocks; any thread]
QUT_API void qut_trace_close(void);

// A descriptor of the segment, for a reader in another process; -1: no trace is open. It is the store's own: duplicate
// it. [signal-safe]
QUT_API int qut_trace_fd(void);
// The same; from now on it is the caller's, and qut_trace_fd is -1. [signal-safe]
QUT_API int qut_trace_take_fd(void);

// Gives the calling thread its slot, its name and its end in the trace; and registers it for walks. Others get a slot
// with their first hit, and their end is seen later. Returns 0, -EINVAL (no trace is open), -EAGAIN (all slots are
// taken), -ENOMEM. Undone when the thread ends. [not signal-safe, blocks, allocates; any thread for itself]
QUT_API int qut_trace_thread_register(void);

// ---- samples

enum qut_sample_kind { // why a sample is taken
    QUT_SAMPLE_OTHER = 0,
    QUT_SAMPLE_CPU,
    QUT_SAMPLE_WALL,
    QUT_SAMPLE_ALLOCATE,
    QUT_SAMPLE_FREE,
    QUT_SAMPLE_LOCK,
    QUT_SAMPLE_UNLOCK,
    QUT_SAMPLE_WAIT,
    QUT_SAMPLE_WAKE,
    QUT_SAMPLE_READ,
    QUT_SAMPLE_WRITE,
    QUT_SAMPLE_POLL,
    QUT_SAMPLE_SLEEP,
    QUT_SAMPLE_CALL,
    QUT_SAMPLE_THREAD_START,
    QUT_SAMPLE_THREAD_END,
    QUT_SAMPLE_LOAD,
    QUT_SAMPLE_UNLOAD,
    QUT_SAMPLE_FAULT,
    // From 64 on: kinds of your own, from qut_trace_own_kind.
};

enum qut_metric { // counters of the thread, that only grow
    QUT_METRIC_MINOR_FAULTS = 0,
    QUT_METRIC_MAJOR_FAULTS,
    QUT_METRIC_VOLUNTARY_SWITCHES,
    QUT_METRIC_INVOLUNTARY_SWITCHES,
    QUT_METRIC_ALLOCATIONS,
    QUT_METRIC_ALLOCATED_BYTES,
    QUT_METRIC_OWN_0,
    QUT_METRIC_OWN_1,
    QUT_METRIC_COUNT,
};

enum qut_extra_key {
    QUT_EXTRA_DURATION_NS = 1, // the sample is the end of an interval that began so much before
    QUT_EXTRA_LOCK,
    QUT_EXTRA_OWNER_TID,
    QUT_EXTRA_WAKER_TID,
    QUT_EXTRA_WAKEE_TID,
    QUT_EXTRA_FLOW, // the same number in a cause and its effect
    QUT_EXTRA_SIZE,
    QUT_EXTRA_ADDRESS,
    QUT_EXTRA_FD,
    QUT_EXTRA_RESULT,     // as int64_t
    QUT_EXTRA_BEGIN_NODE, // of qut_trace_node: the stack at the interval's beginning
    QUT_EXTRA_WEIGHT = 13,
    QUT_EXTRA_CPU_NS, // of processor time this sample stands for so much, whatever others of its thread lie within
    QUT_EXTRA_OWN_FIRST = 64, // to 127: free for any use
};

struct qut_extra {
    uint32_t key;
    uint32_t zero;
    uint64_t value;
};

enum qut_event_flag {
    QUT_EVENT_ON_CPU = 2,  // its thread was running
    QUT_EVENT_OFF_CPU = 4, // its thread was blocked
    QUT_EVENT_BEGINS = 8,  // of an interval, whose end is a sample with QUT_EXTRA_DURATION_NS, if it came to an end
};

struct qut_event {
    uint64_t time_ns;        // CLOCK_MONOTONIC; 0: now
    uint64_t cpu_ns;         // processor time of the thread; 0: it is read, where the trace has QUT_TRACE_CPU_TIME
    uint32_t kind;           // enum qut_sample_kind, or your own
    uint32_t flags;          // enum qut_event_flag
    const uint64_t *metrics; // those of the trace's metric_mask, QUT_METRIC_COUNT places; NULL: none now
    const struct qut_extra *extras; // samples with extras are never merged
    uint32_t extra_count;           // at most 16
    uint32_t skip_frames;           // of the innermost, that many are left out: of qut_trace_sample without `ucontext`
};

// What became of a hit.
enum qut_stored {
    QUT_STORED = 0,
    QUT_STORED_MERGED = 1,
    QUT_STORED_NOT = -1,      // lost, and counted
    QUT_STORED_NO_TRACE = -2, // no trace is open; not counted
};

// Walks the calling thread (qut_start was called), from where `ucontext` says it was interrupted, or from the caller
// where that is NULL, and stores where it is. What did not change since the thread's last walk is not looked up again.
// Returns enum qut_stored. [signal-safe; any thread; nests two deep]
QUT_API int qut_trace_sample(const void *ucontext, const struct qut_event *event);

enum qut_stack_flag {
    QUT_STACK_INTERRUPTED = 1, // the first pc is where the thread was interrupted; the others, and else this one too,
                               // lie inside calls
};

// Stores a stack that was walked by other means: pcs as qut_backtrace gives them, innermost first. `end` says how the
// walk ended; NULL: it came to the outermost frame. Where qut_start was called, pcs are told apart by module; else they
// are stored as addresses. Returns enum qut_stored. [signal-safe; any thread; nests two deep]
QUT_API int qut_trace_append(const uintptr_t *pcs, size_t count, const struct qut_end *end, uint32_t stack_flags,
                             const struct qut_event *event);

// The same in steps, for stacks whose frames are no addresses: from the outermost frame (parent 0) inwards. Returns the
// node's id; 0: there is no room, which the next qut_trace_append_node of this thread's says in the trace.
// [signal-safe; any thread]
QUT_API uint32_t qut_trace_node(uint32_t parent, uintptr_t pc, uint32_t stack_flags);
// A frame that has a name and no address: of an interpreter, a task, a request. [signal-safe; any thread]
QUT_API uint32_t qut_trace_label_node(uint32_t parent, const char *name);
QUT_API int qut_trace_append_node(uint32_t node, const struct qut_event *event);

// A hit that was not worth a sample: counted as throttled. Returns QUT_STORED_NOT or QUT_STORED_NO_TRACE.
// [signal-safe; any thread]
QUT_API int qut_trace_skip(void);

enum qut_total { // exact sums, whatever is throttled or lost
    QUT_TOTAL_ALLOCATIONS = 0,
    QUT_TOTAL_ALLOCATED_BYTES,
    QUT_TOTAL_FREES,
    QUT_TOTAL_FREED_BYTES,
    QUT_TOTAL_LOCK_WAITS,
    QUT_TOTAL_LOCK_WAIT_NS,
    QUT_TOTAL_BLOCKED_CALLS,
    QUT_TOTAL_BLOCKED_NS,
    QUT_TOTAL_OWN_FIRST, // to 15: free for any use
};
// Adds to a sum of the calling thread's. [signal-safe; any thread]
QUT_API void qut_trace_add(uint32_t total, uint64_t amount);

// ---- marks: what a thread works on, so that two stretches of work with the same stack stay two

enum qut_mark_kind {
    QUT_MARK_INSTANT = 0, // something happened
    QUT_MARK_BEGIN = 1,   // of a message, a request, a frame with that id and name: cuts what was before off
    QUT_MARK_END = 2,
    QUT_MARK_COUNTER = 3, // id, as int64_t, is the value, from now on, of the counter with that name
};

// Returns enum qut_stored. `name` may be NULL; it is copied, and each name is kept once. [signal-safe; any thread]
QUT_API int qut_trace_mark(uint32_t mark_kind, uint64_t id, const char *name);

// A kind of samples of your own, by name: 64 to 127, the same number for the same name. -EAGAIN: there are 64.
// [not signal-safe; any thread]
QUT_API int qut_trace_own_kind(const char *name);

// ---- what became of it

struct qut_trace_counters_now {
    uint64_t hits, stored, merged, throttled; // hits = stored + merged + throttled + sum(lost) + under_way
    uint64_t lost[8];                         // nested too deep, no room, no slot, fork, malformed, jumped out of
    uint64_t cut[8];                          // stored with less: tree full, raw pcs full, too deep, walk ended early
    uint64_t under_way;
    uint64_t marks, lost_marks;
    uint64_t overwritten; // of stored + merged, no longer there
    uint64_t totals[16];  // enum qut_total
    uint64_t node_count;
};
// Of the open trace, or the last one: exact where no hit is under way. Of size bytes those that this version knows are
// filled, the others 0. [signal-safe; any thread]
QUT_API void qut_trace_get_counts(struct qut_trace_counters_now *counts, size_t size);

QUT_DECLS_END

#endif

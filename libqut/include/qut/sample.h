// SPDX-License-Identifier: Apache-2.0
// Sampling this process: ticks of a clock that interrupt its threads (async), and points in its code that say where it
// is when something happens (sync). Both go into the trace (qut/trace.h).
//
//     qut_start(&walks); qut_trace_open(&trace);       once
//     qut_sampling_start(&options);                    the calling thread ticks from now on
//     qut_sampling_thread_begin();                     in each new thread; undone when it ends
//     if (qut_sync_hit(QUT_TOTAL_ALLOCATIONS, size))   where something happens that is worth a sample now and then
//         qut_sync_take(&event);
//     qut_scope_begin(&scope); ...; qut_scope_end(&scope, ...);   around what may take long
//     qut_sampling_stop(); qut_trace_close();
//
// Ticks come by the processor time that a thread uses: threads that sleep have none, cost nothing, and no system call
// is ever interrupted by one. What the kernel does for a thread is sampled at the end of its call, with a frame of its
// own. See enum qut_trigger for where that cannot be had.
#ifndef QUT_SAMPLE_H
#define QUT_SAMPLE_H

#include <stdbool.h>
#include <sys/types.h>

#include <qut/trace.h>

QUT_DECLS_BEGIN

enum qut_trigger {
    QUT_TRIGGER_BEST = 0, // the first of the next two that this system allows; with QUT_SAMPLING_GUARDED threads that
                          // wait more than once in a millisecond of processor time get the second, where it interrupts
                          // no call, as perf's clock costs them some microseconds at each switch
    QUT_TRIGGER_TASK_CLOCK, // perf's software clock of each thread, user mode only: no EINTR, allowed without privilege
    QUT_TRIGGER_CPU_TIMER,  // a timer of each thread's processor time, not finer than the kernel's tick. Only a thread
                            // that runs is interrupted; a call that is about to wait can be (EINTR), unless it is
                            // guarded; on x86 from Linux 5.9 on only calls with a signal mask of their own
    QUT_TRIGGER_WALL, // a timer of real time: also threads that wait are interrupted, but for those that are guarded
                      // (qut_guard_begin); those that are not see EINTR in calls that SA_RESTART does not restart
    QUT_TRIGGER_NONE, // no ticks: sync points only
};

enum { QUT_SAMPLING_GROUPS_MAX = 16 };
enum {
    QUT_SAMPLING_GUARDED = 1, // all calls that wait are guarded, and those with a signal mask of their own (sigsuspend,
                              // ppoll, pselect, epoll_pwait) repeated where no handler of the program's ran: so threads
                              // that wait often may tick by a timer under QUT_TRIGGER_BEST
};

// Threads with a pace of their own: the first group that fits a thread's name decides. Names are read when a thread
// begins, and again when it has been renamed (seen at a later tick of its own).
struct qut_sampling_group {
    const char *pattern; // as of fnmatch: "worker-*". NULL: the main thread. Copied
    uint64_t period_ns;  // between two ticks, at least 10 us; 0: no ticks
};

struct qut_sampling_options {
    size_t size;           // sizeof(struct qut_sampling_options)
    uint32_t trigger;      // enum qut_trigger
    int32_t signal_number; // for ticks: one that does not queue (below SIGRTMIN). 0: SIGTRAP, where the kernel sends
                           // it by itself (Linux 5.18), which costs half as much; else of SIGSTKFLT, SIGPROF,
                           // SIGVTALRM and SIGPWR the first that has no handler (Android's linker handles SIGSTKFLT)
    uint64_t period_ns;    // of threads that are in no group; 0: 10 ms
    uint64_t sync_interval_ns;               // between two samples of one thread at sync points; 0: 10 ms; 1: all
    uint64_t fault_period;                   // one sample for so many page faults of a thread; 0: none
    const struct qut_sampling_group *groups; // group_count of them
    uint32_t group_count;
    uint32_t flags; // QUT_SAMPLING_GUARDED
    uint32_t zero[4];
};

// Starts ticks in the calling thread, and says from now on at sync points when one is due. Fills the metrics that the
// trace's metric_mask asks for. The calling thread blocks the signal no more. Returns 0 or -EALREADY, -EINVAL (also: no
// trace is open), -EBUSY (the program handles that signal), -ENOMEM, or what the trigger could not be had with: -EACCES
// (perf_event_paranoid, seccomp). [not signal-safe, blocks, allocates; any thread]
QUT_API int qut_sampling_start(const struct qut_sampling_options *options);
// No tick comes once it is back, nor is one pending; the signal has the action that it had before. One exception: where
// a thread got no processor for 0.2 s, and so may still have a SIGTRAP to come, that stays ignored. [not signal-safe,
// blocks; any thread]
QUT_API void qut_sampling_stop(void);
// For a process about to forbid itself system calls (seccomp): threads keep what they tick by. Handlers of ticks make
// none but clock_gettime and rt_sigreturn, what the trace's metrics take (getrusage), and what walks take where memory
// may be gone (process_vm_readv). Until sampling starts again. [signal-safe; any thread]
QUT_API void qut_sampling_settle(void);
// What QUT_TRIGGER_BEST became: enum qut_trigger. [signal-safe]
QUT_API uint32_t qut_sampling_trigger(void);
// Whether ticks can interrupt calls that wait, so that these are to be guarded. [signal-safe]
QUT_API bool qut_sampling_interrupts(void);
// The signal that ticks are, 0: there are none. [signal-safe]
QUT_API int qut_sampling_signal(void);

// The calling thread has ticks from now on, and blocks their signal no more; registers it with the trace. 0, or -errno
// of the trigger: then it has none, which is counted. [not signal-safe, blocks, allocates; any thread for itself]
QUT_API int qut_sampling_thread_begin(void);
// It has none any more. Threads that end without it are seen to. What a thread does behind its end (in destructors of
// its data that run later) is counted, and no sample. [not signal-safe; any thread for itself]
QUT_API void qut_sampling_thread_end(void);
// Gives ticks to threads that did not ask, as far as the trigger can (not QUT_TRIGGER_CPU_TIMER's clocks of the dead):
// of a process that was not made for this. Returns how many more have them, or -errno. [not signal-safe, blocks,
// allocates; one thread at a time]
QUT_API int qut_sampling_adopt_threads(void);

// In a child after fork that has a trace (QUT_TRACE_FOLLOW_FORK, or its own): ticks start again with the same options.
// Without it a child has none. [not signal-safe, blocks; in the child's only thread]
QUT_API int qut_sampling_after_fork(void);

// ---- sync points

#define QUT_TOTAL_NONE UINT32_MAX

// A hit: `total` (enum qut_total, an even one) grows by 1 and the one behind it by `amount`, exactly; `total`
// QUT_TOTAL_NONE: nothing is counted. True: a sample of this thread is due, and qut_sync_take must be called. False: it
// was counted as throttled, or there is no trace. Reads no clock that costs more than a few ns, unless the interval is
// shorter than that clock's step. [signal-safe; any thread]
QUT_API bool qut_sync_hit(uint32_t total, uint64_t amount);
// The sample of a hit that was due, from the caller on (event->skip_frames frames further out). Metrics are filled in.
// Returns enum qut_stored. [signal-safe; any thread]
QUT_API int qut_sync_take(const struct qut_event *event);

// What may take long: a wait for a lock, a read, a request. Its end is stored as one sample with QUT_EXTRA_DURATION_NS,
// its beginning as a sample of its own where one is due (so that what never ends is seen as well).
struct qut_scope {
    uint64_t begin_ns;    // 0: nothing is recorded
    uint64_t begin_count; // of the processor's counter; 0: begin_ns is exact
    uint32_t kind;        // enum qut_sample_kind: set before it begins
    uint32_t skip_frames; // as in struct qut_event: set before it begins
    uint32_t begin_node;
    uint32_t flags;
};
// Reads a clock: the processor's counter where the kernel makes its own of it, and no sample is due; else
// CLOCK_MONOTONIC. Stores a sample flagged QUT_EVENT_BEGINS where one is due. [signal-safe; any thread]
QUT_API void qut_scope_begin(struct qut_scope *scope);
// `total` as in qut_sync_hit, grows by 1 and the duration. Stored if the beginning was, or if it took `least_ns` or
// longer, or a sample is due; else counted as throttled. Returns the duration, which is CLOCK_MONOTONIC's within 0.1 %,
// 0.1 us and a count (once, where the processor's counter turns out wrong: within that of CLOCK_MONOTONIC_COARSE's
// step). [signal-safe; any thread]
QUT_API uint64_t qut_scope_end(struct qut_scope *scope, uint32_t total, uint64_t least_ns,
                               const struct qut_extra *extras, uint32_t extra_count);

// ---- the guard: no tick comes to the calling thread between the two, and none is pending; nests. Timers stand still
// meanwhile (one system call at each end); perf's clock interrupts nothing, and is left alone. [signal-safe; any thread
// for itself]
QUT_API void qut_guard_begin(void);
QUT_API void qut_guard_end(void);

// ---- what became of ticks

// due = taken + late (one tick that stands for several) + kernel + lost, for threads that ended or were asked for.
struct qut_sampling_counters {
    uint64_t due;     // by processor time used (WALL: by time that was not guarded) and pace
    uint64_t taken;   // samples of ticks
    uint64_t late;    // ticks that came with another one as one signal; of a timer also those that it had not sent
                      // when the thread ended
    uint64_t kernel;  // that fell into system calls and faults, where this trigger has none: what is missing, as
                      // far as the kernel's (sampled) split of the thread's time can explain it. On x86 from Linux
                      // 5.9 on a timer's samples, which are in `taken`, stand for them (QUT_EXTRA_CPU_NS)
    uint64_t lost;    // the rest
    uint64_t strays;  // signals of that number that were no ticks
    uint64_t threads; // that have ticks now
    uint64_t threads_failed;         // that could not be given any
    uint64_t eintr_seen;             // with timers: calls that returned EINTR when a tick came
    uint64_t threads_by_timer;       // of `threads`: that tick by a timer where others have perf's clock
    uint64_t threads_without_kernel; // how often a thread could have no timer beside perf's clock: what the kernel does
                                     // for it goes to the code that runs next
    uint64_t period_least_ns; // of ticks by perf's clock: those that were asked for more often come so far apart, as
                              // this system holds no more; 0: not known
    uint64_t asked;           // as `due`, at the pace that was asked for: more where this system does not hold it
    uint64_t zero[3];
};
// Of size bytes those that this version knows are filled, the others 0. [signal-safe; any thread]
QUT_API void qut_sampling_get_counters(struct qut_sampling_counters *counters, size_t size);

QUT_DECLS_END

#endif

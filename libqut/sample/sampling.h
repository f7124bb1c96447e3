// SPDX-License-Identifier: Apache-2.0
// Between the files of this folder.
//
//   start.c     start and stop; what a child gets
//   pool.c      the places of threads that tick; who may look at them
//   thread.c    threads that come and go
//   trigger.c   what makes a thread tick
//   switches.c  which threads tick by a timer, others by perf's clock
//   tick.c      the handler
//   restart.c   calls that end as without us
//   pace.c      which thread ticks how often
//   guard.c     no ticks around calls that they would interrupt
//   counter.c   a clock for short times
//   counters.c  what became of ticks
//   metrics.c   what the kernel and the trace count for a thread
//   sync.c      sync points and scopes
//
// Locking: who starts, stops, adds or takes away a thread holds `lock`, with all signals blocked. Handlers and guards
// take no lock; they stand between qut_tickers_enter and qut_tickers_leave, and who stops waits for them.
#ifndef QUT_SAMPLE_SAMPLING_H
#define QUT_SAMPLE_SAMPLING_H

#include <stdatomic.h>

#include <qut/sample.h>

#include "libqut/os/os.h"
#include "libqut/os/perf_event.h"
#include "libqut/os/task.h"
#include "libqut/os/thread_word.h"
#include "libqut/os/tick_signal.h"
#include "libqut/os/timer.h"

#pragma GCC visibility push(hidden)

enum { QUT_TICKERS_MAX = 1 << 15, QUT_PATTERN_BYTES = 32, QUT_PERIOD_LEAST_NS = 10000 };

// What became of the ticks of one thread. Written by the thread itself, or with the lock when it does not run.
struct qut_tick_counts {
    _Atomic uint64_t taken;
    _Atomic uint64_t late;  // told by the timer
    _Atomic uint64_t fired; // told by the event, as of the last tick
};

// One thread's place. Zero when it is free.
struct qut_ticker {
    _Atomic uint32_t tid;
    uint32_t next_free; // index + 1
    uint64_t identity;  // of qut_os_each_task; 0: the thread asked for ticks itself
    uint64_t seen;      // by which look at all threads
    uint64_t cpu_ns_at_end;
    // What makes it tick.
    bool is_armed;
    _Atomic int32_t fault_mark; // si_fd of what are no ticks, but faults
    struct qut_os_event clock, faults;
    int32_t timer; // with is_armed, and timers
    uint64_t period_ns;
    char name[QUT_OS_NAME_BYTES]; // that its pace was chosen by
    // Since it was armed.
    struct qut_os_task_times times;
    uint64_t armed_ns, guarded_ns; // CLOCK_MONOTONIC
    struct qut_tick_counts counts;
    // As of its own last looks.
    uint32_t tick_count;
    bool is_by_timer;
    uint64_t switches_seen, cpu_ns_seen;
    // The guard.
    uint32_t guard_depth;
    uintptr_t guard_sp; // of the outermost one
    uint64_t guard_began_ns, guard_left_ns;
};

struct qut_tally { // as in struct qut_sampling_counters
    uint64_t due, taken, late, kernel, lost;
};

struct qut_pace_group {
    char pattern[QUT_PATTERN_BYTES];
    bool is_main_thread;
    uint64_t period_ns;
};

struct qut_sampler {
    _Atomic uint32_t lock;
    _Atomic(struct qut_ticker *) tickers; // NULL: there are no ticks
    _Atomic uint32_t generation;          // of these; never 0
    _Atomic uint32_t ticker_count;        // that were ever in use
    _Atomic uint32_t trigger;             // what it became
    _Atomic int32_t signal_number;        // 0: none is taken
    _Atomic uint32_t is_guarding;         // ticks interrupt calls
    _Atomic bool is_settled;              // threads keep what they tick by
    _Atomic uint32_t by_timer_count;      // of threads that tick by a timer, others by perf's clock
    // Constant while it is started.
    bool is_started;
    bool may_use_timers; // for threads that cannot have what the trigger is
    bool may_change;     // threads by what they tick by
    bool timers_wait;    // those of processor time interrupt no call
    struct sigaction before;
    uint64_t period_ns, sync_interval_ns, fault_period;
    uint32_t group_count;
    struct qut_pace_group groups[QUT_SAMPLING_GROUPS_MAX];
    // Under lock.
    uint32_t free_ticker; // index + 1
    // Of threads that ended.
    _Atomic uint64_t ended[5]; // struct qut_tally
    _Atomic uint64_t strays, threads, threads_failed, eintr_seen;
};
extern struct qut_sampler qut_sampler;

// ---- pool.c

uint64_t qut_sampler_lock(void); // what signals were blocked
void qut_sampler_unlock(uint64_t blocked);

// The places, or NULL: there are no ticks. In either case qut_tickers_leave has to come. Signal-safe; nest.
struct qut_ticker *qut_tickers_enter(void);
void qut_tickers_leave(void);
// Between those: the calling thread's, or NULL. Signal-safe.
struct qut_ticker *qut_ticker_self(struct qut_ticker *tickers);

int qut_tickers_create(void); // 0 or -ENOMEM. With lock, as what follows
void qut_tickers_hide(void);  // nobody finds them any more; waits for those who had
void qut_tickers_destroy(struct qut_ticker *tickers);
void qut_tickers_in_child(void); // nobody else is there
struct qut_ticker *qut_ticker_take(uint32_t tid);
void qut_ticker_give_back(struct qut_ticker *ticker);
void qut_ticker_is_mine(const struct qut_ticker *tickers, const struct qut_ticker *ticker);

// ---- trigger.c

// Whether it can be had: 0 or -errno.
int qut_trigger_try(uint32_t trigger, int signal_number);
int qut_trigger_try_faults(int signal_number);
// 0 or -errno. A period of 0: it does not tick.
int qut_ticker_arm(struct qut_ticker *ticker, uint64_t period_ns);
// What became of its ticks is added to those of threads that ended.
void qut_ticker_rearm(struct qut_ticker *ticker, uint64_t period_ns); // in the thread's own handler, without lock
void qut_ticker_disarm(struct qut_ticker *ticker);
extern const char qut_timer_cookie;

// ---- switches.c

void qut_switches_begin(struct qut_ticker *ticker, uint64_t period_ns); // before it is armed
void qut_switches_look(struct qut_ticker *ticker);                      // in the thread's own handler: may arm it anew
void qut_switches_forget(struct qut_ticker *ticker);

// ---- tick.c

qut_os_tick_fn qut_tick;

// ---- restart.c

// At the end of the handler of `number`, which a timer sent.
void qut_restart_look(int number, void *ucontext);

// ---- pace.c

uint64_t qut_pace_of(uint32_t tid, const char *name); // a period
bool qut_pace_asks_for_names(void);

// ---- counters.c

void qut_tally_ticker(const struct qut_ticker *ticker, uint32_t tid, uint64_t fired, struct qut_tally *tally);
void qut_tally_ended(const struct qut_tally *tally);

// ---- thread.c

int qut_thread_begin_ticks(void); // of the calling one, with lock
void qut_thread_end_hook(void);

// ---- metrics.c

// Those that the open trace wants; NULL: none. `own`: those that the caller brings, or NULL. Signal-safe.
const uint64_t *qut_sample_measure(uint64_t metrics[QUT_METRIC_COUNT], const uint64_t *own);

// ---- sync.c

void qut_sync_begin(uint64_t interval_ns);
void qut_sync_end(void);
// In a tick: says at the next sync point that it is due, if it is. Signal-safe.
void qut_sync_tick(void);

#pragma GCC visibility pop

#endif

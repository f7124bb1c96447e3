// SPDX-License-Identifier: Apache-2.0
// Between the files of this folder.
//
//   sampling.c         start and stop; what a child gets
//   ticker_pool.c      the places of threads that tick; when these may be looked at
//   sampled_threads.c  threads that come and go
//   trigger.c          what makes a thread tick
//   kernel_time.c      what the kernel did for a thread, by a timer beside perf's clock
//   reach.c            rates that the system cannot hold
//   switches.c         which threads tick by a timer, others by perf's clock
//   tick.c             the handler
//   restart.c          calls that end as without us
//   pace.c             which thread ticks how often
//   call_guard.c       no ticks around calls that they would interrupt
//   cycle_clock.c      a clock for short times
//   tick_counts.c      what became of ticks
//   metrics.c          what the kernel and the trace count for a thread
//   sync.c             sync points and scopes
//
// Locking: starting, stopping, adding and taking away a thread need `lock`, with all signals blocked. Handlers and
// guards take no lock; they stand between sample_tickers_enter and sample_tickers_leave, and a stop waits for them.
#ifndef QUT_SAMPLE_INSIDE_H
#define QUT_SAMPLE_INSIDE_H

#include <stdatomic.h>

#include <qut/sample.h>

#include "libqut/os/os.h"
#include "libqut/os/perf_event.h"
#include "libqut/os/task.h"
#include "libqut/os/thread_word.h"
#include "libqut/os/tick_signal.h"
#include "libqut/os/timer.h"

#pragma GCC visibility push(hidden)

enum { SAMPLE_TICKERS_MAX = 1 << 15, SAMPLE_PATTERN_BYTES = 32, SAMPLE_PERIOD_LEAST_NS = 10000 };

// What became of the ticks of one thread. Written by the thread itself, or with the lock when it does not run.
struct sample_tick_counts {
    _Atomic uint64_t taken;
    _Atomic uint64_t late;   // told by the timer
    _Atomic uint64_t fired;  // told by the event, as of the last tick
    _Atomic uint64_t beside; // of `taken`, those that the timer beside the event took
};

// One thread's place. Zero when it is free.
struct sample_ticker {
    _Atomic uint32_t tid;
    uint32_t next_free; // index + 1
    uint64_t identity;  // of os_each_task; 0: the thread asked for ticks itself
    uint64_t seen;      // by which look at all threads
    uint64_t cpu_ns_at_end;
    // What makes it tick.
    _Atomic bool is_armed;      // what a tick of it reads is written before that
    _Atomic int32_t fault_mark; // si_fd of what are no ticks, but faults
    struct os_event clock, faults;
    int32_t timer;                // with is_armed, and timers: instead of the clock, or beside it
    uint64_t period_ns, asked_ns; // as it ticks; as it was asked for
    char name[OS_NAME_BYTES];     // that its pace was chosen by
    // Since it was armed.
    struct os_task_times times;
    uint64_t armed_ns, guarded_ns;           // CLOCK_MONOTONIC
    struct os_task_times seen_times;         // as of the timer's last tick
    uint64_t handler_left_ns;                // CLOCK_MONOTONIC
    uint64_t sample_left_ns, sample_took_ns; // of the last one
    uint64_t rests_until_ns;                 // until then it takes no sample
    uint64_t rested_count;                   // ticks that came before that; of a timer they are in counts.late
    uint64_t kernel_ns, faults_seen;         // in the kernel, and in no sample yet
    struct os_task_times reach_times;        // as of the last look whether its rate is held
    uint64_t reach_came;
    bool was_short;
    struct sample_tick_counts counts;
    // As of its own last looks.
    uint32_t tick_count;
    uint32_t thinned[2];         // ticks that were met while not all are stored: of the clock, of a timer beside it
    bool is_by_timer, is_uneven; // uneven: a timer's ticks came together too often
    uint64_t switches_seen, cpu_ns_seen;
    // The guard.
    uint32_t guard_depth;
    uintptr_t guard_sp; // of the outermost one
    uint64_t guard_began_ns, guard_left_ns;
};

struct sample_tally { // as in struct qut_sampling_counters
    uint64_t due, taken, late, kernel, lost, asked;
};
enum { SAMPLE_TALLY_WORDS = 6 };

struct sample_pace_group {
    char pattern[SAMPLE_PATTERN_BYTES];
    bool is_main_thread;
    uint64_t period_ns;
};

struct sample_sampler {
    _Atomic uint32_t lock;
    _Atomic(struct sample_ticker *) tickers; // NULL: there are no ticks
    _Atomic uint32_t generation;             // of these; never 0
    _Atomic uint32_t ticker_count;           // that were ever in use
    _Atomic uint32_t trigger;                // what it became
    _Atomic int32_t signal_number;           // 0: none is taken
    _Atomic uint32_t is_guarding;            // ticks interrupt calls
    _Atomic bool is_settled;                 // threads keep what they tick by
    _Atomic uint64_t period_least_ns;        // what events can be held to; 0: not known
    _Atomic uint32_t by_timer_count;         // of threads that tick by a timer, others by perf's clock
    // Constant while it is started.
    bool is_started;
    bool may_use_timers; // for threads that cannot have what the trigger is
    bool may_change;     // threads by what they tick by
    bool timers_wait;    // those of processor time interrupt no call
    struct sigaction before;
    uint64_t period_ns, sync_interval_ns, fault_period;
    uint32_t group_count;
    struct sample_pace_group groups[QUT_SAMPLING_GROUPS_MAX];
    // Under lock.
    uint32_t free_ticker; // index + 1
    // Of threads that ended.
    _Atomic uint64_t ended[SAMPLE_TALLY_WORDS]; // struct sample_tally
    _Atomic uint64_t strays, threads, threads_failed, threads_without_kernel, eintr_seen;
};
extern struct sample_sampler sample_sampler;

// ---- ticker_pool.c

uint64_t sampler_lock(void); // what signals were blocked
void sampler_unlock(uint64_t blocked);

// The places, or NULL: there are no ticks. In either case sample_tickers_leave has to come. Signal-safe; nest.
struct sample_ticker *sample_tickers_enter(void);
void sample_tickers_leave(void);
// Between those: the calling thread's, or NULL. Signal-safe.
struct sample_ticker *sample_ticker_self(struct sample_ticker *tickers);

int sample_tickers_create(void); // 0 or -ENOMEM. With lock, as what follows
void sample_tickers_hide(void);  // they are found no more; waits for threads that had found them
void sample_tickers_destroy(struct sample_ticker *tickers);
void sample_tickers_in_child(void); // there are none; no other thread is there
struct sample_ticker *sample_ticker_take(uint32_t tid);
void sample_ticker_give_back(struct sample_ticker *ticker);
// Whether it ticks by a timer, others by perf's clock.
void sample_ticker_set_by_timer(struct sample_ticker *ticker, bool by_timer);
void sample_ticker_is_mine(const struct sample_ticker *tickers, const struct sample_ticker *ticker);

// ---- trigger.c

// Whether it can be had: 0 or -errno.
int sample_trigger_try(uint32_t trigger, int signal_number);
int sample_trigger_try_faults(int signal_number);
// 0 or -errno. A period of 0: it does not tick.
int sample_ticker_arm(struct sample_ticker *ticker, uint64_t period_ns);
// What became of its ticks is added to those of threads that ended.
void sample_ticker_rearm(struct sample_ticker *ticker, uint64_t period_ns); // in the thread's own handler, without lock
void sample_ticker_disarm(struct sample_ticker *ticker);
extern const char sample_timer_cookie;

bool sample_ticker_has_event(const struct sample_ticker *ticker);

// ---- kernel_time.c

void sample_kernel_begin(struct sample_ticker *ticker); // with the thread's times
struct sample_kernel_tick {
    uint32_t code;   // enum qut_trace_kernel
    uint64_t cpu_ns; // that the kernel worked for the thread
};
enum { SAMPLE_OWN_NS = 5000, SAMPLE_OWN_MOST_NS = 20000 };
// In the thread's own handler of a timer of processor time: whether the tick met the kernel. Signal-safe.
bool sample_kernel_look(struct sample_ticker *ticker, const void *ucontext, struct sample_kernel_tick *tick);

// ---- reach.c

void sample_reach_begin(void);
void sample_reach_restart(struct sample_ticker *ticker); // it is armed anew
uint64_t sample_reach_period(uint64_t period_ns);        // for events: no shorter than what can be held
uint64_t sample_out_of_step(uint64_t period_ns);         // a little longer
// In the thread's own handler: may arm it anew.
void sample_reach_look(struct sample_ticker *ticker);

// ---- switches.c

void sample_switches_begin(struct sample_ticker *ticker, uint64_t period_ns); // before it is armed
void sample_switches_look(struct sample_ticker *ticker); // in the thread's own handler: may arm it anew

// ---- tick.c

os_tick_fn sample_tick;

// ---- restart.c

// At the end of the handler of `number`, which a timer sent.
void sample_restart_look(int number, void *ucontext);

// ---- pace.c

uint64_t sample_pace_of(uint32_t tid, const char *name); // a period
bool sample_pace_asks_for_names(void);

// ---- tick_counts.c

void sample_tally_ticker(const struct sample_ticker *ticker, uint32_t tid, uint64_t fired, struct sample_tally *tally);
void sample_tally_ended(const struct sample_tally *tally);

// ---- sampled_threads.c

int sample_thread_begin_ticks(void); // of the calling one, with lock
void sample_thread_end_hook(void);

// ---- metrics.c

// Those that the open trace wants; NULL: none. `own`: those that the caller brings, or NULL. Signal-safe.
const uint64_t *sample_measure(uint64_t metrics[QUT_METRIC_COUNT], const uint64_t *own);

// ---- sync.c

void sample_sync_begin(uint64_t interval_ns);
void sample_sync_end(void);
// In a tick: says at the next sync point that it is due, if it is. Signal-safe.
void sample_sync_tick(void);

#pragma GCC visibility pop

#endif

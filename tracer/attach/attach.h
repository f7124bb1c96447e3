// SPDX-License-Identifier: Apache-2.0
// Samples a process from outside: it was not prepared, nothing is loaded into it, nothing in it is changed. Each sample
// stops one thread for some microseconds: its registers and its stack are copied, it goes on, and the copy is walked
// here. Between two samples no thread is traced. If we die, the kernel lets go of the thread that was stopped.
#ifndef TRACER_ATTACH_ATTACH_H
#define TRACER_ATTACH_ATTACH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <qut/compiler.h>

#include "tracer/collect/collect.h"

struct attach_result;

struct attach_options {
    pid_t pid;               // a process; or one of its threads, with `tid`
    pid_t tid;               // only that thread; 0: all
    uint64_t period_ns;      // 0: 10 ms
    uint64_t main_period_ns; // of the main thread; 0: as the others
    // false: threads that run, by the processor time they use. true: all threads, by time; those that sleep are not
    // stopped, and each of their sleeps is one interval.
    bool wall;
    uint64_t duration_ns;   // 0: until it ends or stop_fd can be read
    int stop_fd;            // -1: none
    int file_fd;            // a regular file, empty: becomes a .qtrace
    bool live;              // as in struct collect_options
    uint64_t segment_bytes; // of the memory in between; 0: 32 MiB
    // For tables (qut/target.h, qutc/provide.h); NULL: none.
    const char *cache_directory, *debug_root, *sysroot;
    qut_compile_fn take;
    void *take_context;
    const char *command; // what the trace says was recorded; NULL: the process's own
    // Called now and then by the thread that called attach_record, with what there is so far.
    void (*progress)(void *context, const struct attach_result *now);
    void *progress_context;
    // Called while tables are made, before the first sample: `done` of `all` modules.
    void (*preparing)(void *context, unsigned done, unsigned all);
};

enum attach_end {
    ATTACH_END_STOPPED = 1, // stop_fd
    ATTACH_END_DURATION,
    ATTACH_END_PROCESS, // it has ended
    ATTACH_END_TAKEN,   // another tracer has it now, or it may not be traced any more
    ATTACH_END_FILE,    // the file could not be begun: collect_error
};

// due = taken + covered + missed, by processor time used and pace; with `wall`, by time.
struct attach_result {
    enum attach_end end;
    uint64_t elapsed_ns;
    uint64_t due;
    uint64_t taken;   // stacks: of threads that were stopped, and of threads that slept
    uint64_t covered; // with `wall`: rounds that met a thread in a sleep that is an interval already
    uint64_t stops;
    uint64_t asleep; // stacks of threads that slept, and were not stopped
    uint64_t lost;   // stacks that there was no room for
    uint64_t roots;  // stacks that were walked to the outermost frame
    uint64_t python; // stacks that have functions of CPython; some of which are missing, or uncertain
    uint64_t python_uncertain;
    uint64_t late; // rounds that began a period or more too late
    // Missed, by reason.
    uint64_t missed_asleep;    // had used processor time, and slept again, or had no processor yet, when it was looked
                               // at; rounds that came late
    uint64_t missed_woke;      // slept, and woke while it was looked at
    uint64_t missed_slow;      // did not stop within 20 ms (waits for a disk, or for a processor)
    uint64_t missed_gone;      // ended, or was stopped by another tracer
    uint64_t missed_registers; // of another mode than the process
    // System calls that the stop ended early. The first are restarted by the kernel as if nothing had happened; the
    // others the program has seen: EINTR where it cannot be taken back, or having done less than asked.
    uint64_t restarted, disturbed;
    uint64_t longest_restart_ns; // at most so much longer its timeout became
    // How long threads stood still, as seen from here: never less than it was.
    uint64_t stop_median_ns, stop_p99_ns, stop_longest_ns;
    uint64_t stopped_ns; // all together
    uint64_t threads;    // seen in all
    uint64_t threads_now;
    uint64_t execs;     // times that it became another program
    uint64_t intervals; // blocked stretches
    struct collect_result collected;
    struct base_error collect_error; // .reason 0: none
};

struct attach_error {
    char text[512]; // "1234: ..." and what to do
};

// Why a process can be neither sampled from outside nor given an agent; 0: it seems that it can. The process of a
// thread is put into *pid, and the thread into *tid where that is 0.
int attach_refuse(pid_t *pid, pid_t *tid, struct attach_error *error);

// Blocks until the end. 0: *result is filled, also where the process ended or the file was cut short. -1: nothing was
// recorded, and *error says why: no such process, not permitted, traced by another, ...
int attach_record(const struct attach_options *options, struct attach_result *result, struct attach_error *error);

#endif

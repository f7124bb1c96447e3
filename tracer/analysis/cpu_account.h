// SPDX-License-Identifier: Apache-2.0
// Which sample stands for how much of its thread's processor time.
//
// A tick says where a thread was when so much of it had gone by, so a tick stands for all since the thread's tick
// before. A sample at a sync point says nothing of the time before it: that goes to the next tick. A tick that met the
// kernel tells how much it stands for (QUT_TRACE_EXTRA_CPU_NS): it is measured by a clock of its own, which is coarser,
// and of ticks in user mode some lie within that time already. It takes this from the account; the ticks behind it
// get nothing until the account is even again. Those are the ones that were given the kernel's time before: a tick
// right behind a call stands for the call, too.
//
//   tick in user mode: takes what is in the account, if that is more than 0
//   tick that tells:   takes what it tells
//
// So sums are exact. Where no tick of a thread tells, an interval whose beginning was the sample before is known to
// have used what lies between the two. A thread's first tick stands for nothing; a run that is its first for its own
// length, or what the thread had used, where that is less.
//
// A thread without ticks, where others have some or were to have some: what it used is told by no sample, and goes to
// trace.unticked_node. Where ticks were not to be: every sample stands for what went by since the one before.
#ifndef TRACER_ANALYSIS_CPU_ACCOUNT_H
#define TRACER_ANALYSIS_CPU_ACCOUNT_H

#include "tracer/trace/trace_data.h"

struct cpu_account {
    const struct trace *trace;
    const struct trace_thread *thread;
    const struct trace_sample *before;
    uint64_t before_ns; // processor time as of the sample before
    int64_t open_ns;    // in the account: used, and in no sample yet; below 0: what others took too early
    size_t next;        // index of the next sample in its thread
    bool has_ticks, has_told; // has_ticks: or it was to have some
    // What was taken too early at the thread's end: the last that told get less.
    size_t cut_from; // index in its thread: this one by cut_ns, all behind it get nothing
    uint64_t cut_ns;
};

void analysis_cpu_begin(struct cpu_account *account, const struct trace *trace, const struct trace_thread *thread);
// Of the thread's next sample.
uint64_t analysis_cpu_next(struct cpu_account *account);

// What a thread used that no tick met, less what its waits are known to have used; of others 0.
uint64_t analysis_cpu_unticked_ns(const struct trace *trace, const struct trace_thread *thread);

// Whether the sample tells how much it stands for.
bool analysis_cpu_is_told(const struct trace *trace, const struct trace_sample *sample);
// Processor time of a thread's first run of samples, as far as one can know; 0 of a single one.
uint64_t analysis_first_run_cpu_ns(const struct trace_sample *first);

#endif

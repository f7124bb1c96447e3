// SPDX-License-Identifier: Apache-2.0
// What the kernel does for a thread, seen from outside. A thread that we stop in a call stands behind that call, and
// its registers have the call's number. But a stop takes some microseconds to arrive, and falls on calls too often: a
// thread that enters one every 20 us is met there by 8 points more than it is there. And what the kernel does in page
// faults is seen nowhere. So the kernel's own account of the thread decides how much there is of it (utime and stime of
// /proc/PID/task/TID/stat, which it samples in its tick), and the samples how that is shared:
//
//   claim of a sample in a call = processor time since the sample before * r
//   r = (stime / (utime + stime)) / (share of samples in calls, by processor time)
//
// Where no processor is free, samples in calls are too few: some of them are left out, since it is not sure that the
// thread ran (place.h). Of one that writes for a quarter of its time a third was missing. So r may be above 1, up to
// 2; but while the thread has page faults, what is left fell outside of calls: that many of its other samples are the
// kernel's.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/attach/inside.h"

static const double claim_most = 2;
enum { LOOK_NS = 10000000, FADE_NS = 1000000000, NS_PER_S = 1000000000 };

// Of /proc/PID/task/TID/stat: minflt, majflt, utime, stime and processor are fields 10, 12, 14, 15 and 39. The name
// before them may contain anything.
static bool read_stat(const struct attach_session *session, const struct attach_thread *thread,
                      struct attach_split *now)
{
    enum { FIRST = 3, FAULTS = 10, MAJOR_FAULTS = 12, USER = 14, KERNEL = 15, PROCESSOR = 39 };
    char text[512];
    if (!attach_read_stat(session, thread, text, sizeof text))
        return false;
    const char *at = strrchr(text, ')');
    uint64_t values[PROCESSOR + 1] = {0};
    if (!at || at[1] != ' ' || !at[2])
        return false;
    char *end = (char *)at + 3; // behind the state
    for (int field = FIRST + 1; field <= PROCESSOR; field++)
        values[field] = strtoull(end, &end, 10);
    uint64_t unit_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    now->faults = values[FAULTS] + values[MAJOR_FAULTS];
    now->user_ns = values[USER] * unit_ns;
    now->kernel_ns = values[KERNEL] * unit_ns;
    now->processor = values[PROCESSOR] < INT32_MAX ? (int)values[PROCESSOR] : -1;
    return true;
}

static double grown(uint64_t now, uint64_t before)
{
    return now > before ? (double)(now - before) : 0;
}

static void look(const struct attach_session *session, struct attach_thread *thread)
{
    struct attach_kernel_time *time = &thread->kernel_time;
    struct attach_split now;
    if (!read_stat(session, thread, &now))
        return;
    if (time->is_known) {
        time->user_ns += grown(now.user_ns, time->seen.user_ns);
        time->kernel_ns += grown(now.kernel_ns, time->seen.kernel_ns);
        time->faults = now.faults > time->seen.faults;
    }
    time->is_known = true;
    time->seen = now;
    if (time->user_ns + time->kernel_ns < FADE_NS)
        return;
    time->user_ns /= 2;
    time->kernel_ns /= 2;
    time->met_calls_ns /= 2;
    time->met_faults_ns /= 2;
    time->met_ns /= 2;
}

// The kernel's share of the thread's time as it says itself; below 0: too little is known.
static double told_share(const struct attach_kernel_time *time)
{
    double all_ns = time->user_ns + time->kernel_ns;
    return all_ns >= 5 * LOOK_NS ? time->kernel_ns / all_ns : -1;
}

// Of samples outside of calls while there were faults, the kernel's share; one in so many is the kernel's then.
static bool is_in_fault(struct attach_kernel_time *time, double share)
{
    double left_ns = share * time->met_ns - time->met_calls_ns;
    if (!time->faults || left_ns <= 0 || time->met_faults_ns <= 0)
        return false;
    double of_each = left_ns / time->met_faults_ns;
    time->fault_debt += of_each < 1 ? of_each : 1;
    if (time->fault_debt < 1)
        return false;
    time->fault_debt -= 1;
    return true;
}

bool attach_kernel_look(const struct attach_session *session, struct attach_thread *thread, long call,
                        struct attach_kernel_tick *tick)
{
    struct attach_kernel_time *time = &thread->kernel_time;
    double since_ns = grown(thread->cpu_ns, time->sampled_cpu_ns);
    if (time->sampled_cpu_ns == 0)
        since_ns = 0; // what was before is not ours
    time->sampled_cpu_ns = thread->cpu_ns;
    if (!time->is_known || thread->cpu_ns - time->looked_cpu_ns >= LOOK_NS) {
        time->looked_cpu_ns = thread->cpu_ns;
        look(session, thread);
    }
    time->met_ns += since_ns;
    double share = told_share(time), ratio = 1;
    if (call >= 0) {
        time->met_calls_ns += since_ns;
        if (share >= 0 && time->met_calls_ns > 0)
            ratio = share * time->met_ns / time->met_calls_ns;
        double most = time->faults ? 1 : claim_most;
        *tick = (struct attach_kernel_tick){.code = (uint32_t)(QUT_TRACE_KERNEL_CALLS + call),
                                            .cpu_ns = (uint64_t)(since_ns * (ratio < most ? ratio : most))};
        return true;
    }
    time->met_faults_ns += time->faults ? since_ns : 0;
    if (share < 0 || !is_in_fault(time, share))
        return false;
    *tick = (struct attach_kernel_tick){.code = QUT_TRACE_KERNEL_FAULT, .cpu_ns = (uint64_t)since_ns};
    return true;
}

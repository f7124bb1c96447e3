// SPDX-License-Identifier: Apache-2.0
// What happens when a process begins, forks and ends. Where the recorder does not answer, the folder takes no file, or
// anything else that we need is not to be had, nothing is on and the program runs as if we were not there.
#include "agent/start.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <qut/local.h>

#include "agent/calls/calls.h"
#include "agent/environment.h"
#include "agent/folder.h"
#include "agent/hide.h"
#include "agent/locks.h"
#include "agent/probe_stacks.h"
#include "agent/real.h"
#include "agent/suits.h"
#include "agent/tell.h"
#include "agent/thread_start.h"
#include "agent/traced_calls.h"
#include "agent/waiting.h"
#include "libqut/host/host.h"

enum { TABLES_PATIENCE_MS = 2000 };

static bool is_injected;
static _Atomic uint64_t hello_ns; // when the recorder was last told of this process

static void end(bool is_told);

// ---- telling the recorder

// Ticks have begun by now, and their signal is not blocked. One that interrupted the wait for the answer would end it,
// SA_RESTART or not: the socket has a timeout.
int agent_say_hello(enum agent_channel_begin how, int trigger_error, bool wait)
{
    int fd = qut_trace_take_fd();
    qut_guard_begin();
    atomic_store_explicit(&hello_ns, os_now_ns(), memory_order_relaxed);
    int error = agent_tell_hello(how, qut_sampling_trigger(), trigger_error, fd, wait);
    qut_guard_end();
    if (fd >= 0)
        close(fd);
    return error;
}

// The recorder knows where it has said no, and where there is none it is not asked.
void agent_say_failed(int error)
{
    struct agent_quiet quiet;
    if (error == AGENT_TELL_NO || error == -ECONNREFUSED || error == -EINVAL)
        return;
    agent_quiet_begin(&quiet);
    agent_tell_left(error == -EFBIG ? AGENT_LEFT_FILE_LIMIT : AGENT_LEFT_FAILED, AGENT_TELL_THIS,
                    error == -EPROTONOSUPPORT ? 0 : error);
    agent_quiet_end(&quiet);
}

// ---- fork

static _Thread_local struct agent_quiet around_fork __attribute__((tls_model("initial-exec")));

// Last to be registered, so the first before a fork and the last after it: libqut's own handlers run in between.
static void before_fork(void)
{
    agent_quiet_begin(&around_fork);
    agent_hide_before_fork();
}

static void after_fork_in_parent(void)
{
    agent_hide_after_fork();
    agent_quiet_end(&around_fork);
}

// Returns whether this child is recorded.
static bool go_on_in_child(void)
{
    if (!agent_settings.follow)
        return false;
    agent_tell_counts_after_fork();
    if (agent_waiting_begin()) // no lock was watched, or is
        return true;
    agent_locks_after_fork();
    if (qut_trace_fd() < 0) {
        agent_tell_left(AGENT_LEFT_FAILED, AGENT_TELL_THIS, 0);
        return false;
    }
    // The thread that looks after modules stayed behind; another one looks after this process's.
    qut_thread_register();
    agent_threads_after_fork();
    int error = agent_say_hello(AGENT_BEGAN_BY_FORK, qut_sampling_after_fork(), true);
    if (error == 0) {
        // Where the agent is to leave the process again, none of the program's threads has memory of ours.
        if (is_injected && agent_settings.trigger == QUT_TRIGGER_NONE) {
            qut_sampling_thread_end();
            qut_thread_unregister();
        }
        agent_traced_calls_begin(AGENT_BEGAN_BY_FORK);
        agent_hide_action_again();
        return true;
    }
    qut_sampling_stop();
    qut_trace_close();
    agent_say_failed(error);
    return false;
}

static void after_fork_in_child(void)
{
    const bool was_on = atomic_load_explicit(&agent_recorded_pid, memory_order_relaxed) != 0;
    agent_thread.tid = 0;
    calls_thread_is(0);
    agent_hide_after_fork();
    agent_traced_calls_after_fork();
    calls_traps_stay_in_child();
    if (was_on || calls_traps_are_in()) {
        if (was_on)
            atomic_store_explicit(&agent_recorded_pid, (uint32_t)getpid(), memory_order_relaxed);
        if (!was_on || !go_on_in_child()) {
            __atomic_store_n(&agent_watched, 0, __ATOMIC_RELAXED);
            atomic_store_explicit(&agent_recorded_pid, 0, memory_order_relaxed);
            calls_traps_leave_child();
            around_fork.blocked = agent_show_blocked(around_fork.blocked);
            agent_hide_ends_in_child();
        }
    }
    agent_quiet_end(&around_fork);
}

// ---- whether there still is a recorder

// One whose collector does not look any more may have been stopped only (Ctrl-Z): then it can still be connected to.
// A process that has filters for its system calls since may not try: they may kill it.
static bool is_recorder_gone(uint64_t looked_ns)
{
    static const uint64_t patience_ns = UINT64_C(5000000000), long_ns = UINT64_C(60000000000);
    uint64_t now_ns = os_now_ns();
    const bool has_looked = looked_ns != 0;
    if (looked_ns == UINT64_MAX)
        return true;
    if (!has_looked) // it may have ended before its first look
        looked_ns = atomic_load_explicit(&hello_ns, memory_order_relaxed);
    if (now_ns < looked_ns + patience_ns)
        return false;
    // A hello that was not waited for may have been answered with a no.
    if (!has_looked && now_ns >= looked_ns + long_ns)
        return true;
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0)
        return now_ns >= looked_ns + long_ns;
    return !agent_tell_is_heard();
}

bool agent_recorder_is_gone(void)
{
    return is_recorder_gone(feed_collector_ns());
}

// In libqut's thread.
static int look_for_recorder(void)
{
    enum { EVERY_MS = 1000, NEVER = -1 };
    if (!agent_is_on_here())
        return NEVER;
    if (!agent_recorder_is_gone())
        return EVERY_MS;
    end(false);
    return NEVER;
}

// ---- beginning

static int open_trace(void)
{
    char path[AGENT_PATH_BYTES + 64];
    struct qut_trace_options options = {.size = sizeof options,
                                        .segment_bytes = agent_settings.segment_bytes,
                                        .mode = agent_settings.keep_newest ? QUT_TRACE_KEEP_NEWEST : QUT_TRACE_KEEP_ALL,
                                        .flags = QUT_TRACE_CPU_TIME,
                                        .metric_mask = agent_settings.metric_mask};
    if (agent_settings.follow)
        options.flags |= QUT_TRACE_FOLLOW_FORK;
    if (!agent_settings.fault_period) // else our own faults would be sampled
        options.flags |= QUT_TRACE_ON_DEMAND;
    if (!agent_folder_is_meant())
        return qut_trace_open(&options);
    options.flags &= ~(uint32_t)QUT_TRACE_ON_DEMAND;
    options.path = path;
    if (!agent_folder_path(path, sizeof path))
        return -ENAMETOOLONG;
    // Who is injected has the trace at once: no call of the program's would begin it, nor our threads, later on.
    return is_injected ? qut_trace_open(&options) : feed_open_later(&options);
}

static int start_sampling(uint32_t trigger)
{
    struct qut_sampling_group groups[AGENT_GROUPS_MAX];
    struct qut_sampling_options options = {.size = sizeof options,
                                           .trigger = trigger,
                                           .flags = QUT_SAMPLING_GUARDED,
                                           .signal_number = agent_settings.signal_number,
                                           .period_ns = agent_settings.period_ns,
                                           .sync_interval_ns = agent_settings.sync_interval_ns,
                                           .fault_period = agent_settings.fault_period,
                                           .groups = groups,
                                           .group_count = agent_settings.group_count};
    for (uint32_t i = 0; i < agent_settings.group_count; i++) {
        const struct agent_group *group = &agent_settings.groups[i];
        groups[i].pattern = strcmp(group->pattern, "main") == 0 ? NULL : group->pattern;
        groups[i].period_ns = group->period_ns;
    }
    return qut_sampling_start(&options);
}

// What ticks interrupt is guarded, and told of, whatever else is watched.
uint32_t agent_what_to_watch(void)
{
    const uint32_t guarded = AGENT_SYNC_LOCK | AGENT_SYNC_IO | AGENT_SYNC_POLL | AGENT_SYNC_SLEEP;
    return agent_settings.sync | (qut_sampling_interrupts() ? guarded : 0);
}

// As long as they come: those of a large program take the recorder its time, once. What is not there by then comes
// later.
static void wait_for_tables(void)
{
    struct qut_stats stats;
    uint64_t pending_before;
    qut_get_stats(&stats, sizeof stats);
    do
        pending_before = stats.pending_count;
    while (qut_wait(TABLES_PATIENCE_MS) == -ETIMEDOUT &&
           (qut_get_stats(&stats, sizeof stats), stats.pending_count < pending_before));
}

static int begin(enum agent_channel_begin how)
{
    static bool handles_forks;
    is_injected = how == AGENT_BEGAN_BY_INJECTION;
    // Of a recording that is over: there is no recorder to tell.
    int error = agent_tell_reach();
    if (error == 0)
        error = os_may_have_threads();
    if (error != 0)
        return error;
    struct qut_options options = {.size = sizeof options,
                                  .cache_directory = agent_settings.cache[0] ? agent_settings.cache : NULL,
                                  .compile = agent_folder_is_meant() ? NULL : agent_tell_table,
                                  .flags = QUT_START_FRAME_POINTERS};
    error = qut_start(&options);
    if (error != 0)
        return error;
    agent_hide_actions_before();
    // Meanwhile libqut's thread reads tables.
    error = open_trace();
    if (error != 0) {
        qut_stop();
        return error;
    }
    wait_for_tables();
    if (agent_settings.traps && how != AGENT_BEGAN_BY_INJECTION)
        sampling_keep_trap();
    // An injected agent stands in front of no call, and guards none: timers would cut them short.
    bool clock_only = how == AGENT_BEGAN_BY_INJECTION && agent_settings.trigger != QUT_TRIGGER_NONE;
    int trigger_error = start_sampling(clock_only ? QUT_TRIGGER_TASK_CLOCK : agent_settings.trigger);
    if (trigger_error != 0 && trigger_error != -EINVAL)
        error = start_sampling(QUT_TRIGGER_NONE); // without ticks there still are sync points
    else
        error = trigger_error;
    if (error == 0 && agent_folder_is_meant())
        error = trigger_error; // where nothing is watched, and nobody could be told of it
    if (error == 0 && !handles_forks) {
        error = -pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
        handles_forks = error == 0;
    }
    bool waits = false;
    if (error == 0 && agent_folder_is_meant() && !is_injected)
        error = agent_waiting_first(&waits);
    if (error == 0 && !waits)
        error = agent_say_hello(how, trigger_error, true);
    if (error != 0) {
        qut_sampling_stop();
        qut_trace_close();
        qut_stop();
        return error;
    }
    if (qut_sampling_signal() != 0)
        agent_hide_action(qut_sampling_signal());
    else if (agent_settings.traps && how != AGENT_BEGAN_BY_INJECTION)
        agent_hide_begin_traps();
    agent_waiting_prepare(how == AGENT_BEGAN_BY_INJECTION);
    agent_probe_stacks_begin();
    agent_traced_calls_begin(how);
    // What is injected has a thread of its own for that.
    if (agent_folder_is_meant())
        agent_folder_look();
    if (how != AGENT_BEGAN_BY_INJECTION)
        atomic_store_explicit(&modules_registry_now_and_then,
                              agent_folder_is_meant() ? agent_folder_look : look_for_recorder, memory_order_release);
    return 0;
}

int agent_begin(const char *text, enum agent_channel_begin how)
{
    if (atomic_load_explicit(&agent_recorded_pid, memory_order_relaxed) != 0)
        return -EALREADY;
    int error = agent_settings_read(&agent_settings, text);
    if (error != 0)
        return error;
    agent_real();
    struct agent_quiet quiet;
    agent_quiet_begin(&quiet);
    if (agent_settings.signal_number == 0)
        agent_settings.signal_number = agent_signal_that_fits(how);
    // What is injected is called by a thread that ends at once, and sees no other one begin: counted, that thread would
    // be the program's last, with which libqut's own ends.
    if (how != AGENT_BEGAN_BY_INJECTION)
        agent_threads_prepare();
    error = begin(how);
    if (error == 0) {
        const uint32_t tid = agent_tid();
        if (how != AGENT_BEGAN_BY_INJECTION) // else it is a thread that ends at once
            calls_thread_is(tid);
        agent_threads_count_from(); // where that was prepared
        atomic_store_explicit(&agent_recorded_pid, (uint32_t)getpid(), memory_order_relaxed);
        quiet.blocked = agent_hide_blocked(quiet.blocked);
    }
    agent_quiet_end(&quiet);
    if (error == 0 && !agent_waits)
        __atomic_store_n(&agent_watched, agent_what_to_watch(), __ATOMIC_RELEASE);
    return error;
}

// What a process says at its end stands before the recorder when it learns of the end: there is nothing to wait for.
// What is injected ends alone, and is waited for itself. The counts come last: the recorder that hears them finds the
// trace closed, and takes it while the process goes.
static void end(bool is_told)
{
    // The process may end at the moment at which there is no recorder any more.
    if (!agent_is_on_here() || atomic_exchange_explicit(&agent_recorded_pid, 0, memory_order_relaxed) == 0)
        return;
    struct agent_quiet quiet;
    agent_quiet_begin(&quiet);
    __atomic_store_n(&agent_watched, 0, __ATOMIC_RELAXED);
    qut_sampling_stop();
    const bool has_counts = !agent_waiting_ends() && is_told;
    qut_trace_close();
    if (has_counts)
        agent_tell_counts(is_injected);
    quiet.blocked = agent_show_blocked(quiet.blocked);
    agent_hide_ends();
    agent_quiet_end(&quiet);
}

void agent_end(void)
{
    end(true);
}

// What has another C library was told of by its parent.
static void leave_alone(const char *text, enum agent_left why)
{
    struct agent_quiet quiet;
    if (why != AGENT_LEFT_ONE_THREAD || agent_settings_read(&agent_settings, text) != 0)
        return;
    agent_quiet_begin(&quiet);
    agent_tell_left(why, AGENT_TELL_THIS, 0);
    agent_quiet_end(&quiet);
}

// Before the constructors of the program and of the libraries that only it needs.
__attribute__((constructor(101))) static void at_begin(int argument_count, char *arguments[])
{
    const char *text = getenv(AGENT_VARIABLE);
    if (!text)
        return;
    int saved_errno = errno;
    enum agent_left why = agent_fits(argument_count, arguments);
    if (why != AGENT_LEFT_NOT) {
        leave_alone(text, why);
        errno = saved_errno;
        return;
    }
    int error = agent_begin(text, AGENT_BEGAN_BY_EXEC);
    if (error != 0)
        agent_say_failed(error);
    // Of settings that were not read, it is not known what the environment was without them.
    if (error != -EINVAL && error != -EPROTONOSUPPORT && !agent_settings.follow)
        agent_environment_forget();
    errno = saved_errno;
}

// Hooks of what runs later go straight to libc.
__attribute__((destructor(101))) static void at_end(void)
{
    agent_end();
}

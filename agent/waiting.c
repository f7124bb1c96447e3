// SPDX-License-Identifier: Apache-2.0
#include "agent/waiting.h"

#include <errno.h>

#include <qut/local.h>

#include "agent/inside.h"
#include "agent/start.h"
#include "agent/tell.h"
#include "agent/thread_start.h"
#include "libqut/host/host.h"

uint32_t agent_waits;

// What is counted or guarded besides ticks is to be counted from the first call on.
static bool may_wait(void)
{
    const uint32_t alone = AGENT_SYNC_LOAD | AGENT_SYNC_THREAD; // which begin a trace
    return qut_sampling_signal() != 0 && qut_sampling_trigger() != QUT_TRIGGER_NONE &&
           !(agent_what_to_watch() & ~alone) && !agent_settings.fault_period && !agent_settings.call_ring_bytes &&
           !agent_settings.traps;
}

void agent_waiting_prepare(bool is_injected)
{
    feed_follow_later(agent_settings.follow && !is_injected && may_wait());
}

// Kept quiet. 0 or -errno; of -EAGAIN nothing has changed.
static int begin(bool wait)
{
    int error = feed_follow_now();
    if (error == -EAGAIN)
        return error;
    __atomic_store_n(&agent_waits, 0, __ATOMIC_RELAXED);
    atomic_store_explicit(&sampling_before_sample, NULL, memory_order_release);
    if (error == 0) {
        qut_trace_thread_register(); // one that is about to end has no place, and the trace goes on without it
        error = agent_say_hello(AGENT_BEGAN_BY_FORK, 0, wait);
    }
    if (error == 0)
        return 0;
    // In a handler nothing can be taken down but this. Nothing is watched, nothing is told any more.
    qut_sampling_thread_end();
    agent_say_failed(error);
    return error;
}

// In the handler of a tick. A thread cannot be started there: that may wait for what the handler interrupted.
static bool begin_in_tick(void)
{
    struct agent_quiet quiet;
    agent_quiet_begin(&quiet);
    const int error = begin(false);
    if (error == 0)
        __atomic_store_n(&agent_watched, agent_what_to_watch() | AGENT_SYNC_ALLOCATE | AGENT_THREAD_IS_DUE,
                         __ATOMIC_RELEASE);
    agent_quiet_end(&quiet);
    return error == 0;
}

void agent_waiting_over(void)
{
    if (!agent_is_on_here() || agent_is_quiet())
        return;
    struct agent_quiet quiet;
    agent_quiet_begin(&quiet);
    // A tick may have been quicker.
    if (agent_waits && begin(true) == 0) {
        agent_threads_go_on();
        __atomic_store_n(&agent_watched, agent_what_to_watch(), __ATOMIC_RELEASE);
    }
    agent_quiet_end(&quiet);
}

bool agent_thread_is_due(uint32_t what)
{
    const uint32_t watched = agent_what_to_watch();
    if (agent_thread.inside == 0 && !agent_thread.in_child && !agent_thread.is_agents && agent_is_on_here()) {
        struct agent_quiet quiet;
        agent_quiet_begin(&quiet);
        __atomic_store_n(&agent_watched, watched, __ATOMIC_RELEASE);
        agent_threads_go_on();
        agent_quiet_end(&quiet);
    }
    return (watched & what) != 0;
}

static void wait_for_tick(void)
{
    __atomic_store_n(&agent_watched, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&agent_waits, 1, __ATOMIC_RELAXED);
    atomic_store_explicit(&sampling_before_sample, begin_in_tick, memory_order_release);
}

int agent_waiting_first(bool *waits)
{
    *waits = feed_is_waiting() && may_wait();
    if (!*waits)
        return feed_follow_now();
    agent_threads_hold();
    wait_for_tick();
    return 0;
}

bool agent_waiting_begin(void)
{
    __atomic_store_n(&agent_waits, 0, __ATOMIC_RELAXED);
    atomic_store_explicit(&sampling_before_sample, NULL, memory_order_relaxed);
    if (!feed_is_waiting())
        return false;
    agent_threads_hold();
    if (qut_thread_register() == 0 && sampling_ticks_after_fork() == 0) {
        wait_for_tick();
        return true;
    }
    feed_follow_now(); // as without ticks: the recorder hears why
    return false;
}

bool agent_waiting_ends(void)
{
    if (!__atomic_load_n(&agent_waits, __ATOMIC_RELAXED))
        return false;
    __atomic_store_n(&agent_waits, 0, __ATOMIC_RELAXED);
    atomic_store_explicit(&sampling_before_sample, NULL, memory_order_release);
    agent_tell_never_begun();
    return true;
}

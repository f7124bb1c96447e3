// SPDX-License-Identifier: Apache-2.0
// Some namespaces can be entered by processes with a single thread only: libqut's own is gone meanwhile.
#include <errno.h>
#include <sched.h>

#include "agent/inside.h"
#include "agent/real.h"
#include "agent/thread_start.h"
#include "agent/traced_calls.h"
#include "agent/waiting.h"
#include "libqut/host/host.h"

// One that was joined is counted by the kernel for some microseconds more.
static void wait_until_gone(uint32_t tid)
{
    enum { YIELDS_MAX = 100000 };
    for (int i = 0; tid != 0 && i < YIELDS_MAX && !os_thread_is_gone(tid); i++)
        sched_yield();
}

void agent_threads_pause_own(void)
{
    struct agent_quiet quiet;
    agent_quiet_begin(&quiet);
    uint32_t tid = agent_threads_own_tid();
    wait_until_gone(agent_traced_calls_leave());
    modules_registry_pause_thread();
    wait_until_gone(tid);
    agent_quiet_end(&quiet);
}

// Where no thread can begin any more (the process's children are in another namespace of numbers), modules that are
// loaded from now on stay unknown: walks end there, and say so.
void agent_threads_resume_own(void)
{
    struct agent_quiet quiet;
    agent_quiet_begin(&quiet);
    modules_registry_resume_thread();
    agent_quiet_end(&quiet);
}

EXPORTED int unshare(int flags)
{
    enum { NEED_ONE_THREAD = CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM };
    agent_wait_no_more();
    if (!(flags & NEED_ONE_THREAD) || !agent_is_on_here())
        return agent_real()->unshare(flags);
    agent_threads_pause_own();
    int result = agent_real()->unshare(flags);
    agent_threads_resume_own();
    return result;
}

EXPORTED int setns(int fd, int type)
{
    agent_wait_no_more();
    if (!agent_is_on_here())
        return agent_real()->setns(fd, type);
    agent_threads_pause_own();
    int result = agent_real()->setns(fd, type);
    agent_threads_resume_own();
    return result;
}

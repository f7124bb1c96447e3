// SPDX-License-Identifier: Apache-2.0
// What is on in this process and in the calling thread, and how a thread keeps quiet.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/inside.h"
#include "agent/waiting.h"
#include "libqut/host/host.h"

_Thread_local struct agent_thread agent_thread __attribute__((tls_model("initial-exec")));
uint32_t agent_watched;
_Atomic int agent_signal;
struct agent_settings agent_settings;

_Atomic uint32_t agent_recorded_pid;

// ---- keeping quiet

// Hooks are quiet within the part that no handler of the program's can interrupt: what those call is theirs.
void agent_quiet_begin(struct agent_quiet *quiet)
{
    quiet->saved_errno = errno;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet->cancel_state);
    // But for the two that libc sends to each thread when one of them changes the process's user, and waits for.
    uint64_t all = ~(UINT64_C(3) << (__SIGRTMIN - 1));
    if (agent_settings.traps) // what libc calls for us may be entered by one
        all &= ~(UINT64_C(1) << (SIGTRAP - 1));
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &quiet->blocked, sizeof all);
    quiet->inside = agent_thread.inside;
    agent_thread.inside = UINTPTR_MAX;
}

void agent_quiet_end(const struct agent_quiet *quiet)
{
    agent_thread.inside = quiet->inside;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    os_restore_signals(quiet->blocked);
    pthread_setcancelstate(quiet->cancel_state, NULL);
    errno = quiet->saved_errno;
}

uint32_t agent_tid(void)
{
    if (agent_thread.tid == 0)
        agent_thread.tid = os_thread_id();
    return agent_thread.tid;
}

bool agent_is_on_here(void)
{
    uint32_t pid = atomic_load_explicit(&agent_recorded_pid, memory_order_relaxed);
    return pid != 0 && pid == (uint32_t)getpid();
}

bool agent_follows(void)
{
    return atomic_load_explicit(&agent_recorded_pid, memory_order_relaxed) != 0 && agent_settings.follow;
}

// ---- threads

void agent_ticks_begin(void)
{
    agent_tid();
    // What fails is counted there.
    if (agent_waits)
        sampling_ticks_after_fork();
    else
        qut_sampling_thread_begin();
}

void agent_ticks_end(void)
{
    qut_sampling_thread_end();
}

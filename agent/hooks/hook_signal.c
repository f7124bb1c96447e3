// SPDX-License-Identifier: Apache-2.0
// Masks: only the bit of our own signal is kept from the kernel. In a child of vfork, which has a mask of its own but
// our memory, nothing is remembered.
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/calls/calls.h"
#include "agent/hide.h"
#include "agent/inside.h"
#include "agent/real.h"
#include "libqut/host/host.h"

static int ours(void)
{
    return atomic_load_explicit(&agent_signal, memory_order_relaxed);
}

static uint64_t bit_of(int number)
{
    return UINT64_C(1) << (number - 1);
}

// ---- masks

uint64_t agent_hide_blocked(uint64_t blocked)
{
    int number = ours();
    if (number == 0)
        return blocked;
    agent_thread.hidden_mask = (blocked & bit_of(number)) != 0;
    return blocked & ~bit_of(number);
}

uint64_t agent_show_blocked(uint64_t blocked)
{
    if (calls_traps_are_in())
        return blocked;
    if (ours() != 0 && agent_thread.hidden_mask)
        blocked |= bit_of(ours());
    agent_thread.hidden_mask = 0;
    return blocked;
}

static bool next_hidden(int how, bool is_in_set, bool hidden)
{
    switch (how) {
    case SIG_BLOCK: return hidden || is_in_set;
    case SIG_UNBLOCK: return hidden && !is_in_set;
    default: return is_in_set;
    }
}

typedef int set_mask(int how, const sigset_t *set, sigset_t *before);

static int change_mask(set_mask *real, int how, const sigset_t *set, sigset_t *before)
{
    int number = ours();
    if (number == 0 || agent_is_quiet() || (how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK))
        return real(how, set, before);
    bool hidden = agent_thread.hidden_mask != 0, next = hidden;
    sigset_t without;
    if (set) {
        bool is_in_set = sigismember(set, number) == 1;
        next = next_hidden(how, is_in_set, hidden);
        if (is_in_set && how != SIG_UNBLOCK) {
            without = *set;
            sigdelset(&without, number);
            set = &without;
        }
    }
    // Before the change: a handler that runs at its end already sees it.
    if (next != hidden && agent_hide_is_on())
        agent_thread.hidden_mask = next;
    int result = real(how, set, before);
    if (hidden && !next)
        agent_hide_deliver();
    if (result == 0 && before && hidden)
        sigaddset(before, number);
    return result;
}

EXPORTED int sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
    return change_mask(agent_real()->sigprocmask, how, set, before);
}

EXPORTED int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    return change_mask(agent_real()->pthread_sigmask, how, set, before);
}

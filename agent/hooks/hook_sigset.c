// SPDX-License-Identifier: Apache-2.0
// The signal functions of System V and of BSD, by those of POSIX: libc's own would set past our hooks.
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "agent/hide.h"
#include "agent/inside.h"
#include "agent/real.h"

#define SIG_HOLD_ ((sighandler_t)2) // the header has it only for some standards

static sigset_t set_of(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    return set;
}

static int mask_one(int how, int number)
{
    sigset_t set = set_of(number);
    return sigprocmask(how, &set, NULL);
}

EXPORTED sighandler_t sigset(int number, sighandler_t handler)
{
    if (!agent_hides(number) || handler == SIG_ERR)
        return agent_real()->sigset(number, handler);
    struct sigaction action = {.sa_handler = handler}, before;
    sigset_t one = set_of(number), blocked;
    sigprocmask(SIG_BLOCK, &one, &blocked);
    sigaction(number, handler == SIG_HOLD_ ? NULL : &action, &before);
    if (handler != SIG_HOLD_)
        sigprocmask(SIG_UNBLOCK, &one, NULL);
    return sigismember(&blocked, number) == 1 ? SIG_HOLD_ : before.sa_handler;
}

EXPORTED int sighold(int number)
{
    return agent_hides(number) ? mask_one(SIG_BLOCK, number) : agent_real()->sighold(number);
}

EXPORTED int sigrelse(int number)
{
    return agent_hides(number) ? mask_one(SIG_UNBLOCK, number) : agent_real()->sigrelse(number);
}

EXPORTED int sigignore(int number)
{
    return agent_hides(number) ? sigaction(number, &(struct sigaction){.sa_handler = SIG_IGN}, NULL)
                               : agent_real()->sigignore(number);
}

// The same functions as signal, by other names.
sighandler_t bsd_signal(int number, sighandler_t handler);
EXPORTED sighandler_t bsd_signal(int number, sighandler_t handler)
{
    return signal(number, handler);
}

EXPORTED sighandler_t ssignal(int number, sighandler_t handler)
{
    return signal(number, handler);
}

// ---- masks of 32 bits

static int change_32(int how, int mask)
{
    sigset_t set, before;
    sigemptyset(&set);
    memcpy(&set, &mask, sizeof mask); // bit number - 1, in words that are at least as wide
    if (sigprocmask(how, &set, &before) != 0)
        return -1;
    memcpy(&mask, &before, sizeof mask);
    return mask;
}

int sigblock(int mask);
EXPORTED int sigblock(int mask)
{
    return change_32(SIG_BLOCK, mask);
}

int sigsetmask(int mask);
EXPORTED int sigsetmask(int mask)
{
    return change_32(SIG_SETMASK, mask);
}

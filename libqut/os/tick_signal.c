// SPDX-License-Identifier: Apache-2.0
#include "libqut/os/tick_signal.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "libqut/os/os.h"
#include "libqut/os/usage.h"

enum { QUEUED_FROM = 32 };  // the kernel's own SIGRTMIN
enum { TRAP_OF_EVENT = 6 }; // si_code: TRAP_PERF, which libc's headers need not have

bool os_tick_signal_is_free(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && !(action.sa_flags & SA_SIGINFO) &&
           (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
}

static bool is_usable(int number)
{
    static const int others[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS, SIGCHLD};
    bool usable = number > 0 && number < QUEUED_FROM;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        usable = usable && number != others[i];
    return usable;
}

int os_tick_signal_choose(int wanted)
{
    int numbers[] = {
#ifdef SIGSTKFLT
        SIGSTKFLT,
#endif
        SIGPROF, SIGVTALRM,
#ifdef SIGPWR
        SIGPWR,
#endif
    };
    struct sigaction action;
    if (sigaction(SIGPROF, NULL, &action) != 0)
        return os_failed(SYS_rt_sigaction); // else none would seem free
    if (wanted != 0)
        return !is_usable(wanted) ? -EINVAL : os_tick_signal_is_free(wanted) ? wanted : -EBUSY;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (os_tick_signal_is_free(numbers[i]))
            return numbers[i];
    return -EBUSY;
}

int os_tick_signal_take(int number, os_tick_fn *handler, struct sigaction *before)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    // No handler of the program's runs inside ours: none jumps out of it.
    sigfillset(&action.sa_mask);
    return sigaction(number, &action, before) == 0 ? 0 : os_failed(SYS_rt_sigaction);
}

void os_tick_signal_give_back(int number, const struct sigaction *before)
{
    struct sigaction ignore;
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN; // what is pending, in any thread, is thrown away by that
    sigaction(number, &ignore, NULL);
    if (before)
        sigaction(number, before, NULL);
}

void os_tick_signal_as_before(int number, const struct sigaction *before)
{
    if (before->sa_handler == SIG_IGN)
        return;
    sigaction(number, before, NULL);
    // It is blocked now, and comes when the handler returns.
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

// What the first of the waiting signals does that has a handler, and is neither `number` nor blocked. By the kernel's
// own words: libc's function may be hooked. False: there is none.
static bool find_waiting(int number, uint64_t blocked, uintptr_t *flags)
{
    enum { SIGNALS = 64, HANDLER = 0, FLAGS = 1, ACTION_WORDS = 8 };
    uint64_t waiting = 0;
    if (syscall(SYS_rt_sigpending, &waiting, sizeof waiting) != 0)
        return false;
    waiting &= ~blocked & ~((uint64_t)1 << (number - 1));
    for (int i = 1; i <= SIGNALS; i++) {
        uintptr_t action[ACTION_WORDS] = {0};
        if (!(waiting >> (i - 1) & 1) || syscall(SYS_rt_sigaction, i, NULL, action, sizeof waiting) != 0)
            continue;
        *flags = action[FLAGS];
        if (action[HANDLER] != (uintptr_t)SIG_DFL && action[HANDLER] != (uintptr_t)SIG_IGN)
            return true;
    }
    return false;
}

bool os_waiting_signal_ends_calls(int number, const void *ucontext)
{
    const ucontext_t *interrupted = ucontext;
    uint64_t blocked;
    uintptr_t flags;
    memcpy(&blocked, &interrupted->uc_sigmask, sizeof blocked);
    return find_waiting(number, blocked, &flags) && !(flags & SA_RESTART);
}

bool os_signal_waits(int number, const sigset_t *mask)
{
    int saved_errno = errno;
    uint64_t blocked;
    uintptr_t flags;
    memcpy(&blocked, mask, sizeof blocked);
    bool waits = find_waiting(number, blocked, &flags);
    errno = saved_errno;
    return waits;
}

enum os_tick_source os_tick_source(const siginfo_t *info, const void *cookie)
{
    if (info->si_code == SI_TIMER && info->si_value.sival_ptr == cookie)
        return OS_TICK_TIMER;
    // Only the kernel can say so: what processes send has codes that are not above 0.
    if (info->si_signo == SIGTRAP && info->si_code == TRAP_OF_EVENT)
        return (os_tick_mark(info) & ~1) == os_trap_mark(cookie, false) ? OS_TICK_EVENT : OS_TICK_STRAY;
    if (info->si_signo == SIGTRAP)
        return OS_TICK_STRAY; // breakpoints have codes of their own
    if (info->si_code >= POLL_IN && info->si_code <= POLL_HUP)
        return OS_TICK_EVENT;
    return OS_TICK_STRAY;
}

bool os_traps_wait(void)
{
    return os_kernel_is_from(5, 18);
}

int32_t os_trap_mark(const void *cookie, bool is_second)
{
    return (int32_t)((uintptr_t)cookie & 0x7ffffffe) | is_second;
}

int32_t os_tick_mark(const siginfo_t *info)
{
    if (info->si_signo != SIGTRAP)
        return info->si_fd;
    // si_perf_data, an unsigned long behind si_addr.
    unsigned long data;
    memcpy(&data, (const char *)info + offsetof(siginfo_t, si_addr) + sizeof(void *), sizeof data);
    return (int32_t)data;
}

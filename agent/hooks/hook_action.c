// SPDX-License-Identifier: Apache-2.0
// What is done when the signal of our ticks comes. The program's action for it is remembered, told when it asks, and
// carried out when the program sends the signal itself; the kernel has ours.
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "agent/calls/calls.h"
#include "agent/hide.h"
#include "agent/inside.h"
#include "agent/real.h"
#include "libqut/host/host.h"

enum { CANDIDATE_COUNT = 6 };
static int candidates[CANDIDATE_COUNT] = {SIGTRAP, SIGSTKFLT, SIGPROF, SIGVTALRM, SIGPWR, 0};
static struct sigaction before_us[CANDIDATE_COUNT];
static struct sigaction believed; // under believed_lock
static struct sigaction libquts;  // constant while agent_signal is not 0
static _Atomic uint32_t believed_lock;

// A signal that waits for the program to unblock it.
static _Thread_local struct {
    bool is_there;
    siginfo_t info;
} waiting __attribute__((tls_model("initial-exec")));

static int ours(void)
{
    return atomic_load_explicit(&agent_signal, memory_order_relaxed);
}

// With all signals blocked: a handler of this thread that wants the lock would wait for ever.
static uint64_t lock_believed(void)
{
    uint64_t blocked = os_block_signals();
    while (atomic_exchange_explicit(&believed_lock, 1, memory_order_acquire) != 0)
        sched_yield();
    return blocked;
}

static void unlock_believed(uint64_t blocked)
{
    atomic_store_explicit(&believed_lock, 0, memory_order_release);
    os_restore_signals(blocked);
}

// ---- when it comes

static uint64_t kernels_mask(const sigset_t *mask)
{
    uint64_t bits;
    memcpy(&bits, mask, sizeof bits);
    return bits;
}

static void call_handler(const struct sigaction *action, int number, siginfo_t *info, void *ucontext)
{
    const ucontext_t *interrupted = ucontext;
    uint64_t mask = kernels_mask(&action->sa_mask) | kernels_mask(&interrupted->uc_sigmask), before = 0;
    uint64_t hidden = agent_thread.hidden_mask;
    mask &= ~(UINT64_C(1) << (number - 1));
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &before, sizeof mask);
    if (!(action->sa_flags & SA_NODEFER))
        agent_thread.hidden_mask = 1;
    if (action->sa_flags & SA_SIGINFO)
        action->sa_sigaction(number, info, ucontext);
    else
        action->sa_handler(number);
    agent_thread.hidden_mask = hidden;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    if (!hidden)
        agent_hide_deliver();
}

static void end_by(int number)
{
    uint64_t bit = UINT64_C(1) << (number - 1);
    agent_real()->sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    syscall(SYS_tgkill, getpid(), (pid_t)os_thread_id(), number);
    syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, NULL, sizeof bit);
}

// By the program, or for it: its own timers may send that signal, too (ITIMER_PROF and SIGPROF).
static bool is_sent(const siginfo_t *info)
{
    return !sampling_is_tick(info);
}

// A trap of the program's own that it cannot get: the kernel would have ended it.
static bool ends_at_trap(const siginfo_t *info, const struct sigaction *action)
{
    enum { KERNELS_TRAP = 0x80 }; // SI_KERNEL
    return info->si_signo == SIGTRAP && info->si_code == KERNELS_TRAP &&
           (agent_thread.hidden_mask || action->sa_handler == SIG_IGN);
}

static void on_signal(int number, siginfo_t *info, void *ucontext)
{
    if (calls_traps_take(info, ucontext))
        return;
    if (!is_sent(info)) {
        libquts.sa_sigaction(number, info, ucontext);
        return;
    }
    int saved_errno = errno;
    uint64_t blocked = lock_believed();
    struct sigaction action = believed;
    if (ends_at_trap(info, &action)) {
        end_by(number);
    } else if (agent_thread.hidden_mask) {
        unlock_believed(blocked);
        waiting.info = *info;
        waiting.is_there = true;
        errno = saved_errno;
        return;
    }
    if (action.sa_flags & (int)SA_RESETHAND)
        believed.sa_handler = SIG_DFL;
    unlock_believed(blocked);
    errno = saved_errno;
    if (action.sa_handler == SIG_DFL)
        end_by(number);
    else if (action.sa_handler != SIG_IGN)
        call_handler(&action, number, info, ucontext);
    errno = saved_errno;
}

void agent_hide_deliver(void)
{
    if (!waiting.is_there)
        return;
    waiting.is_there = false;
    int saved_errno = errno;
    syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)os_thread_id(), ours(), &waiting.info);
    errno = saved_errno;
}

// ---- beginning and end

void agent_hide_actions_before(void)
{
    candidates[CANDIDATE_COUNT - 1] = agent_settings.signal_number;
    for (int i = 0; i < CANDIDATE_COUNT; i++)
        if (candidates[i] > 0)
            agent_real()->sigaction(candidates[i], NULL, &before_us[i]);
}

void agent_hide_action_again(void)
{
    int number = ours();
    struct sigaction now, mine;
    if (number == 0 || agent_real()->sigaction(number, NULL, &now) != 0 || now.sa_sigaction == on_signal)
        return;
    libquts = mine = now;
    mine.sa_sigaction = on_signal;
    agent_real()->sigaction(number, &mine, NULL);
}

void agent_hide_action(int number)
{
    memset(&believed, 0, sizeof believed);
    for (int i = 0; i < CANDIDATE_COUNT; i++)
        if (candidates[i] == number)
            believed = before_us[i];
    atomic_store_explicit(&agent_signal, number, memory_order_relaxed);
    agent_hide_action_again();
}

static void on_nothing(int number, siginfo_t *info, void *ucontext)
{
    (void)number;
    (void)info;
    (void)ucontext;
}

void agent_hide_begin_traps(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_nothing; // there are no ticks
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    if (agent_real()->sigaction(SIGTRAP, &action, NULL) == 0)
        agent_hide_action(SIGTRAP);
}

bool agent_hide_takes_traps(void)
{
    return ours() == SIGTRAP && agent_settings.traps;
}

bool agent_hide_is_on(void)
{
    return agent_is_on_here() || calls_traps_are_ours();
}

static void end_hiding(void)
{
    int number = ours();
    if (number == 0 || calls_traps_are_in())
        return;
    uint64_t blocked = lock_believed();
    agent_real()->sigaction(number, &believed, NULL);
    atomic_store_explicit(&agent_signal, 0, memory_order_relaxed);
    unlock_believed(blocked);
}

// Where ticks come by the signal of traps it stays ours: one that was raised may come later, and would end a process
// that does not handle it.
void agent_hide_ends(void)
{
    if (!agent_settings.traps || libquts.sa_sigaction == on_nothing)
        end_hiding();
}

// ---- fork

static uint64_t blocked_before_fork;

// A child has one thread: what another one held it would wait for, for ever.
void agent_hide_before_fork(void)
{
    uint64_t blocked = lock_believed();
    blocked_before_fork = blocked;
}

void agent_hide_after_fork(void)
{
    unlock_believed(blocked_before_fork);
}

// ---- masks of handlers
//
// Where a handler wants ours blocked while it runs, ticks would wait for its end, however long that is. So the kernel
// does not know of that wish. (A handler that looks at its own mask can find that out.)

static _Atomic uint64_t masking; // bit number - 1: the handler of that signal wished it

static int set_masking(int number, const struct sigaction *action, struct sigaction *before)
{
    uint64_t bit = UINT64_C(1) << (number - 1);
    struct sigaction without;
    bool wishes = action && sigismember(&action->sa_mask, ours()) == 1;
    bool wished = atomic_load_explicit(&masking, memory_order_relaxed) & bit, has_action = action != NULL;
    if (wishes) {
        without = *action;
        sigdelset(&without.sa_mask, ours());
        action = &without;
    }
    int result = agent_real()->sigaction(number, action, before);
    if (result != 0)
        return result;
    if (wishes)
        atomic_fetch_or_explicit(&masking, bit, memory_order_relaxed);
    else if (has_action)
        atomic_fetch_and_explicit(&masking, ~bit, memory_order_relaxed);
    if (before && wished)
        sigaddset(&before->sa_mask, ours());
    return 0;
}

// In a child that is not followed: all is the kernel's again.
static void give_masks_back(int number)
{
    uint64_t masks = atomic_exchange_explicit(&masking, 0, memory_order_relaxed);
    for (int i = 1; masks != 0; i++, masks >>= 1) {
        struct sigaction action;
        if (!(masks & 1) || agent_real()->sigaction(i, NULL, &action) != 0)
            continue;
        sigaddset(&action.sa_mask, number);
        agent_real()->sigaction(i, &action, NULL);
    }
}

void agent_hide_ends_in_child(void)
{
    if (ours() != 0 && !calls_traps_are_in())
        give_masks_back(ours());
    end_hiding();
}

// ---- hooks

bool agent_hides(int number)
{
    return number != 0 && number == ours() && !agent_is_quiet() && (agent_hide_is_on() || calls_traps_are_in());
}

// A child of vfork may meet traps: ours stays its handler, until exec, which takes handlers away.
static void exchange_action(const struct sigaction *action, struct sigaction *before)
{
    struct sigaction next, last;
    if (action)
        next = *action; // outside of the lock: a bad pointer kills here as it does in libc
    uint64_t blocked = lock_believed();
    last = believed;
    if (action && agent_hide_is_on())
        believed = next;
    unlock_believed(blocked);
    if (before)
        *before = last;
}

EXPORTED int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict before)
{
    if (agent_hides(number)) {
        exchange_action(action, before);
        return 0;
    }
    if (ours() == 0 || number == ours() || number < 1 || number >= NSIG || agent_is_quiet() || !agent_hide_is_on())
        return agent_real()->sigaction(number, action, before);
    return set_masking(number, action, before);
}

static sighandler_t exchange_handler(int number, sighandler_t handler, unsigned flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = (int)flags}, before;
    sigemptyset(&action.sa_mask);
    if (flags & SA_RESTART)
        sigaddset(&action.sa_mask, number);
    exchange_action(&action, &before);
    return before.sa_handler;
}

EXPORTED sighandler_t signal(int number, sighandler_t handler)
{
    if (!agent_hides(number) || handler == SIG_ERR)
        return agent_real()->signal(number, handler);
    return exchange_handler(number, handler, SA_RESTART);
}

EXPORTED sighandler_t sysv_signal(int number, sighandler_t handler)
{
    if (!agent_hides(number) || handler == SIG_ERR)
        return agent_real()->sysv_signal(number, handler);
    return exchange_handler(number, handler, SA_RESETHAND | SA_NODEFER);
}

// ---- exec

// Where the thread really blocks the signal (it may be in a handler that blocks all), a tick can be pending.
void agent_hide_drain(void)
{
    int number = ours();
    const struct {
        long seconds, nanoseconds;
    } at_once = {0, 0};
    siginfo_t info, sent = {.si_signo = 0};
    if (number == 0)
        return;
    uint64_t bit = UINT64_C(1) << (number - 1);
    while (syscall(SYS_rt_sigtimedwait, &bit, &info, &at_once, sizeof bit) == number)
        if (is_sent(&info))
            sent = info;
    if (sent.si_signo)
        syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)os_thread_id(), number, &sent);
}

void agent_hide_before_exec(void)
{
    int number = ours();
    if (number == 0)
        return;
    if (agent_thread.hidden_mask) {
        uint64_t bit = UINT64_C(1) << (number - 1);
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, &bit, NULL, sizeof bit);
    }
    // What is ignored stays ignored in the new program. Ticks of other threads are ignored until those end with us.
    uint64_t blocked = lock_believed();
    bool is_ignored = believed.sa_handler == SIG_IGN;
    unlock_believed(blocked);
    if (is_ignored && !calls_traps_are_in()) // other threads may meet one
        agent_real()->sigaction(number, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
}

void agent_hide_after_exec(void)
{
    int number = ours();
    if (number == 0)
        return;
    struct sigaction mine = libquts;
    mine.sa_sigaction = on_signal;
    agent_real()->sigaction(number, &mine, NULL);
    uint64_t bit = UINT64_C(1) << (number - 1);
    syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, NULL, sizeof bit);
}

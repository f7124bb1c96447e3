// SPDX-License-Identifier: Apache-2.0
// Which system calls a walk makes: a filter in a child ends it at any other.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <qut/trace.h>

#include "tests/support/discipline.h"
#include "tests/support/tap.h"

enum { ALLOWED_MAX = 16, EXIT_REFUSED = 99, EXIT_NO_FILTER = 77, EXIT_SHORT = 3, EXIT_ERRNO = 4 };

// On stacks that are known to be there, nothing at all; elsewhere the two that read, and one that asks for the stack.
static const int reading_calls[] = {SYS_process_vm_readv, SYS_gettid, SYS_sigaltstack};
static const int waking_calls[] = {SYS_process_vm_readv, SYS_gettid, SYS_sigaltstack, SYS_futex};

static bool install_filter(const int *allowed, size_t count)
{
    struct sock_filter code[ALLOWED_MAX + 4];
    size_t at = 0;
    code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0); // seccomp_data.nr
    for (size_t i = 0; i < count; i++)
        code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i],
                                                  (unsigned char)(count + 1 - i), 0);
    // What the test itself needs to tell the outcome.
    code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = (unsigned short)at, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int *refused_call; // shared with the parent

static void on_refused(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    *refused_call = info->si_syscall;
    _exit(EXIT_REFUSED);
}

static const int *handler_allowed;
static size_t handler_allowed_count, handler_frames_least;
static bool handler_stores;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    uintptr_t pcs[64];
    struct qut_end end;
    bool kept;
    if (!install_filter(handler_allowed, handler_allowed_count))
        _exit(EXIT_NO_FILTER);
    if (handler_stores) {
        bool is_short = discipline_store(context, &kept) != 0;
        _exit(!kept ? EXIT_ERRNO : is_short ? EXIT_SHORT : 0);
    }
    size_t count = discipline_walk_every_way(context, pcs, 64, &end, &kept);
    _exit(!kept ? EXIT_ERRNO : count < handler_frames_least ? EXIT_SHORT : 0);
}

struct situation {
    bool registered, alternate, elsewhere;
    bool stores; // hits, instead of walks
};

static void coroutine(void)
{
    raise(SIGUSR1);
}

static void raise_elsewhere(void)
{
    static ucontext_t inside, outside;
    static char stack[64 << 10];
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    inside.uc_link = &outside;
    makecontext(&inside, coroutine, 0);
    swapcontext(&outside, &inside);
}

static int in_child(const struct situation *situation)
{
    static char alternate[64 << 10];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    if (situation->alternate && sigaltstack(&stack, NULL) != 0)
        return 1;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction refused = {.sa_sigaction = on_refused, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGSYS, &refused, NULL);
    if (!situation->registered)
        qut_thread_unregister();
    handler_stores = situation->stores;
    // Registered: it has its slot.
    if (situation->stores && situation->registered)
        qut_trace_skip();
    if (situation->elsewhere)
        raise_elsewhere();
    else
        raise(SIGUSR1);
    return 1;
}

static void walk_under_filter(struct situation situation, const int *allowed, size_t count)
{
    handler_allowed = allowed;
    handler_allowed_count = count;
    handler_frames_least = discipline_has_compiler() ? 3 : 1;
    refused_call = mmap(NULL, sizeof *refused_call, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(in_child(&situation));
    int status = 0;
    waitpid(child, &status, 0);
    int call = *refused_call;
    munmap(refused_call, sizeof *refused_call);
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_FILTER)
        SKIP("no seccomp filters here");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x, system call %d", (unsigned)status, call);
}

TEST(registered_no_system_call_on_its_own_stack)
{
    // The one frame that a walk without tables sees is looked at for a signal trampoline: its code is read with care.
    if (!discipline_has_compiler())
        SKIP("no QUT_TEST_QUTC: no tables");
    walk_under_filter((struct situation){.registered = true}, NULL, 0);
}

// The stack that was interrupted may have grown since a walk last saw it: then its pages are probed.
TEST(registered_on_an_alternate_stack)
{
    walk_under_filter((struct situation){.registered = true, .alternate = true}, reading_calls, 2);
}

TEST(unregistered)
{
    walk_under_filter((struct situation){.registered = false}, reading_calls, 3);
}

TEST(unregistered_on_an_alternate_stack)
{
    walk_under_filter((struct situation){.alternate = true}, reading_calls, 3);
}

TEST(registered_in_a_coroutine)
{
    walk_under_filter((struct situation){.registered = true, .elsewhere = true}, reading_calls, 3);
}

TEST(unregistered_in_a_coroutine)
{
    walk_under_filter((struct situation){.elsewhere = true, .alternate = true}, waking_calls, 4);
}

// The clock is libc's, which asks the kernel only where that gives no page of code for it.
TEST(hits_of_a_registered_thread)
{
    static const int calls[] = {SYS_clock_gettime};
    if (!discipline_has_compiler())
        SKIP("no QUT_TEST_QUTC: no tables");
    walk_under_filter((struct situation){.registered = true, .stores = true}, calls, 1);
}

// The first one asks for its thread's number, and takes its slot with no handler in between; walks read as they do.
TEST(hits_of_another_thread)
{
    static const int calls[] = {SYS_process_vm_readv, SYS_gettid, SYS_sigaltstack, SYS_clock_gettime,
                                SYS_rt_sigprocmask};
    walk_under_filter((struct situation){.stores = true}, calls, 5);
}

int main(void)
{
    struct qut_trace_options options = {
        .size = sizeof options, .segment_bytes = 1 << 20, .flags = QUT_TRACE_FOLLOW_FORK};
    if (!discipline_start() || qut_trace_open(&options) != 0)
        return 1;
    RUN(registered_no_system_call_on_its_own_stack);
    RUN(registered_on_an_alternate_stack);
    RUN(unregistered);
    RUN(unregistered_on_an_alternate_stack);
    RUN(registered_in_a_coroutine);
    RUN(unregistered_in_a_coroutine);
    RUN(hits_of_a_registered_thread);
    RUN(hits_of_another_thread);
    return tap_finish();
}

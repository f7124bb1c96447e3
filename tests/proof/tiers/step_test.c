// SPDX-License-Identifier: Apache-2.0
// Walks, executed one instruction at a time (ptrace). At each instruction a handler comes, and walks as well, by the
// same memory of the thread's where it is free again. All walks must be what they are when no handler interrupts them.
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libqut/arch/native.h"
#include "libqut/runtime/tiers.h"
#include "tests/proof/tiers/play.h"
#include "tests/support/tap.h"

enum { FRAMES_MAX = 64, FEW_FRAMES = 5, DEPTH = 12, STEPS_MAX = 1000000, RETURN_STOPS_MAX = 4 };
enum { NO_COMPILER = 77, CANNOT_TRACE = 78 };

struct way {
    uint32_t tiers;
    bool in_handler; // a signal frame beneath: the slow way leaves it, and the fast ones go on
    bool by_context; // that handler's
    size_t max;
};

// What parent and child both see.
static struct {
    volatile bool inside; // a walk that is stepped
    volatile uint32_t interruptions;
    volatile uint32_t wrong, wrong_in_handlers; // walks
    volatile size_t count, right_count;         // of the last wrong one
} * shared;

// ---- child

struct result {
    size_t count;
    struct qut_end end;
    uintptr_t pcs[FRAMES_MAX];
};
enum { WHOLE, ALONE, ALONE_AGAIN, STEPPED, RESULT_COUNT };
static struct result results[RESULT_COUNT];
static const struct way *child_way;

__attribute__((noinline)) static void walk(struct result *result, const void *ucontext, size_t max)
{
    result->count = ucontext ? qut_backtrace_context(ucontext, result->pcs, max, &result->end)
                             : qut_backtrace(result->pcs, max, &result->end);
    __asm__ volatile("" ::: "memory"); // no tail call
}

static bool is_same(const struct result *a, const struct result *b)
{
    return a->count == b->count && a->end.reason == b->end.reason && a->end.pc == b->end.pc &&
           memcmp(a->pcs, b->pcs, a->count * sizeof *a->pcs) == 0;
}

// But for what runs in the walk that was interrupted, and its caller, which it may not have been called from yet.
static bool is_above(const struct result *result)
{
    const struct result *whole = &results[WHOLE];
    size_t common = whole->count - 2;
    return result->end.reason == whole->end.reason && result->count > common &&
           memcmp(result->pcs + result->count - common, whole->pcs + 2, common * sizeof *result->pcs) == 0;
}

static void on_interruption(int number, siginfo_t *info, void *ucontext)
{
    (void)number, (void)info;
    static struct result from_context, from_here;
    walk(&from_context, ucontext, FRAMES_MAX);
    walk(&from_here, NULL, FRAMES_MAX);
    if (!is_above(&from_context) || !is_above(&from_here))
        shared->wrong_in_handlers++;
    shared->interruptions++;
    kill(getpid(), SIGTRAP);
}

// The parent steps from one stop to the next.
__attribute__((noinline)) static void stop(bool stops, bool inside)
{
    if (stops && inside)
        kill(getpid(), SIGSTOP);
    shared->inside = stops && inside;
    if (stops && !inside)
        kill(getpid(), SIGSTOP);
}

static void walk_again_and_again(const void *ucontext)
{
    volatile unsigned result_count = RESULT_COUNT; // unknown to the compiler: all are called from one place
    for (unsigned i = 0; i < result_count; i++) {
        stop(i == STEPPED, true);
        walk(&results[i], ucontext, i == WHOLE ? FRAMES_MAX : child_way->max);
        stop(i == STEPPED, false);
    }
    if (!is_same(&results[STEPPED], &results[ALONE]) || !is_same(&results[ALONE_AGAIN], &results[ALONE])) {
        shared->count = results[STEPPED].count;
        shared->right_count = results[ALONE].count;
        shared->wrong++;
    }
}

static void on_signal(int number, siginfo_t *info, void *ucontext)
{
    (void)number, (void)info;
    walk_again_and_again(child_way->by_context ? ucontext : NULL);
}

__attribute__((noinline)) static void descend(unsigned depth)
{
    if (depth)
        descend(depth - 1);
    else if (child_way->in_handler)
        kill(getpid(), SIGUSR1);
    else
        walk_again_and_again(NULL);
    __asm__ volatile("" ::: "memory");
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(number, &action, NULL);
}

static _Noreturn void child(const struct way *ways, size_t way_count)
{
    if (!play_start())
        _exit(NO_COMPILER);
    qut_thread_register();
    handle(SIGUSR1, on_signal);
    handle(SIGUSR2, on_interruption);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(CANNOT_TRACE);
    for (size_t i = 0; i < way_count; i++) {
        child_way = &ways[i];
        atomic_store(&runtime_tiers, child_way->tiers);
        descend(DEPTH);
    }
    _exit(0);
}

// ---- parent

struct place {
    uint64_t pc, sp;
};

static bool read_place(pid_t pid, struct place *place)
{
    const struct arch *native = &arch_native_arch;
    uint8_t block[512];
    struct iovec vec = {block, sizeof block};
    struct arch_frame_regs regs;
    if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &vec) != 0 ||
        vec.iov_len != native->core_registers->size_bytes)
        return false;
    arch_registers_from_block(native->core_registers, block, &regs);
    *place = (struct place){regs.pc, regs.reg[native->sp_reg]};
    return true;
}

// Returns the signal that the child stops by; 0: it does not.
static int go_on(pid_t pid, enum __ptrace_request how, int signal_number)
{
    int status;
    if (ptrace(how, pid, NULL, (void *)(intptr_t)signal_number) != 0 || waitpid(pid, &status, 0) != pid ||
        !WIFSTOPPED(status))
        return 0;
    return WSTOPSIG(status);
}

// A handler runs, and returns to where the child stands.
static bool interrupt(pid_t pid)
{
    enum { SYSTEM_CALL = SIGTRAP | 0x80 };
    struct place before, now;
    if (!read_place(pid, &before) || go_on(pid, PTRACE_CONT, SIGUSR2) != SIGTRAP)
        return false;
    for (unsigned i = 0; i < RETURN_STOPS_MAX; i++) {
        if (go_on(pid, PTRACE_SYSCALL, 0) != SYSTEM_CALL || !read_place(pid, &now))
            return false;
        if (now.pc == before.pc && now.sp == before.sp)
            return true;
    }
    return false;
}

// From one stop to the next. Returns the number of instructions; 0: it did not go as it should.
static uint32_t step_through(pid_t pid)
{
    for (uint32_t steps = 1; steps < STEPS_MAX; steps++) {
        if (shared->inside && !interrupt(pid))
            return 0;
        int stopped_by = go_on(pid, PTRACE_SINGLESTEP, 0);
        if (stopped_by == SIGSTOP)
            return steps;
        if (stopped_by != SIGTRAP)
            return 0;
    }
    return 0;
}

static const struct way ways[] = {
    {0, false, false, FEW_FRAMES},
    {RUNTIME_TIER_LINKED, false, false, FRAMES_MAX},
    {RUNTIME_TIERS_ALL | RUNTIME_TIER_STUBBORN, false, false, FRAMES_MAX},
    {RUNTIME_TIERS_ALL | RUNTIME_TIER_STUBBORN, false, false, FEW_FRAMES},
    {RUNTIME_TIER_LINKED, true, false, FRAMES_MAX},
    {RUNTIME_TIER_LINKED, true, false, FEW_FRAMES},
    {RUNTIME_TIERS_ALL | RUNTIME_TIER_STUBBORN, true, false, FRAMES_MAX},
    {RUNTIME_TIERS_ALL | RUNTIME_TIER_STUBBORN, true, true, FRAMES_MAX},
};

TEST(a_walk_at_each_instruction_of_a_walk)
{
    errno = 0;
    ptrace(PTRACE_PEEKDATA, 0, NULL, NULL);
    if (errno == ENOSYS)
        SKIP("ptrace: qemu-user has none");
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        child(ways, sizeof ways / sizeof *ways);
    int status = 0;
    size_t stepped_count = 0;
    while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
        if (WSTOPSIG(status) != SIGSTOP) {
            ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)WSTOPSIG(status));
            continue;
        }
        ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
        errno = 0;
        uint32_t before = shared->interruptions, steps = step_through(pid);
        if (steps == 0 && errno == EIO && stepped_count == 0) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            SKIP("ptrace: this machine takes no single steps");
        }
        uint32_t interruptions = shared->interruptions - before;
        printf("# way %zu: %u instructions, %u of them interrupted\n", stepped_count++, steps, interruptions);
        if (!CHECK(steps > 0 && interruptions > steps / 2, "stepping does not work: %s", strerror(errno)))
            kill(pid, SIGKILL);
        ptrace(PTRACE_CONT, pid, NULL, NULL);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_TRACE)
        SKIP("ptrace: not permitted");
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_COMPILER)
        SKIP("no compiler");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0 && stepped_count == sizeof ways / sizeof *ways,
          "status %x, %zu walks stepped", status, stepped_count);
    CHECK(shared->wrong == 0, "%u walks wrong; the last: %zu frames, not %zu", shared->wrong, shared->count,
          shared->right_count);
    CHECK(shared->wrong_in_handlers == 0, "%u of %u handlers", shared->wrong_in_handlers, shared->interruptions);
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    RUN(a_walk_at_each_instruction_of_a_walk);
    return tap_finish();
}

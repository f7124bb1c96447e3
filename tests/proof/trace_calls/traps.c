// SPDX-License-Identifier: Apache-2.0
// Functions with room for a single byte, which are traced by traps, in a program that does with SIGTRAP and with masks
// what programs do. usage: TRAPS CASE [ROUNDS]
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/proof/trace_calls/account.h"

// Loops lead to the second byte.
uint64_t traced_trap_leaf(uint64_t a, uint64_t b);
uint64_t traced_trap_outer(uint64_t times, uint64_t (*each)(uint64_t));
__asm__(".text\n"
        ".globl traced_trap_leaf\n"
        ".type traced_trap_leaf, @function\n"
        "traced_trap_leaf:\n"
        "  .cfi_startproc\n"
        "  push %rax\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "1: add $3, %rdi\n"
        "  cmp $100, %rdi\n"
        "  jl 1b\n"
        "  lea (%rdi,%rsi), %rax\n"
        "  pop %rcx\n"
        "  .cfi_adjust_cfa_offset -8\n"
        "  ret\n"
        "  .cfi_endproc\n"
        "  .size traced_trap_leaf, . - traced_trap_leaf\n"
        ".globl traced_trap_outer\n"
        ".type traced_trap_outer, @function\n"
        "traced_trap_outer:\n"
        "  .cfi_startproc\n"
        "  push %rbx\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "  .cfi_offset %rbx, -16\n"
        "2: push %rsi\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "  push %rdi\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "  call *%rsi\n"
        "  pop %rdi\n"
        "  .cfi_adjust_cfa_offset -8\n"
        "  pop %rsi\n"
        "  .cfi_adjust_cfa_offset -8\n"
        "  dec %rdi\n"
        "  jnz 2b\n"
        "  pop %rbx\n"
        "  .cfi_adjust_cfa_offset -8\n"
        "  .cfi_restore %rbx\n"
        "  ret\n"
        "  .cfi_endproc\n"
        "  .size traced_trap_outer, . - traced_trap_outer\n");

static struct account account_trap_leaf = {.name = "traced_trap_leaf"};
static struct account account_trap_outer = {.name = "traced_trap_outer"};
static struct account account_plain = {.name = "traced_plain"};
static const struct account *const accounts[] = {&account_trap_leaf, &account_trap_outer, &account_plain, NULL};

enum { LEAF_RESULT = 100 + 7, PUSH_RAX = 0x50 }; // of 1, 7

static uint64_t leaf(void)
{
    ENTER(trap_leaf);
    uint64_t result = traced_trap_leaf(1, 7);
    LEAVE(trap_leaf);
    return result != LEAF_RESULT;
}

// A jump is what the trap's neighbours have.
static TRACED uint64_t traced_plain(uint64_t x)
{
    ENTER(plain);
    uint64_t wrong = leaf() + (x == 0);
    LEAVE(plain);
    return wrong;
}

static uint64_t outer(uint64_t times)
{
    ENTER(trap_outer);
    uint64_t result = traced_trap_outer(times, traced_plain);
    LEAVE(trap_outer);
    return result; // of the last
}

static uint64_t calls(unsigned rounds)
{
    uint64_t wrong = 0;
    for (unsigned i = 0; i < rounds; i++)
        wrong += leaf() + outer(1 + i % 5);
    return wrong;
}

// ---- longjmp out of one

static jmp_buf target;
static uint64_t leave_all(uint64_t x)
{
    longjmp(target, (int)x);
}

static uint64_t jumps(unsigned rounds)
{
    volatile uint64_t wrong = 0;
    for (volatile unsigned i = 0; i < rounds; i++) {
        if (setjmp(target) == 0) {
            ENTER(trap_outer);
            UNWOUND(trap_outer);
            traced_trap_outer(3, leave_all);
        }
        wrong += leaf();
    }
    return wrong;
}

// ---- threads, and handlers at any instruction, also those of the handler of traps

static uint64_t sum_wrong;
static volatile sig_atomic_t seen;
static void on_alarm(int number)
{
    (void)number;
    __atomic_fetch_add(&sum_wrong, leaf(), __ATOMIC_RELAXED);
    seen = seen + 1;
}

static void *thread(void *argument)
{
    __atomic_fetch_add(&sum_wrong, calls(*(unsigned *)argument), __ATOMIC_RELAXED);
    return NULL;
}

static uint64_t threads(unsigned rounds)
{
    enum { COUNT = 4 };
    pthread_t ids[COUNT];
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    const struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    sigfillset(&action.sa_mask); // SIGTRAP is among them
    sum_wrong += leaf();
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (unsigned i = 0; i < COUNT; i++)
        if (pthread_create(&ids[i], NULL, thread, &rounds) != 0)
            abort();
    while (seen < (sig_atomic_t)rounds)
        sum_wrong += leaf();
    for (unsigned i = 0; i < COUNT; i++)
        pthread_join(ids[i], NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    return sum_wrong;
}

// ---- SIGTRAP is the program's own as ever

static volatile sig_atomic_t traps_seen, code_seen;
static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    code_seen = info->si_code;
    sum_wrong += leaf();
    traps_seen = traps_seen + 1;
}

static bool mask_has_trap(void)
{
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    return sigismember(&now, SIGTRAP) == 1;
}

static void on_user(int number)
{
    (void)number;
    sum_wrong += leaf();
}

static uint64_t masks(unsigned rounds)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO}, before, again;
    sigset_t all, none, was, only;
    uint64_t wrong = 0;
    sigfillset(&all);
    sigemptyset(&none);
    sigaction(SIGTRAP, NULL, &before);
    wrong += before.sa_handler != SIG_DFL;
    // Blocked: traps go on, a signal that is sent waits.
    pthread_sigmask(SIG_BLOCK, &all, &was);
    wrong += !mask_has_trap();
    wrong += sigismember(&was, SIGTRAP) == 1;
    wrong += calls(rounds);
    sigaction(SIGTRAP, &action, NULL);
    sigaction(SIGTRAP, NULL, &again);
    wrong += again.sa_sigaction != on_trap || !(again.sa_flags & SA_SIGINFO);
    raise(SIGTRAP);
    wrong += traps_seen != 0;
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    wrong += traps_seen != 1 || mask_has_trap();
    wrong += calls(rounds);
    // Its own trap is its own.
    __asm__ volatile("int3");
    wrong += traps_seen != 2 || code_seen != 0x80;
    signal(SIGTRAP, SIG_IGN);
    raise(SIGTRAP);
    wrong += traps_seen != 2;
    wrong += calls(rounds);
    signal(SIGTRAP, SIG_DFL);
    wrong += calls(rounds);
    // Handlers that run under the masks of calls.
    struct sigaction user = {.sa_handler = on_user};
    sigfillset(&user.sa_mask);
    sigaction(SIGUSR1, &user, NULL);
    only = all;
    sigdelset(&only, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &all, &was);
    raise(SIGUSR1);
    sigsuspend(&only);
    raise(SIGUSR1);
    const struct timespec second = {1, 0};
    pselect(0, NULL, NULL, NULL, &second, &only);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    return wrong + sum_wrong;
}

// ---- children: none of this process's account

static uint64_t children(unsigned rounds)
{
    volatile uint64_t wrong = 0; // a child of vfork is to leave it alone
    for (volatile unsigned i = 0; i < rounds; i++) {
        int status = 1;
        pid_t pid = fork();
        if (pid == 0) {
            signal(SIGTRAP, i % 2 ? SIG_DFL : SIG_IGN);
            _exit(traced_trap_leaf(1, 7) != LEAF_RESULT);
        }
        wrong += waitpid(pid, &status, 0) != pid || status != 0;
        // Its memory is ours, and so is its account.
        pid = vfork();
        if (pid == 0) {
            signal(SIGTRAP, SIG_DFL);
            ENTER(trap_leaf);
            bool is_wrong = traced_trap_leaf(1, 7) != LEAF_RESULT;
            LEAVE(trap_leaf);
            if (is_wrong)
                _exit(1);
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        wrong += waitpid(pid, &status, 0) != pid || status != 0;
        wrong += leaf();
    }
    return wrong;
}

// ---- tracing ends while threads are in traps; the byte is then the function's own

static _Atomic bool is_over;
static void *busy(void *unused)
{
    (void)unused;
    uint64_t wrong = 0;
    while (!is_over)
        wrong += traced_trap_leaf(1, 7) != LEAF_RESULT;
    __atomic_fetch_add(&sum_wrong, wrong, __ATOMIC_RELAXED);
    return NULL;
}

static uint8_t first_byte(void)
{
    return *(const volatile uint8_t *)(uintptr_t)traced_trap_leaf;
}

static uint64_t ends(unsigned rounds)
{
    enum { COUNT = 4, PATIENCE_S = 30 };
    pthread_t ids[COUNT];
    (void)rounds;
    for (unsigned i = 0; i < COUNT; i++)
        if (pthread_create(&ids[i], NULL, busy, NULL) != 0)
            abort();
    for (unsigned i = 0; i < PATIENCE_S * 100 && first_byte() != PUSH_RAX; i++)
        usleep(10000);
    usleep(50000);
    is_over = true;
    for (unsigned i = 0; i < COUNT; i++)
        pthread_join(ids[i], NULL);
    return sum_wrong + (first_byte() != PUSH_RAX);
}

// ---- until it is thinned

// The thunk of the leaf, which the table of traps behind the thunks has; NULL: it is not traced.
static const volatile uint8_t *find_thunk(void)
{
    char line[512];
    uint64_t thunk = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !thunk && fgets(line, sizeof line, maps)) {
        unsigned long long begin, end, inode;
        char access[5], path[2];
        if (sscanf(line, "%llx-%llx %4s %*s %*s %llu %1s", &begin, &end, access, &inode, path) != 4 || inode != 0 ||
            strcmp(access, "r-xp") != 0)
            continue;
        const uint64_t *words = (const uint64_t *)(uintptr_t)begin;
        for (size_t i = 0; i + 1 < (end - begin) / sizeof *words && !thunk; i++)
            if (words[i] == (uintptr_t)traced_trap_leaf && words[i + 1] > begin && words[i + 1] < end)
                thunk = words[i + 1];
    }
    if (maps)
        fclose(maps);
    return (const volatile uint8_t *)(uintptr_t)thunk;
}

static uint64_t often(unsigned rounds)
{
    enum { JUMP = 0xe9, PATIENCE_S = 60, AT_ONCE = 64, MORE = 50 };
    const volatile uint8_t *thunk = find_thunk();
    struct timespec begin, now;
    uint64_t wrong = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        for (unsigned i = 0; i < AT_ONCE; i++)
            wrong += leaf();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (thunk && *thunk != JUMP && now.tv_sec < begin.tv_sec + PATIENCE_S);
    for (unsigned i = 0; i < MORE * rounds; i++)
        wrong += leaf();
    return wrong + (thunk && *thunk != JUMP);
}

// ---- a trap that nobody handles

static uint64_t dies(unsigned rounds)
{
    uint64_t wrong = calls(rounds);
    __asm__ volatile("int3");
    return wrong;
}

// ---- what one costs, beside a bare signal of an instruction that is none: ns, the least of many rounds

static void on_illegal(int number, siginfo_t *info, void *context)
{
    enum { UD2_BYTES = 2 };
    (void)number;
    (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += UD2_BYTES;
}

static void call_leaf(void)
{
    traced_trap_leaf(100, 7);
}

static void call_illegal(void)
{
    __asm__ volatile("ud2");
}

static double least_ns(void (*what)(void), unsigned rounds)
{
    enum { TIMES = 200 };
    double least = 1e9;
    for (unsigned i = 0; i < rounds; i++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (unsigned k = 0; k < TIMES; k++)
            what();
        clock_gettime(CLOCK_MONOTONIC, &end);
        const double ns = ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / TIMES;
        least = ns < least ? ns : least;
    }
    return least;
}

static uint64_t costs(unsigned rounds)
{
    const struct sigaction action = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    const double call = least_ns(call_leaf, rounds), bare = least_ns(call_illegal, rounds);
    printf("a call %.0f ns, a bare signal %.0f ns: %.2f\n", call, bare, call / bare);
    return 0;
}

static const struct which {
    const char *name;
    uint64_t (*run)(unsigned rounds);
} cases[] = {{"calls", calls}, {"jumps", jumps}, {"threads", threads}, {"masks", masks}, {"children", children},
             {"ends", ends},   {"dies", dies},   {"costs", costs},     {"often", often}};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "calls";
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 100;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, name) != 0)
            continue;
        uint64_t wrong = cases[i].run(rounds);
        account_write(name, accounts, wrong);
        return wrong != 0;
    }
    return 2;
}

// SPDX-License-Identifier: Apache-2.0
// Calls of every kind that C has. usage: SUBJECT CASE [ROUNDS [PLUGIN]]
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/proof/trace_calls/account.h"

#define FUNCTIONS(X)                                                                                                   \
    X(leaf)                                                                                                            \
    X(many)                                                                                                            \
    X(fib)                                                                                                             \
    X(even)                                                                                                            \
    X(odd)                                                                                                             \
    X(tail_first)                                                                                                      \
    X(tail_second)                                                                                                     \
    X(jump_outer)                                                                                                      \
    X(jump_inner) X(thread) X(deep) X(leaves) X(co_body) X(co_step) X(handler) X(handled) X(child) X(forks) X(vector)  \
        X(main_part) X(again)
#define DEFINE(function) static struct account account_##function = {.name = "traced_" #function};
FUNCTIONS(DEFINE)
#define POINT(function) &account_##function,
static const struct account *const accounts[] = {FUNCTIONS(POINT) NULL};

static volatile uint64_t sink;
static volatile bool always = true; // the compiler is not to see that a recursion never returns

static TRACED uint64_t traced_leaf(uint64_t x)
{
    ENTER(leaf);
    uint64_t result = x * 3 + 1;
    LEAVE(leaf);
    return result;
}

static TRACED uint64_t traced_many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
                                   double h, uint64_t i)
{
    ENTER(many);
    uint64_t result = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + (uint64_t)(8 * h) + 9 * i + traced_leaf(a);
    LEAVE(many);
    return result;
}

typedef double four __attribute__((vector_size(16)));
static TRACED four traced_vector(four a, four b, double c)
{
    ENTER(vector);
    four result = a * b + (four){c, -c};
    LEAVE(vector);
    return result;
}

static TRACED uint64_t traced_fib(uint64_t n)
{
    ENTER(fib);
    uint64_t result = n < 2 ? n : traced_fib(n - 1) + traced_fib(n - 2);
    LEAVE(fib);
    return result;
}

// ---- tail calls

static TRACED uint64_t traced_odd(uint64_t n, uint64_t sum);
static TRACED uint64_t traced_even(uint64_t n, uint64_t sum)
{
    ENTER(even);
    if (n == 0) {
        LEAVE(even);
        return sum;
    }
    TAIL(even);
    return traced_odd(n - 1, sum + n);
}
static TRACED uint64_t traced_odd(uint64_t n, uint64_t sum)
{
    ENTER(odd);
    if (n == 0) {
        LEAVE(odd);
        return sum + 1;
    }
    TAIL(odd);
    return traced_even(n - 1, sum + 2 * n);
}
static TRACED uint64_t traced_tail_second(uint64_t n)
{
    ENTER(tail_second);
    TAIL(tail_second);
    return traced_leaf(n);
}
static TRACED uint64_t traced_tail_first(uint64_t n)
{
    ENTER(tail_first);
    TAIL(tail_first);
    return traced_tail_second(n + 1);
}

static uint64_t calls(unsigned rounds)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < rounds; i++) {
        four v = traced_vector((four){i, 2}, (four){3, 4}, i);
        result += traced_many(i, 2, 3, 4, 5, 6, 7, 8.5, 9) + traced_fib(i % 12) + (uint64_t)(v[0] + v[1] + 1e6);
    }
    return result;
}

static uint64_t tails(unsigned rounds)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < rounds; i++)
        result += traced_even(i % 9, 0) + traced_tail_first(i);
    return result;
}

// ---- longjmp

static _Thread_local jmp_buf target;
static TRACED uint64_t traced_jump_inner(unsigned depth)
{
    ENTER(jump_inner);
    if (depth == 0) {
        UNWOUND(jump_inner);
        if (always)
            longjmp(target, 1);
        return sink;
    }
    UNWOUND(jump_inner); // told before: nothing comes back from there
    return traced_jump_inner(depth - 1) + sink;
}
static TRACED uint64_t traced_jump_outer(unsigned depth)
{
    ENTER(jump_outer);
    volatile uint64_t result = depth;
    if (setjmp(target) == 0)
        result = traced_jump_inner(depth);
    result += traced_leaf(depth);
    LEAVE(jump_outer);
    return result;
}

static uint64_t jumps(unsigned rounds)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < rounds; i++)
        result += traced_jump_outer(i % 40);
    return result;
}

// ---- threads

static TRACED uint64_t traced_leaves(unsigned depth)
{
    ENTER(leaves);
    UNWOUND(leaves);
    if (depth == 0) {
        if (always)
            pthread_exit(NULL);
        return sink;
    }
    return traced_leaves(depth - 1) + sink;
}
static TRACED uint64_t traced_deep(unsigned depth)
{
    ENTER(deep);
    uint64_t result = depth ? traced_deep(depth - 1) + 1 : traced_leaf(7);
    LEAVE(deep);
    return result;
}
static uint64_t thread_sum;
static TRACED void *traced_thread(void *argument)
{
    ENTER(thread);
    uintptr_t number = (uintptr_t)argument;
    uint64_t result = traced_fib(8) + traced_deep(100);
    __atomic_fetch_add(&thread_sum, result, __ATOMIC_RELAXED);
    if (number % 2) {
        UNWOUND(thread);
        sink = traced_leaves(5);
    }
    LEAVE(thread);
    return NULL;
}

static uint64_t threads(unsigned rounds)
{
    enum { AT_ONCE = 8 };
    for (unsigned i = 0; i < rounds; i++) {
        pthread_t ids[AT_ONCE];
        for (uintptr_t n = 0; n < AT_ONCE; n++)
            if (pthread_create(&ids[n], NULL, traced_thread, (void *)n) != 0)
                abort();
        for (unsigned n = 0; n < AT_ONCE; n++)
            pthread_join(ids[n], NULL);
    }
    return thread_sum;
}

// ---- coroutines: three that take turns, each in the middle of traced calls; then the same by several threads

enum { COROUTINES = 3, CO_STACK_BYTES = 64 << 10 };
static struct coroutine {
    ucontext_t own, back;
    unsigned steps;
    bool is_done;
    uint64_t sum;
} coroutines[COROUTINES];

static TRACED uint64_t traced_co_step(struct coroutine *co, unsigned depth)
{
    ENTER(co_step);
    uint64_t result = depth;
    if (depth)
        result += traced_co_step(co, depth - 1);
    else
        swapcontext(&co->own, &co->back);
    LEAVE(co_step);
    return result;
}
static TRACED void traced_co_body(unsigned number)
{
    ENTER(co_body);
    struct coroutine *co = &coroutines[number];
    for (unsigned i = 0; i < co->steps; i++)
        co->sum += traced_co_step(co, number + i % 4);
    co->is_done = true;
    LEAVE(co_body);
}

static void *resume(void *context)
{
    struct coroutine *co = context;
    swapcontext(&co->back, &co->own);
    return NULL;
}

static uint64_t coroutine_turns(unsigned rounds, bool move)
{
    uint64_t result = 0;
    char *stacks = malloc((size_t)COROUTINES * CO_STACK_BYTES);
    if (!stacks)
        abort();
    for (unsigned n = 0; n < COROUTINES; n++) {
        struct coroutine *co = &coroutines[n];
        memset(co, 0, sizeof *co);
        co->steps = rounds;
        getcontext(&co->own);
        co->own.uc_stack.ss_sp = stacks + (size_t)n * CO_STACK_BYTES;
        co->own.uc_stack.ss_size = CO_STACK_BYTES;
        co->own.uc_link = &co->back;
        makecontext(&co->own, (void (*)(void))traced_co_body, 1, n);
    }
    for (unsigned done = 0; done < COROUTINES;) {
        done = 0;
        for (unsigned n = 0; n < COROUTINES; n++) {
            pthread_t id;
            if (!coroutines[n].is_done && move) {
                if (pthread_create(&id, NULL, resume, &coroutines[n]) != 0)
                    abort();
                pthread_join(id, NULL);
            } else if (!coroutines[n].is_done) {
                resume(&coroutines[n]);
            }
            done += coroutines[n].is_done;
        }
    }
    for (unsigned n = 0; n < COROUTINES; n++)
        result += coroutines[n].sum;
    free(stacks);
    return result;
}

static uint64_t switches(unsigned rounds)
{
    return coroutine_turns(rounds, false);
}

static uint64_t moves(unsigned rounds)
{
    return coroutine_turns(rounds, true);
}

// ---- signals, at any instruction of the traced ones

static volatile sig_atomic_t signals_seen;
static TRACED uint64_t traced_handled(uint64_t x)
{
    ENTER(handled);
    uint64_t result = traced_leaf(x) + 1;
    LEAVE(handled);
    return result;
}
static TRACED void traced_handler(int number)
{
    ENTER(handler);
    sink = traced_handled((uint64_t)number);
    signals_seen = signals_seen + 1;
    LEAVE(handler);
}

static uint64_t interrupted(unsigned rounds, int flags)
{
    static char stack[64 << 10];
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = traced_handler, .sa_flags = SA_RESTART | flags};
    const struct itimerval every = {{0, 150}, {0, 150}}, never = {{0, 0}, {0, 0}};
    uint64_t wrong = traced_leaf(11) != 34; // the first call of a thread takes a while: no handler is to meet that one
    sigaltstack(&alternate, NULL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    while (signals_seen < (sig_atomic_t)rounds)
        wrong += traced_fib(9) != 34 || traced_even(6, 0) == 0;
    setitimer(ITIMER_REAL, &never, NULL);
    return wrong;
}

static uint64_t handlers(unsigned rounds)
{
    return interrupted(rounds, 0);
}

static uint64_t alternates(unsigned rounds)
{
    return interrupted(rounds, SA_ONSTACK);
}

// ---- children: none of this process's account

static TRACED uint64_t traced_child(uint64_t x)
{
    return traced_fib(x) + 1;
}
static TRACED uint64_t traced_forks(unsigned number)
{
    ENTER(forks);
    uint64_t result = number;
    pid_t pid = fork();
    if (pid == 0)
        _exit(traced_child(number % 8) == 0); // its counts go with it
    int status = 1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        abort();
    result += traced_fib(4);
    LEAVE(forks);
    return result;
}

static uint64_t forks(unsigned rounds)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < rounds; i++)
        result += traced_forks(i);
    return result;
}

// ---- what is loaded later

static const char *plugin_path;
static uint64_t plugins(unsigned rounds)
{
    uint64_t result = 0;
    for (unsigned again = 0; again < 2; again++) {
        void *plugin = dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL);
        if (!plugin) {
            fprintf(stderr, "dlopen: %s\n", dlerror());
            exit(2);
        }
        uint64_t (*run)(unsigned);
        void (*write_account)(void);
        void *first = dlsym(plugin, "traced_plugin");
        *(void **)&run = dlsym(plugin, "plugin_run");
        *(void **)&write_account = dlsym(plugin, "plugin_write_account");
        if (!first || !run || !write_account)
            exit(2);
        if (getenv("TRACE_PLUGIN") && !account_wait_longer(first, 30)) {
            fprintf(stderr, "the plugin was not traced\n");
            exit(3);
        }
        result += run(rounds);
        write_account();
        dlclose(plugin);
    }
    return result + traced_fib(5);
}

// ---- calls that run when tracing begins

static TRACED uint64_t traced_again(unsigned depth)
{
    ENTER(again);
    uint64_t result = depth ? traced_again(depth - 1) + 1 : 0;
    if (!depth)
        account_wait_for_exchange((const uintptr_t *)__builtin_frame_address(0) + 1);
    LEAVE(again);
    return result;
}
static TRACED uint64_t traced_main_part(unsigned rounds)
{
    ENTER(main_part);
    uint64_t result = traced_again(20);
    for (unsigned i = 0; i < rounds; i++)
        result += traced_leaf(i);
    LEAVE(main_part);
    return result;
}

static const struct which {
    const char *name;
    uint64_t (*run)(unsigned rounds);
} cases[] = {
    {"calls", calls},
    {"tails", tails},
    {"jumps", jumps},
    {"threads", threads},
    {"switches", switches},
    {"moves", moves},
    {"handlers", handlers},
    {"alternates", alternates},
    {"forks", forks},
    {"plugins", plugins},
    {"running", traced_main_part},
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "calls";
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 100;
    plugin_path = argc > 3 ? argv[3] : NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, name) != 0)
            continue;
        if (strcmp(name, "running") != 0 && !account_wait_for_patch((const void *)(uintptr_t)traced_leaf)) {
            fprintf(stderr, "was not traced\n");
            return 3;
        }
        account_write(name, accounts, cases[i].run(rounds));
        account_linger();
        return 0;
    }
    return 2; // no such case
}

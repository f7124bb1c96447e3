// SPDX-License-Identifier: Apache-2.0
// How much stack a walk takes, and one that is stored: painted and measured, and with a guard page where the promise
// ends.
#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <qut/trace.h>

#include "libqut/runtime/tiers.h"
#include "tests/support/discipline.h"
#include "tests/support/tap.h"

enum { PROMISE_BYTES = 1024, PAINTED_BYTES = 16 << 10, STACK_BYTES = 64 << 10, PAINT = 0xa7, CALLS = 8 };

static const char *const call_names[CALLS] = {
    "qut_backtrace",    "qut_backtrace_context",     "qut_cursor_context + next", "qut_cursor_here + next",
    "qut_trace_sample", "qut_trace_sample, context", "qut_trace_append, extras",  "qut_trace_mark"};

static uintptr_t pcs[64];
static struct qut_cursor cursor;
static struct qut_frame frame;
static struct qut_end end;

// The functions are called through pointers of one type, so that each call costs its caller the same.
static void call_backtrace(const void *context)
{
    (void)context;
    qut_backtrace(pcs, 64, &end);
}

static void call_context(const void *context)
{
    qut_backtrace_context(context, pcs, 64, &end);
}

static void call_cursor_context(const void *context)
{
    qut_cursor_context(&cursor, context);
    do
        qut_cursor_frame(&cursor, &frame);
    while (qut_cursor_next(&cursor));
}

static void call_cursor_here(const void *context)
{
    (void)context;
    qut_cursor_here(&cursor);
    while (qut_cursor_next(&cursor))
        qut_cursor_frame(&cursor, &frame);
}

static int stored;
static uint64_t metrics[QUT_METRIC_COUNT];
static struct qut_extra extras[16];

static struct qut_event an_event(void)
{
    for (int i = 0; i < QUT_METRIC_COUNT; i++)
        metrics[i] += 1000;
    return (struct qut_event){.kind = QUT_SAMPLE_CPU, .metrics = metrics};
}

static void call_sample(const void *context)
{
    (void)context;
    static struct qut_event event;
    event = an_event();
    stored = qut_trace_sample(NULL, &event);
}

static void call_sample_context(const void *context)
{
    static struct qut_event event;
    event = an_event();
    stored = qut_trace_sample(context, &event);
}

// Out of order: its time becomes an extra, too.
static void call_append(const void *context)
{
    (void)context;
    static struct qut_event event;
    static uintptr_t stack[] = {0x1111, 0x2222, 0x3333};
    for (int i = 0; i < 15; i++)
        extras[i].key = QUT_EXTRA_LOCK;
    event = an_event();
    event.time_ns = 1;
    event.extras = extras;
    event.extra_count = 15;
    stack[0]++;
    stored = qut_trace_append(stack, 3, NULL, 0, &event);
}

static void call_mark(const void *context)
{
    (void)context;
    static uint64_t id;
    stored = qut_trace_mark(QUT_MARK_BEGIN, ++id, "message");
}

static uintptr_t probed_address;

// What a function that does nothing finds as its own frame: where the stack of a callee begins.
__attribute__((noinline)) static void probe(const void *context)
{
    (void)context;
    probed_address = (uintptr_t)__builtin_frame_address(0);
}

typedef void call(const void *context);
static call *const volatile calls[CALLS] = {call_backtrace, call_context,        call_cursor_context, call_cursor_here,
                                            call_sample,    call_sample_context, call_append,         call_mark};
static call *const volatile probe_call = probe;

static size_t used[CALLS];
static unsigned chosen;
static bool tight; // at the guard page, instead of measured

// Without shortcuts, with them, and when the same walk is remembered: what counts is the greediest. No frame of its
// own: the callee's stack begins where the probe's does.
static inline __attribute__((always_inline)) void call_every_way(const void *context)
{
    static const uint32_t tiers[] = {0, RUNTIME_TIERS_ALL, RUNTIME_TIERS_ALL};
    for (size_t i = 0; i < sizeof tiers / sizeof *tiers; i++) {
        atomic_store_explicit(&runtime_tiers, tiers[i], memory_order_relaxed);
        calls[chosen](context);
    }
}

// From where the callee's stack begins to the lowest byte that lost its paint.
__attribute__((noinline)) static void measure(const void *context)
{
    probe_call(context);
    volatile unsigned char *low = (volatile unsigned char *)probed_address - PAINTED_BYTES;
    for (size_t i = 0; i < PAINTED_BYTES - 256; i++)
        low[i] = PAINT;
    // The last bytes hold nothing yet, but the probe's own frame; they count as used.
    call_every_way(context);
    size_t at = 0;
    while (at < PAINTED_BYTES && low[at] == PAINT)
        at++;
    used[chosen] = PAINTED_BYTES - at;
}

static uintptr_t trace_guard_end;

// Lowers sp until exactly what was promised is left above the guard page.
__attribute__((noinline)) static void go_to_the_edge(const void *context)
{
    probe_call(context);
    size_t room = probed_address - trace_guard_end;
    volatile char *taken =
        alloca(room - PROMISE_BYTES - 48); // 48: alloca rounds, and the call goes through a function of ours
    taken[0] = 0;
    call_every_way(context);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    if (tight)
        go_to_the_edge(context);
    else
        measure(context);
}

static void on_own_stack(bool with_guard)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *stack = mmap(NULL, page + STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (with_guard)
        mprotect(stack, page, PROT_NONE);
    trace_guard_end = (uintptr_t)stack + page;
    stack_t alternate = {.ss_sp = stack, .ss_size = page + STACK_BYTES};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    alternate = (stack_t){.ss_flags = SS_DISABLE};
    sigaltstack(&alternate, NULL);
    munmap(stack, page + STACK_BYTES);
}

static ucontext_t inside, outside;

static void raise_in_coroutine(void)
{
    on_own_stack(tight);
}

static void run_in_coroutine(void)
{
    static char stack[128 << 10];
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    inside.uc_link = &outside;
    makecontext(&inside, raise_in_coroutine, 0);
    swapcontext(&outside, &inside);
}

static void each_situation(void (*check)(unsigned call, bool registered, bool in_coroutine))
{
    for (unsigned call_index = 0; call_index < CALLS; call_index++)
        for (unsigned situation = 0; situation < 4; situation++)
            check(call_index, situation & 1, situation & 2);
}

static void measure_one(unsigned call_index, bool registered, bool in_coroutine)
{
    chosen = call_index;
    if (registered)
        qut_thread_register();
    else
        qut_thread_unregister();
    if (in_coroutine)
        run_in_coroutine();
    else
        on_own_stack(false);
    qut_thread_register();
    CHECK(stored >= 0, "%s: %d", call_names[call_index], stored);
    printf("# %-26s %-12s %-12s %4zu bytes of stack\n", call_names[call_index],
           registered ? "registered" : "unregistered", in_coroutine ? "in coroutine" : "", used[call_index]);
    CHECK(used[call_index] < PROMISE_BYTES, "%s uses %zu", call_names[call_index], used[call_index]);
}

TEST(walks_use_less_than_was_promised)
{
    tight = false;
    each_situation(measure_one);
}

static void tight_one(unsigned call_index, bool registered, bool in_coroutine)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        tight = true;
        chosen = call_index;
        if (!registered)
            qut_thread_unregister();
        if (in_coroutine)
            run_in_coroutine();
        else
            on_own_stack(true);
        _exit(stored < 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s, %s%s: status %x", call_names[call_index],
          registered ? "registered" : "unregistered", in_coroutine ? ", in a coroutine" : "", (unsigned)status);
}

TEST(walks_stop_short_of_a_guard_page)
{
    each_situation(tight_one);
}

int main(void)
{
    if (!discipline_start())
        return 1;
    struct qut_trace_options options = {.size = sizeof options,
                                        .segment_bytes = 4 << 20,
                                        .flags = QUT_TRACE_CPU_TIME | QUT_TRACE_FOLLOW_FORK,
                                        .metric_mask = (1u << QUT_METRIC_COUNT) - 1};
    if (qut_trace_open(&options) != 0)
        return 1;

    RUN(walks_stop_short_of_a_guard_page);
    RUN(walks_use_less_than_was_promised);
    return tap_finish();
}

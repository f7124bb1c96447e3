// SPDX-License-Identifier: Apache-2.0
// How a tool with a stack walker of its own uses the trace store: a sampler for a toy interpreter. It knows frames that
// no unwinder can see (the interpreted functions), walks the native ones below them by frame pointers, in a SIGPROF
// handler, and says which request the thread works on. Link with `pkg-config --libs qut`.
//
// Usage: foreign_tracer SEGMENT; prints the stack that it stored in its test sample. x86-64, -fno-omit-frame-pointer.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <qut/trace.h>

// ---- the toy interpreter: a function calls the next one and adds something up

static const char *const functions[] = {"toy main", "toy work", "toy leaf"};
static volatile int depth; // of interpreted calls
static volatile unsigned long sum;
static uintptr_t outermost_frame;

static __attribute__((noinline)) void interpret(int function)
{
    depth = function + 1;
    if (function < 2)
        interpret(function + 1);
    for (int i = 0; i < 100000; i++)
        sum += (unsigned long)i;
    depth = function;
}

// ---- the sampler

enum { FRAMES_MAX = 64 };
static int own_kind;
static volatile int is_test;

// Pcs as the store wants them: the first where the thread was interrupted, the others inside the calls (hence - 1).
// In code without frame pointers (libc's) that register has anything: only what lies further out is followed.
static size_t walk(uintptr_t pc, uintptr_t frame, uintptr_t sp, uintptr_t *pcs, int *is_whole)
{
    size_t count = 0;
    pcs[count++] = pc;
    *is_whole = 0;
    while (count < FRAMES_MAX && frame >= sp && frame <= outermost_frame && frame % sizeof frame == 0 && !*is_whole) {
        const uintptr_t *words = (const uintptr_t *)frame; // the caller's frame, and where it goes on
        pcs[count++] = words[1] - 1;
        *is_whole = frame == outermost_frame;
        sp = frame + 1;
        frame = words[0];
    }
    return count;
}

// Everything that it calls may be called from a handler.
static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    int error = errno;
    const greg_t *registers = ((const ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t pcs[FRAMES_MAX];
    int is_whole;
    size_t count = walk((uintptr_t)registers[REG_RIP], (uintptr_t)registers[REG_RBP], (uintptr_t)registers[REG_RSP],
                        pcs, &is_whole);
    struct qut_event event = {.kind = (uint32_t)own_kind, .flags = QUT_EVENT_ON_CPU};
    if (!is_whole) { // what is there, and why it is not all
        struct qut_end end = {.reason = QUT_END_NO_REGISTER, .guessed_frame = QUT_NO_GUESS};
        qut_trace_append(pcs, count, &end, QUT_STACK_INTERRUPTED, &event);
        errno = error;
        return;
    }
    // A stack with frames that are no addresses is made frame by frame, from the outermost one inwards.
    uint32_t node = 0;
    for (size_t i = count; i-- > 0;)
        node = qut_trace_node(node, pcs[i], i == 0 ? QUT_STACK_INTERRUPTED : 0);
    int interpreted = depth;
    for (int i = 0; i < interpreted; i++)
        node = qut_trace_label_node(node, functions[i]);
    struct qut_extra extra = {QUT_EXTRA_SIZE, 0, (uint64_t)interpreted};
    if (is_test) {
        // Once: a tick may come beside the signal, and is as good.
        is_test = 0;
        event.extras = &extra; // with extras, it stays a sample of its own
        event.extra_count = 1;
        for (int i = interpreted; i-- > 0;) // its signal is no surprise, so printf may be called
            printf("%s;", functions[i]);
        for (size_t i = 0; i < count; i++)
            printf("%#lx%s", (unsigned long)pcs[i], i + 1 < count ? ";" : "\n");
    }
    qut_trace_append_node(node, &event);
    errno = error;
}

__attribute__((noinline)) static void serve(unsigned requests)
{
    outermost_frame = (uintptr_t)__builtin_frame_address(0);
    for (uint64_t request = 1; request <= requests; request++) {
        qut_trace_mark(QUT_MARK_BEGIN, request, "request");
        interpret(0);
        qut_trace_mark(QUT_MARK_END, request, "request");
    }
    depth = 3; // and one sample at a place that is known
    is_test = 1;
    syscall(SYS_tgkill, getpid(), getpid(), SIGPROF); // its stub in libc leaves the frame pointer alone
    is_test = 0;
}

int main(int argc, char **argv)
{
    struct qut_trace_options options = {.size = sizeof options, .path = argc > 1 ? argv[1] : NULL};
    if (qut_trace_open(&options) != 0 || (own_kind = qut_trace_own_kind("toy tick")) < 0)
        return 1;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    struct itimerval period = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_PROF, &period, NULL);
    serve(4000);
    qut_trace_close(); // later ticks find no trace, and do no harm
    return 0;
}

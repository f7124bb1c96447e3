// SPDX-License-Identifier: Apache-2.0
// Walks from a signal handler, of what it interrupted: what is timed is the whole signal, from the system call that
// raises it until that returns. This file is built with frame pointers.
#include "bench/walk/walkers.h"
#include "machine.h"

#include <signal.h>
#include <unistd.h>

#include <qut/local.h>

typedef size_t walk_context(const ucontext_t *context, uintptr_t *pcs, size_t max);

// Of the walk that the raised signal is to make.
static struct {
    walk_context *walk;
    uintptr_t *pcs;
    size_t max, count;
} request;

static long pid, tid;

static void handle(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    request.count = request.walk(context, request.pcs, request.max);
}

static const char *open_signal(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&action.sa_mask);
    pid = getpid();
    tid = gettid();
    return sigaction(SIGUSR1, &action, NULL) == 0 ? NULL : "sigaction failed";
}

static const char *open_signal_qut(void)
{
    const char *missing = bench_walker_qut.open();
    return missing ? missing : open_signal();
}

static size_t nothing(const ucontext_t *context, uintptr_t *pcs, size_t max)
{
    (void)context;
    (void)pcs;
    return max;
}

static size_t chase(const ucontext_t *context, uintptr_t *pcs, size_t max)
{
    const uintptr_t *frame = (const uintptr_t *)bench_context_fp(context);
    size_t count = 0;
    pcs[count++] = bench_context_pc(context);
    for (; count < max && frame; count++) {
        pcs[count] = frame[BENCH_FP_RETURN];
        frame = (const uintptr_t *)frame[BENCH_FP_CALLER];
    }
    return count;
}

static size_t qut(const ucontext_t *context, uintptr_t *pcs, size_t max)
{
    return qut_backtrace_context(context, pcs, max, NULL);
}

static inline __attribute__((always_inline)) size_t walk_in_signal(walk_context *walk, uintptr_t *pcs, size_t max)
{
    request.walk = walk;
    request.pcs = pcs;
    request.max = max;
    request.count = 0;
    // A function that calls none may be left without a frame, frame pointers or not.
    __asm__ volatile("" ::"r"(__builtin_frame_address(0)));
    bench_raise(pid, tid, SIGUSR1);
    return request.count;
}

static size_t signal_nothing(uintptr_t *pcs, size_t max)
{
    return walk_in_signal(nothing, pcs, max);
}

static size_t signal_chase(uintptr_t *pcs, size_t max)
{
    return walk_in_signal(chase, pcs, max);
}

static size_t signal_qut(uintptr_t *pcs, size_t max)
{
    return walk_in_signal(qut, pcs, max);
}

static void table_only(void)
{
    bench_walker_qut_table.choose();
}

static void linked(void)
{
    bench_walker_qut_linked.choose();
}

static void all_tiers(void)
{
    bench_walker_qut.choose();
}

const struct bench_walker bench_walker_signal_nothing = {
    .name = "signal-nothing", .walk = signal_nothing, .open = open_signal, .walks_nothing = true};
const struct bench_walker bench_walker_signal_chase = {.name = "signal-chase",
                                                       .walk = signal_chase,
                                                       .open = open_signal,
                                                       .own_frame_count = 1,
                                                       .needs_frame_pointers = true};
const struct bench_walker bench_walker_signal_qut_table = {.name = "signal-qut-table",
                                                           .walk = signal_qut,
                                                           .open = open_signal_qut,
                                                           .choose = table_only,
                                                           .own_frame_count = 1};
const struct bench_walker bench_walker_signal_qut_linked = {
    .name = "signal-qut-linked", .walk = signal_qut, .open = open_signal_qut, .choose = linked, .own_frame_count = 1};
const struct bench_walker bench_walker_signal_qut = {
    .name = "signal-qut", .walk = signal_qut, .open = open_signal_qut, .choose = all_tiers, .own_frame_count = 1};

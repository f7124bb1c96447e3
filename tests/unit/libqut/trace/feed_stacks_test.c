// SPDX-License-Identifier: Apache-2.0
// What qut_trace_sample stores is the stack that qut_backtrace gives: from functions, handlers, registered threads and
// others, however deep, and whatever of it is looked up anew.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include <qut/qut.h>

#include "libqut/runtime/tiers.h"
#include "libqut/trace/feed_sample.h"
#include "tests/support/discipline.h"
#include "tests/support/feed_view.h"
#include "tests/support/tap.h"

enum { DEPTH_MAX = 4096 };

static uintptr_t pcs[DEPTH_MAX];
static struct view_frame frames[DEPTH_MAX];
static size_t pc_count;
static struct qut_end end;
static int stored;
static volatile int sink;

static void open_trace(uint32_t depth_max, uint64_t segment_bytes, uint32_t node_bits)
{
    struct qut_trace_options options = {
        .size = sizeof options, .depth_max = depth_max, .segment_bytes = segment_bytes, .node_bits = node_bits};
    int result = qut_trace_open(&options);
    CHECK(result == 0, "%d", result);
}

// Both in one place, as far as the stack is concerned: only frame 0 is at another pc.
__attribute__((noinline)) static void take(void)
{
    struct qut_event event = {.kind = QUT_SAMPLE_WALL};
    pc_count = qut_backtrace(pcs, DEPTH_MAX, &end);
    stored = qut_trace_sample(NULL, &event);
    sink++;
}

__attribute__((noinline)) static void recurse(int depth, void (*at_end)(void))
{
    if (depth == 0)
        at_end();
    else
        recurse(depth - 1, at_end);
    sink++;
}

__attribute__((noinline)) static void recurse_other(int depth, void (*at_end)(void))
{
    if (depth == 0)
        at_end();
    else
        recurse_other(depth - 1, at_end);
    sink += 2;
}

// Of the sample that the calling thread took last. `from`: frames below are not compared.
static void check_stack_at(unsigned level, size_t from, const char *what)
{
    struct view view;
    if (!CHECK(view_open(&view), "%s", what))
        return;
    const struct qut_trace_thread *thread = view_self(&view);
    CHECK(stored == QUT_STORED || stored == QUT_STORED_MERGED, "%s: %d", what, stored);
    if (CHECK(thread != NULL, "%s: no thread", what)) {
        size_t count = view_stack(&view, view_last_node(thread, level), frames, DEPTH_MAX);
        // Where the walk did not come to the outermost frame, that is said behind the last one.
        CHECK(count == pc_count + (end.reason != QUT_END_OUTERMOST), "%s: %zu frames, not %zu", what, count, pc_count);
        for (size_t i = from; i < count && i < pc_count; i++)
            if (!CHECK(frames[i].pc == pcs[i] && frames[i].class == QUT_TRACE_CLASS_CODE,
                       "%s: frame %zu: %lx (%u), not %lx", what, i, (long)frames[i].pc, frames[i].class, (long)pcs[i]))
                break;
    }
    view_close(&view);
}

static void check_stack(size_t from, const char *what)
{
    check_stack_at(0, from, what);
}

TEST(a_stack_is_what_backtrace_gives)
{
    open_trace(0, 0, 0);
    for (int depth = 0; depth < 60; depth += 7) {
        recurse(depth, take);
        check_stack(1, "recurse");
        CHECK(end.reason == QUT_END_OUTERMOST, "%s", qut_end_reason_name(end.reason));
        recurse_other(depth, take);
        check_stack(1, "recurse_other");
    }
    CHECK(view_imbalance() == 0, "%ld", (long)view_imbalance());
    qut_trace_close();
}

TEST(without_shortcuts_as_well)
{
    static const uint32_t tiers[] = {0, RUNTIME_TIER_LINKED, RUNTIME_TIERS_ALL,
                                     RUNTIME_TIERS_ALL | RUNTIME_TIER_STUBBORN};
    open_trace(0, 0, 0);
    for (size_t i = 0; i < 4; i++)
        for (int round = 0; round < 5; round++) {
            atomic_store_explicit(&runtime_tiers, tiers[i], memory_order_relaxed);
            recurse(20 + round, take);
            check_stack(1, "recurse");
            recurse_other(20 - round, take);
            check_stack(1, "recurse_other");
        }
    atomic_store_explicit(&runtime_tiers, RUNTIME_TIERS_ALL, memory_order_relaxed);
    qut_trace_close();
}

static void take_twice(void)
{
    for (volatile int i = 0; i < 2; i++)
        take();
}

TEST(equal_samples_are_merged)
{
    open_trace(0, 0, 0);
    recurse(5, take_twice);
    CHECK(stored == QUT_STORED_MERGED, "%d", stored);
    struct qut_trace_counters_now counts;
    qut_trace_get_counts(&counts, sizeof counts);
    CHECK(counts.hits == 2 && counts.stored == 1 && counts.merged == 1, "%d hits, %d, %d", (int)counts.hits,
          (int)counts.stored, (int)counts.merged);
    qut_trace_close();
}

// ---- what is looked up anew

static void take_after_walk(void)
{
    qut_backtrace(pcs, DEPTH_MAX, &end); // another walk in between
    take();
}

TEST(nodes_are_those_of_this_trace)
{
    // The thread remembers its frames, with nodes of a trace that was closed.
    for (int i = 0; i < 4; i++) {
        open_trace(0, 0, 0);
        for (int depth = 30; depth < 34; depth++) {
            recurse(depth, i & 1 ? take_after_walk : take);
            check_stack(1, "recurse");
        }
        qut_trace_close();
        recurse(30, take);
        CHECK(stored == QUT_STORED_NO_TRACE, "%d", stored);
    }
}

// Frames that stay while one trace ends and another begins are remembered with the nodes of the first.
static void take_in_traces(void)
{
    for (volatile int i = 0; i < 4; i++) {
        open_trace(0, 0, 0);
        for (volatile int j = 0; j < 3; j++) {
            take();
            check_stack(1, "another trace");
        }
        qut_trace_close();
    }
}

TEST(nodes_of_frames_that_stay_are_those_of_this_trace)
{
    recurse(30, take_in_traces);
}

// The same frame may be found by a rule now, and have been by a guess then, or the other way round.
static void take_guessed(void)
{
    enum { GUESSED = 3 };
    struct qut_event event = {.kind = QUT_SAMPLE_WALL};
    for (volatile int i = 0; i < 8; i++) {
        uint8_t flags[GUESSED + 1] = {0};
        bool is_guessed = i & 2;
        flags[GUESSED] = is_guessed ? QUT_FRAME_GUESSED : 0;
        pc_count = qut_backtrace(pcs, DEPTH_MAX, &end);
        stored = feed_trace_store_walk(pcs, pc_count, flags, GUESSED + 1, &end, false, &event);
        check_stack(1, "guessed");
        for (size_t j = 0; j < pc_count; j++)
            CHECK(frames[j].bits == (is_guessed && j == GUESSED ? QUT_TRACE_NODE_GUESSED : 0), "%d: frame %zu: %u", i,
                  j, frames[j].bits);
    }
}

TEST(a_guess_is_not_remembered)
{
    open_trace(0, 0, 0);
    recurse(30, take_guessed);
    qut_trace_close();
}

// ---- handlers

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    struct qut_event event = {.kind = QUT_SAMPLE_CPU};
    pc_count = qut_backtrace_context(context, pcs, DEPTH_MAX, &end);
    stored = qut_trace_sample(context, &event);
}

static void raise_it(void)
{
    raise(SIGUSR1);
}

TEST(from_a_handler_with_its_context)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    open_trace(0, 0, 0);
    for (int i = 0; i < 3; i++) {
        recurse(12, raise_it);
        check_stack(0, "handler");
        CHECK(frames[0].bits & QUT_TRACE_NODE_EXACT, "%u", frames[0].bits);
        CHECK(frames[1].bits == 0, "%u", frames[1].bits);
    }
    qut_trace_close();
}

static void on_signal_plain(int number)
{
    (void)number;
    take();
}

// Under qemu its code lies in no module: then it is only an address.
static bool is_signal_frame(const struct view_frame *frame)
{
    return frame->class == QUT_TRACE_CLASS_SIGNAL || frame->class == QUT_TRACE_CLASS_RAW;
}

// From inside the handler: the frame that the kernel made, and the interrupted one behind it, are said to be such.
TEST(through_a_signal_frame)
{
    struct sigaction action = {.sa_handler = on_signal_plain};
    sigaction(SIGUSR1, &action, NULL);
    open_trace(0, 0, 0);
    for (int i = 0; i < 3; i++) {
        struct view view;
        recurse(6, raise_it);
        view_open(&view);
        size_t count = view_stack(&view, view_last_node(view_self(&view), 0), frames, DEPTH_MAX), signals = 0,
               exact = 0;
        CHECK(count == pc_count, "%zu frames, not %zu", count, pc_count);
        for (size_t j = 1; j < count && j < pc_count; j++) {
            CHECK(frames[j].pc == pcs[j], "frame %zu: %lx, not %lx", j, (long)frames[j].pc, (long)pcs[j]);
            signals += is_signal_frame(&frames[j]);
            exact += (frames[j].bits & QUT_TRACE_NODE_EXACT) && frames[j].class == QUT_TRACE_CLASS_CODE;
            if (j && frames[j].class == QUT_TRACE_CLASS_CODE && (frames[j].bits & QUT_TRACE_NODE_EXACT))
                CHECK(is_signal_frame(&frames[j - 1]), "frame %zu is of class %u", j - 1, frames[j - 1].class);
        }
        CHECK(signals == 1 && exact == 1, "%zu signal frames, %zu interrupted", signals, exact);
        view_close(&view);
    }
    qut_trace_close();
}

// ---- threads that are not registered

static void *in_thread(void *unused)
{
    (void)unused;
    for (int depth = 10; depth < 14; depth++) {
        recurse(depth, take);
        check_stack(1, "unregistered");
        recurse(depth, raise_it);
        check_stack_at(0, 1, "unregistered, in a handler");
    }
    return NULL;
}

TEST(from_a_thread_that_is_not_registered)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    open_trace(0, 0, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    struct qut_trace_counters_now counts;
    qut_trace_get_counts(&counts, sizeof counts);
    CHECK(counts.hits == 8, "%d", (int)counts.hits);
    qut_trace_close();
}

// ---- deep ones, and those that end early

TEST(two_thousand_frames)
{
    open_trace(DEPTH_MAX, 0, 0);
    for (int i = 0; i < 3; i++) {
        recurse(2000 + i, take);
        CHECK(pc_count > 2000, "%zu", pc_count);
        check_stack(1, "deep");
    }
    qut_trace_close();
}

TEST(deeper_than_there_is_room)
{
    open_trace(64, 0, 0);
    struct view view;
    recurse(100, take);
    view_open(&view);
    const struct qut_trace_thread *thread = view_self(&view);
    size_t count = view_stack(&view, view_last_node(thread, 0), frames, DEPTH_MAX);
    CHECK(count == 65, "%zu", count);
    CHECK(frames[64].class == QUT_TRACE_CLASS_END && frames[64].code == 1 + QUT_END_LIMIT, "%u, %d", frames[64].class,
          (int)frames[64].code);
    for (size_t i = 1; i < 64; i++)
        CHECK(frames[i].pc == pcs[i], "frame %zu", i);
    CHECK(view_commit(thread, 0)->run.flags == QUT_TRACE_SAMPLE_CUT, "%u", view_commit(thread, 0)->run.flags);
    struct qut_trace_counters_now counts;
    qut_trace_get_counts(&counts, sizeof counts);
    CHECK(counts.cut[QUT_TRACE_CUT_DEPTH] == 1, "%d", (int)counts.cut[QUT_TRACE_CUT_DEPTH]);
    view_close(&view);
    qut_trace_close();
}

TEST(a_full_tree_cuts_on_the_inner_side)
{
    open_trace(DEPTH_MAX, 1 << 20, 10);
    struct view view;
    uint64_t cut = 0;
    for (int i = 0; i < 30; i++) {
        recurse_other(40, take);
        recurse(40 + i * 60, take);
        view_open(&view);
        const struct qut_trace_thread *thread = view_self(&view);
        size_t count = view_stack(&view, view_last_node(thread, 0), frames, DEPTH_MAX);
        bool is_cut = count < pc_count;
        cut += is_cut;
        CHECK(count <= pc_count, "%zu, %zu", count, pc_count);
        CHECK(((view_commit(thread, 0)->run.flags & QUT_TRACE_SAMPLE_CUT) != 0) == is_cut, "%u",
              view_commit(thread, 0)->run.flags);
        for (size_t j = is_cut ? 0 : 1; j < count; j++) // from the outermost one on
            if (!CHECK(frames[j].pc == pcs[pc_count - count + j], "frame %zu of %zu", j, count))
                break;
        view_close(&view);
    }
    struct qut_trace_counters_now counts;
    qut_trace_get_counts(&counts, sizeof counts);
    CHECK(cut > 0 && counts.cut[QUT_TRACE_CUT_TREE] >= cut, "%d of %d", (int)counts.cut[QUT_TRACE_CUT_TREE], (int)cut);
    CHECK(view_imbalance() == 0, "%ld", (long)view_imbalance());
    qut_trace_close();
}

int main(void)
{
    if (!discipline_has_compiler()) {
        printf("SKIP: no compiler\n0 passed, 0 failed, 1 skipped\n");
        return 77;
    }
    if (!discipline_start())
        return 1;
    RUN(a_stack_is_what_backtrace_gives);
    RUN(without_shortcuts_as_well);
    RUN(equal_samples_are_merged);
    RUN(nodes_are_those_of_this_trace);
    RUN(nodes_of_frames_that_stay_are_those_of_this_trace);
    RUN(a_guess_is_not_remembered);
    RUN(from_a_handler_with_its_context);
    RUN(through_a_signal_frame);
    RUN(from_a_thread_that_is_not_registered);
    RUN(two_thousand_frames);
    RUN(deeper_than_there_is_room);
    RUN(a_full_tree_cuts_on_the_inner_side);
    return tap_finish();
}

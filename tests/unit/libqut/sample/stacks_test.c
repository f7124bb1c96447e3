// SPDX-License-Identifier: Apache-2.0
// Which frames a sample has: from the caller of the sync point on, without those that were to be left out; however it
// was looked up. An argument: what a taken sample costs.
#include <pthread.h>
#include <signal.h>

#include "tests/support/discipline.h"
#include "tests/support/feed_view.h"
#include "tests/unit/libqut/sample/subject.h"

enum { FRAMES_MAX = 256, MS = 1000000 };

static volatile int sink;
static uintptr_t pcs[FRAMES_MAX];
static size_t pc_count;
static uint32_t wanted_skip;
static struct qut_scope scope;
static void (*body)(void);

static void open_and_start(void)
{
    struct qut_trace_options trace = {.size = sizeof trace};
    struct qut_sampling_options options = {.size = sizeof options, .trigger = QUT_TRIGGER_NONE, .sync_interval_ns = 1};
    CHECK(qut_trace_open(&trace) == 0, "no trace");
    CHECK(qut_sampling_start(&options) == 0, "cannot start");
}

// ---- what is taken, each at one place of the stack with the walk that it is compared with

__attribute__((noinline)) static void take_hit(void)
{
    struct qut_event event = {.kind = QUT_SAMPLE_ALLOCATE, .skip_frames = wanted_skip};
    pc_count = qut_backtrace(pcs, FRAMES_MAX, NULL);
    if (qut_sync_hit(QUT_TOTAL_NONE, 0))
        qut_sync_take(&event);
    sink++;
}

__attribute__((noinline)) static void take_plainly(void)
{
    struct qut_event event = {.kind = QUT_SAMPLE_ALLOCATE, .skip_frames = wanted_skip};
    pc_count = qut_backtrace(pcs, FRAMES_MAX, NULL);
    qut_trace_sample(NULL, &event);
    sink++;
}

__attribute__((noinline)) static void take_beginning(void)
{
    scope = (struct qut_scope){.kind = QUT_SAMPLE_READ, .skip_frames = wanted_skip};
    pc_count = qut_backtrace(pcs, FRAMES_MAX, NULL);
    qut_scope_begin(&scope);
    sink++;
}

__attribute__((noinline)) static void take_end(void)
{
    scope.skip_frames = wanted_skip;
    pc_count = qut_backtrace(pcs, FRAMES_MAX, NULL);
    qut_scope_end(&scope, QUT_TOTAL_NONE, 0, NULL, 0);
    // An end is stored at once; this one stays open, where it can be seen.
    scope = (struct qut_scope){.kind = QUT_SAMPLE_READ, .skip_frames = wanted_skip};
    qut_scope_begin(&scope);
    sink++;
}

__attribute__((noinline)) static void recurse(int depth)
{
    if (depth == 0)
        body();
    else
        recurse(depth - 1);
    sink++;
}

static uint32_t last_node(const struct view *view)
{
    return view_last_node(view_self(view), 0);
}

// The innermost frame is where the function calls the sync point, a little behind where it called qut_backtrace.
static void compare(const char *what)
{
    struct view view;
    static struct view_frame frames[FRAMES_MAX];
    enum { NEAR_BYTES = 256 };
    if (!CHECK(view_open(&view), "no trace"))
        return;
    size_t count = view_stack(&view, last_node(&view), frames, FRAMES_MAX);
    if (count && frames[count - 1].class == QUT_TRACE_CLASS_END)
        count--; // it says that the walk did not come to the outermost frame: as qut_backtrace's did not
    size_t skip = wanted_skip < pc_count ? wanted_skip : pc_count - 1;
    CHECK(count == pc_count - skip, "%s, skip %u: %zu of %zu frames", what, wanted_skip, count, pc_count);
    for (size_t i = 0; i < count && i + skip < pc_count; i++) {
        uintptr_t wanted = pcs[i + skip];
        bool is_it = i + skip == 0 ? frames[i].pc - wanted < NEAR_BYTES : frames[i].pc == wanted;
        CHECK(is_it, "%s, skip %u: frame %zu is %lx, not %lx", what, wanted_skip, i, (unsigned long)frames[i].pc,
              (unsigned long)wanted);
    }
    view_close(&view);
}

static void compare_all(const char *what, void (*take)(void))
{
    static const uint32_t skips[] = {0, 1, 2, 5, 0, 9, 1, 3, 1000};
    body = take;
    for (int depth = 0; depth < 40; depth += 13) {
        for (size_t i = 0; i < sizeof skips / sizeof *skips; i++) {
            wanted_skip = skips[i];
            for (int again = 0; again < 3; again++) { // looked up, remembered
                recurse(depth);
                compare(what);
            }
        }
    }
}

static void every_way(void)
{
    open_and_start();
    compare_all("sample", take_plainly);
    compare_all("hit", take_hit);
    compare_all("beginning", take_beginning);
    CHECK(scope.begin_node != 0, "no node");
    compare_all("end", take_end);
    subject_check_balance("stacks");
    subject_close();
}

static void *unregistered(void *unused)
{
    (void)unused;
    compare_all("hit, not registered", take_hit);
    compare_all("beginning, not registered", take_beginning);
    return NULL;
}

TEST(innermost_frames_are_left_out)
{
    if (!discipline_has_compiler())
        SKIP("no compiler for tables");
    every_way();
}

TEST(so_they_are_in_threads_nobody_knows)
{
    pthread_t thread;
    if (!discipline_has_compiler())
        SKIP("no compiler for tables");
    open_and_start();
    pthread_create(&thread, NULL, unregistered, NULL);
    pthread_join(thread, NULL);
    subject_close();
}

static void on_signal(int number)
{
    (void)number;
    take_hit();
}

// Within an append of its own thread it takes another level.
TEST(handlers_take_samples)
{
    if (!discipline_has_compiler())
        SKIP("no compiler for tables");
    open_and_start();
    signal(SIGUSR2, on_signal);
    for (wanted_skip = 0; wanted_skip < 3; wanted_skip++) {
        raise(SIGUSR2);
        compare("in a handler");
    }
    subject_close();
}

// ---- costs

static void take_many(void)
{
    enum { ROUNDS = 200, CALLS = 1000 };
    double least = 1e9;
    struct qut_event event = {.kind = QUT_SAMPLE_ALLOCATE, .skip_frames = 1};
    for (int round = 0; round < ROUNDS; round++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int i = 0; i < CALLS; i++) {
            if (qut_sync_hit(QUT_TOTAL_ALLOCATIONS, 16))
                qut_sync_take(&event);
        }
        clock_gettime(CLOCK_MONOTONIC, &to);
        double ns = ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / CALLS;
        least = ns < least ? ns : least;
    }
    printf("%.0f ns\n", least);
}

static void measure(uint32_t metric_mask, uint32_t flags, const char *what)
{
    struct qut_trace_options trace = {.size = sizeof trace, .metric_mask = metric_mask, .flags = flags};
    struct qut_sampling_options options = {.size = sizeof options, .trigger = QUT_TRIGGER_NONE, .sync_interval_ns = 1};
    qut_trace_open(&trace);
    qut_sampling_start(&options);
    printf("taken at depth 30, %s: ", what);
    body = take_many;
    recurse(26);
    subject_close();
}

int main(int argc, char **argv)
{
    (void)argv;
    if (!discipline_start() || !discipline_has_compiler())
        printf("# without tables\n");
    if (argc > 1) {
        measure(0, 0, "without metrics");
        measure(0x30, 0, "allocations");
        measure(0x3f, 0, "all metrics");
        measure(0x3f, QUT_TRACE_CPU_TIME, "all metrics and processor time");
        return 0;
    }
    RUN(innermost_frames_are_left_out);
    RUN(so_they_are_in_threads_nobody_knows);
    RUN(handlers_take_samples);
    return tap_finish();
}

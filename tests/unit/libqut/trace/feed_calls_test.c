// SPDX-License-Identifier: Apache-2.0
// Every public function but the walk: stacks of others, nodes, marks, sums; before qut_start as well.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <qut/qut.h>

#include "tests/support/discipline.h"
#include "tests/support/feed_view.h"
#include "tests/support/tap.h"

enum { FRAMES_MAX = 512 };

static struct view_frame frames[FRAMES_MAX];
static const struct qut_event event = {.kind = QUT_SAMPLE_LOCK, .time_ns = 1000000000000};

static struct qut_trace_options defaults(void)
{
    return (struct qut_trace_options){.size = sizeof(struct qut_trace_options), .segment_bytes = 4 << 20};
}

static void open_trace(struct view *view)
{
    struct qut_trace_options options = defaults();
    int result = qut_trace_open(&options);
    CHECK(result == 0, "%d", result);
    CHECK(view_open(view), "no view");
}

static void close_trace(struct view *view)
{
    CHECK(view_imbalance() == 0, "%ld", (long)view_imbalance());
    view_close(view);
    qut_trace_close();
    CHECK(view_imbalance() == 0, "behind its end: %ld", (long)view_imbalance());
}

static size_t last_stack(const struct view *view)
{
    return view_stack(view, view_last_node(view_self(view), 0), frames, FRAMES_MAX);
}

static struct qut_trace_counters_now counts_now(void)
{
    struct qut_trace_counters_now counts;
    qut_trace_get_counts(&counts, sizeof counts);
    return counts;
}

TEST(options_are_checked)
{
    struct qut_trace_options options = defaults();
    CHECK(qut_trace_open(NULL) == -EINVAL, "NULL");
    options.size--;
    CHECK(qut_trace_open(&options) == -EINVAL, "size");
    options = defaults();
    options.mode = 2;
    CHECK(qut_trace_open(&options) == -EINVAL, "mode");
    options = defaults();
    options.flags = 8;
    CHECK(qut_trace_open(&options) == -EINVAL, "flags");
    options = defaults();
    options.zero[2] = 1;
    CHECK(qut_trace_open(&options) == -EINVAL, "zero");
    options = defaults();
    options.segment_bytes = 1;
    CHECK(qut_trace_open(&options) < 0, "segment");
    options = defaults();
    options.path = "/nowhere/at/all";
    CHECK(qut_trace_open(&options) < 0, "path");
    CHECK(qut_trace_fd() == -1, "%d", qut_trace_fd());
    options = defaults();
    CHECK(qut_trace_open(&options) == 0, "the plain ones");
    CHECK(qut_trace_open(&options) == -EALREADY, "twice");
    qut_trace_close();
    qut_trace_close();
}

TEST(without_a_trace_nothing_happens)
{
    uintptr_t pcs[] = {1, 2};
    CHECK(qut_trace_append(pcs, 2, NULL, 0, &event) == QUT_STORED_NO_TRACE, "append");
    CHECK(qut_trace_sample(NULL, &event) == QUT_STORED_NO_TRACE, "sample");
    CHECK(qut_trace_append_node(1, &event) == QUT_STORED_NO_TRACE, "append_node");
    CHECK(qut_trace_node(0, 1, 0) == 0 && qut_trace_label_node(0, "a") == 0, "nodes");
    CHECK(qut_trace_skip() == QUT_STORED_NO_TRACE, "skip");
    CHECK(qut_trace_mark(QUT_MARK_INSTANT, 1, "a") == QUT_STORED_NO_TRACE, "mark");
    CHECK(qut_trace_own_kind("a") == -EINVAL && qut_trace_thread_register() == -EINVAL, "kinds and threads");
    qut_trace_add(0, 1);
}

TEST(stacks_of_others)
{
    struct view view;
    open_trace(&view);
    uintptr_t pcs[100];
    for (size_t i = 0; i < 100; i++)
        pcs[i] = 0x10000 + i;
    for (size_t count = 1; count < 100; count += 9) {
        // The outermost frames are the same each time.
        int stored = qut_trace_append(pcs + 100 - count, count, NULL, count & 1 ? QUT_STACK_INTERRUPTED : 0, &event);
        CHECK(stored == QUT_STORED, "%d", stored);
        CHECK(last_stack(&view) == count, "%zu, not %zu", last_stack(&view), count);
        for (size_t i = 0; i < count; i++) {
            CHECK(frames[i].pc == pcs[100 - count + i] && frames[i].class == QUT_TRACE_CLASS_RAW, "%zu of %zu: %lx", i,
                  count, (long)frames[i].pc);
            CHECK(frames[i].bits == (i == 0 && (count & 1) ? QUT_TRACE_NODE_EXACT : 0), "%zu of %zu: %u", i, count,
                  frames[i].bits);
        }
    }
    // 100 frames, and of those that were interrupted one more each.
    CHECK(counts_now().node_count <= 100 + 11, "%d", (int)counts_now().node_count);
    CHECK(qut_trace_append(pcs, 0, NULL, 0, &event) == QUT_STORED, "no frames");
    close_trace(&view);
}

TEST(why_a_stack_ended)
{
    struct view view;
    uintptr_t pcs[] = {0x111, 0x222};
    open_trace(&view);
    struct qut_end end = {.reason = QUT_END_REFUSED, .refusal = 3};
    qut_trace_append(pcs, 2, &end, 0, &event);
    CHECK(last_stack(&view) == 3, "%zu", last_stack(&view));
    CHECK(frames[2].class == QUT_TRACE_CLASS_END && frames[2].code == 1 + QUT_END_REFUSED + (3 << 8), "%u %lx",
          frames[2].class, (long)frames[2].code);
    end = (struct qut_end){.reason = QUT_END_OUTERMOST};
    qut_trace_append(pcs, 2, &end, 0, &event);
    CHECK(last_stack(&view) == 2, "%zu", last_stack(&view));
    struct qut_trace_counters_now counts = counts_now();
    CHECK(counts.cut[QUT_TRACE_CUT_WALK] == 1 && counts.stored == 2, "%d, %d", (int)counts.cut[QUT_TRACE_CUT_WALK],
          (int)counts.stored);
    close_trace(&view);
}

TEST(nodes_in_steps)
{
    struct view view;
    open_trace(&view);
    uint32_t outer = qut_trace_label_node(0, "request"), inner = qut_trace_node(outer, 0x4242, QUT_STACK_INTERRUPTED);
    CHECK(outer && inner && outer != inner, "%u %u", outer, inner);
    CHECK(qut_trace_label_node(0, "request") == outer && qut_trace_node(outer, 0x4242, 1) == inner, "the same again");
    CHECK(qut_trace_append_node(inner, &event) == QUT_STORED, "append");
    CHECK(last_stack(&view) == 2, "%zu", last_stack(&view));
    CHECK(frames[0].pc == 0x4242 && frames[0].bits == QUT_TRACE_NODE_EXACT, "%lx", (long)frames[0].pc);
    CHECK(frames[1].class == QUT_TRACE_CLASS_LABEL &&
              strcmp(view_string(&view, (uint32_t)frames[1].code), "request") == 0,
          "%u", frames[1].class);
    // What is no node.
    uint32_t nowhere = inner == 77 ? 78 : 77;
    CHECK(qut_trace_append_node(UINT32_MAX, &event) == QUT_STORED_NOT, "beyond the tree");
    CHECK(qut_trace_append_node(nowhere, &event) == QUT_STORED_NOT, "an empty place");
    CHECK(counts_now().lost[QUT_TRACE_LOST_BAD] == 2, "%d", (int)counts_now().lost[QUT_TRACE_LOST_BAD]);
    CHECK(qut_trace_node(nowhere, 1, 0) == 0, "a parent that is none");
    close_trace(&view);
}

TEST(steps_find_a_full_tree)
{
    struct view view;
    struct qut_trace_options options = defaults();
    options.segment_bytes = 1 << 20;
    options.node_bits = 10;
    CHECK(qut_trace_open(&options) == 0 && view_open(&view), "open");
    uintptr_t pc = 0x1000;
    uint32_t node = 0, last = 0;
    for (; pc < 0x1000 + 2000; pc++) {
        last = node;
        node = qut_trace_node(node, pc, 0);
        if (node == 0)
            break;
    }
    CHECK(node == 0 && last, "room for all");
    // Frames further in do not hang from the root.
    CHECK(qut_trace_node(0, 0x999, 0) == 0, "a wrong parent");
    CHECK(qut_trace_append_node(0, &event) == QUT_STORED, "append");
    CHECK(view_last_node(view_self(&view), 0) == last, "%u, not %u", view_last_node(view_self(&view), 0), last);
    CHECK(view_commit(view_self(&view), 0)->run.flags & QUT_TRACE_SAMPLE_CUT, "no flag");
    CHECK(counts_now().cut[QUT_TRACE_CUT_TREE] == 1, "%d", (int)counts_now().cut[QUT_TRACE_CUT_TREE]);
    close_trace(&view);
}

TEST(malformed_events_are_lost_and_counted)
{
    struct view view;
    open_trace(&view);
    uintptr_t pcs[] = {1};
    struct qut_extra extras[17] = {{.key = QUT_EXTRA_SIZE}};
    for (int i = 0; i < 17; i++)
        extras[i].key = QUT_EXTRA_SIZE;
    struct qut_event bad[] = {
        {.kind = 128}, {.flags = 16}, {.flags = 1}, {.extras = extras, .extra_count = 17}, {.extra_count = 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(qut_trace_append(pcs, 1, NULL, 0, &bad[i]) == QUT_STORED_NOT, "event %zu", i);
    struct qut_event good = {.kind = 127, .flags = QUT_EVENT_ON_CPU, .extras = extras, .extra_count = 16};
    CHECK(qut_trace_append(pcs, 1, NULL, 0, &good) == QUT_STORED, "the good one");
    CHECK(qut_trace_append(pcs, 1, NULL, 0, NULL) == QUT_STORED, "no event");
    struct qut_trace_counters_now counts = counts_now();
    CHECK(counts.hits == 7 && counts.stored == 2 && counts.lost[QUT_TRACE_LOST_BAD] == 5, "%d %d %d", (int)counts.hits,
          (int)counts.stored, (int)counts.lost[QUT_TRACE_LOST_BAD]);
    close_trace(&view);
}

TEST(sums_and_skips)
{
    struct view view;
    open_trace(&view);
    for (int i = 0; i < 10; i++) {
        qut_trace_add(QUT_TOTAL_ALLOCATED_BYTES, 100);
        qut_trace_skip();
    }
    qut_trace_add(16, 1); // there is none
    struct qut_trace_counters_now counts = counts_now();
    CHECK(counts.totals[QUT_TOTAL_ALLOCATED_BYTES] == 1000, "%d", (int)counts.totals[QUT_TOTAL_ALLOCATED_BYTES]);
    CHECK(counts.hits == 10 && counts.throttled == 10, "%d %d", (int)counts.hits, (int)counts.throttled);
    close_trace(&view);
    counts = counts_now();
    CHECK(counts.totals[QUT_TOTAL_ALLOCATED_BYTES] == 1000 && counts.throttled == 10, "of the last trace");
    uint64_t one[1] = {7};
    qut_trace_get_counts((void *)one, sizeof one);
    CHECK(one[0] == 10, "%d", (int)one[0]);
}

TEST(marks_are_no_hits)
{
    struct view view;
    open_trace(&view);
    CHECK(qut_trace_mark(QUT_MARK_BEGIN, 12, "GET /") == QUT_STORED, "begin");
    CHECK(qut_trace_mark(QUT_MARK_COUNTER, 5, NULL) == QUT_STORED, "no name");
    struct qut_trace_counters_now counts = counts_now();
    CHECK(counts.marks == 2 && counts.hits == 0, "%d %d", (int)counts.marks, (int)counts.hits);
    close_trace(&view);
}

TEST(own_kinds_have_names)
{
    struct view view;
    char name[32];
    open_trace(&view);
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "kind %d", i);
        CHECK(qut_trace_own_kind(name) == 64 + i, "%d", i);
    }
    CHECK(qut_trace_own_kind("kind 7") == 71, "the same again");
    CHECK(qut_trace_own_kind("one more") == -EAGAIN, "there are 64");
    CHECK(qut_trace_own_kind("") == -EINVAL, "no name");
    CHECK(strcmp(view_string(&view, view.header->kind_names[7]), "kind 7") == 0, "its name");
    close_trace(&view);
}

// ---- threads that no other thread looks after

static void *append_once(void *registers)
{
    if (registers)
        CHECK(qut_trace_thread_register() == 0, "no slot");
    uintptr_t pc = 1;
    return qut_trace_append(&pc, 1, NULL, 0, &event) < 0 ? registers : NULL;
}

TEST(slots_of_dead_threads_come_back)
{
    struct qut_trace_options options = defaults();
    options.thread_count = 8;
    CHECK(qut_trace_open(&options) == 0, "open");
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, append_once, i % 4 == 0 ? &thread : NULL);
        pthread_join(thread, NULL);
        if (i % 6 == 5)
            qut_refresh();
    }
    CHECK(counts_now().lost[QUT_TRACE_LOST_THREADS] < 20, "%d", (int)counts_now().lost[QUT_TRACE_LOST_THREADS]);
    CHECK(view_imbalance() == 0, "%ld", (long)view_imbalance());
    qut_trace_close();
}

// ---- processor time

TEST(processor_time_is_read_where_it_is_wanted)
{
    struct view view;
    struct qut_trace_options options = defaults();
    options.flags = QUT_TRACE_CPU_TIME;
    CHECK(qut_trace_open(&options) == 0 && view_open(&view), "open");
    uintptr_t pcs[] = {1, 2};
    for (volatile int i = 0; i < 3000000; i++) {
    }
    qut_trace_append(pcs, 1, NULL, 0, &(struct qut_event){.time_ns = 0});
    uint64_t units = view_commit(view_self(&view), 0)->run.cpu_time;
    CHECK(units > 0, "%d", (int)units);
    qut_trace_append(pcs, 2, NULL, 0, &(struct qut_event){.cpu_ns = 1 << 30});
    CHECK(view_commit(view_self(&view), 0)->run.cpu_time == 1 << (30 - QUT_TRACE_TIME_SHIFT), "given: %d",
          (int)view_commit(view_self(&view), 0)->run.cpu_time);
    view_close(&view);
    qut_trace_close();
}

static void run_all(void)
{
    RUN(options_are_checked);
    RUN(without_a_trace_nothing_happens);
    RUN(stacks_of_others);
    RUN(why_a_stack_ended);
    RUN(nodes_in_steps);
    RUN(steps_find_a_full_tree);
    RUN(malformed_events_are_lost_and_counted);
    RUN(sums_and_skips);
    RUN(marks_are_no_hits);
    RUN(own_kinds_have_names);
    RUN(slots_of_dead_threads_come_back);
    RUN(processor_time_is_read_where_it_is_wanted);
}

int main(void)
{
    run_all();
    struct qut_options options = {.size = sizeof options};
    if (qut_start(&options) != 0)
        return 1;
    run_all();
    qut_stop();
    return tap_finish();
}

// SPDX-License-Identifier: Apache-2.0
// Samples to slices, whatever comes: replaying the events gives each sample's stack back.
#include "tracer/export/slices.h"

#include <check.h>
#include <stdlib.h>

#include "tests/support/golden/golden.h"
#include "tests/support/run_suite.h"
#include "tests/unit/tracer/export/random_trace.h"

enum { DEPTH_MAX = 512 };

static struct trace trace;

// Each ck_assert writes to a file, also when all is well: too slow for millions of them.
static void must(bool is_true, int line)
{
    if (!is_true)
        ck_abort_msg("line %d", line);
}

struct replay {
    const struct names *names;
    uint32_t ids[DEPTH_MAX];
    size_t depth;
    uint64_t now_ns;
    size_t samples, marks, gaps, entered, left;
    size_t stop_after; // so many events
};

static bool count_event(struct replay *replay)
{
    return !replay->stop_after || replay->samples + replay->marks + replay->entered + replay->left < replay->stop_after;
}

static bool replay_enter(void *context, uint64_t time_ns, uint32_t at, size_t index)
{
    struct replay *replay = context;
    must(time_ns >= replay->now_ns, __LINE__);
    must(replay->depth < DEPTH_MAX, __LINE__);
    replay->now_ns = time_ns;
    replay->ids[replay->depth++] = names_at(replay->names, at, index)->id;
    replay->entered++;
    return count_event(replay);
}

static bool replay_leave(void *context, uint64_t time_ns, uint32_t at, size_t index)
{
    struct replay *replay = context;
    must(time_ns >= replay->now_ns, __LINE__);
    must(replay->depth > 0, __LINE__);
    replay->now_ns = time_ns;
    must(replay->ids[--replay->depth] == names_at(replay->names, at, index)->id, __LINE__);
    replay->left++;
    return count_event(replay);
}

static bool replay_sample(void *context, const struct trace_sample *here)
{
    struct replay *replay = context;
    size_t depth = replay->depth;
    const struct trace_node *nodes = trace.nodes;
    for (uint32_t at = here->node; at; at = nodes[at].parent)
        for (size_t i = 0; i < names_count(replay->names, at); i++) {
            must(depth > 0, __LINE__);
            must(replay->ids[--depth] == names_at(replay->names, at, i)->id, __LINE__);
        }
    must(depth == 0, __LINE__);
    replay->samples++;
    return count_event(replay);
}

static bool replay_mark(void *context, const struct trace_mark *mark)
{
    struct replay *replay = context;
    if (mark->kind == QUT_TRACE_MARK_BEGIN || mark->kind == QUT_TRACE_MARK_END)
        must(replay->depth == 0, __LINE__);
    replay->marks++;
    return count_event(replay);
}

static bool replay_gap(void *context, const struct trace_gap *gap)
{
    struct replay *replay = context;
    (void)gap;
    must(replay->depth == 0, __LINE__);
    replay->gaps++;
    return true;
}

static void replay_thread(const struct names *names, const struct trace_thread *thread, uint64_t gap_ns)
{
    static struct replay replay;
    replay = (struct replay){.names = names};
    struct slice_events events = {&replay, replay_enter, replay_leave, replay_sample, replay_mark, replay_gap};
    ck_assert(export_slices_of_thread(&trace, names, thread, &(struct slice_options){gap_ns}, &events));
    ck_assert_uint_eq(replay.depth, 0);
    ck_assert_uint_eq(replay.samples, thread->sample_count);
    ck_assert_uint_eq(replay.marks, thread->mark_count);
    ck_assert_uint_eq(replay.gaps, thread->gap_count);
    // Half way through, the caller has enough.
    size_t half = (replay.samples + replay.entered) / 2;
    if (half < 2)
        return;
    replay = (struct replay){.names = names, .stop_after = half};
    ck_assert(!export_slices_of_thread(&trace, names, thread, &(struct slice_options){gap_ns}, &events));
}

static void replay_all(void)
{
    struct base_error error = {0};
    struct names *names = names_of(&trace, &(struct names_options){0}, &error);
    ck_assert_ptr_nonnull(names);
    for (size_t i = 0; i < trace.thread_count; i++) {
        replay_thread(names, &trace.threads[i], 0);
        replay_thread(names, &trace.threads[i], analysis_weights_gap_ns(&trace, &trace.threads[i]));
        replay_thread(names, &trace.threads[i], 1);
    }
    names_free(names);
}

START_TEST(replay_golden)
{
    golden_trace(&trace);
    replay_all();
    golden_free(&trace);
}
END_TEST

START_TEST(replay_large)
{
    golden_large(&trace, 100000, 3, 60);
    replay_all();
    golden_free(&trace);
}
END_TEST

START_TEST(replay_random)
{
    for (unsigned i = 0; i < 20; i++) {
        random_trace(&trace, (unsigned)_i * 20 + i + 1);
        replay_all();
        build_free(&trace);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replayed slices");
    TCase *tests = tcase_create("replayed slices");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, replay_golden);
    tcase_add_test(tests, replay_large);
    tcase_add_loop_test(tests, replay_random, 0, 50);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}

// SPDX-License-Identifier: Apache-2.0
// Segments read: as they were closed, as they stand while they are written, as a process that died left them.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/run_suite.h"
#include "tests/unit/tracer/trace/heavy.h"
#include "tests/unit/tracer/trace/maker.h"
#include "tracer/trace/raw_trace.h"

static struct trace read_made(int fd)
{
    struct trace trace;
    struct base_error error = {0};
    int result = trace_read_fd(fd, "made", &trace, &error);
    char text[256];
    ck_assert_msg(result == 0, "%s", base_error_text(&error, text, sizeof text));
    return trace;
}

static void check_all(const struct maker_options *options, size_t steps, bool closes, bool all)
{
    struct maker maker;
    maker_begin(&maker, options);
    int fd = dup(maker.segment.fd);
    maker_run(&maker, options, steps);
    if (closes)
        maker_close(&maker);
    struct trace trace = read_made(fd);
    maker_compare(&maker, &trace, all);
    ck_assert(trace.is_complete == closes);
    if (!all)
        ck_assert_uint_gt(trace.overwritten_samples, 0);
    if (!closes)
        segment_unmap(&maker.segment);
    trace_free(&trace);
    maker_free(&maker);
    close(fd);
}

START_TEST(test_closed)
{
    check_all(&(struct maker_options){.segment_bytes = 4 << 20, .mode = (uint32_t)_i & 1, .seed = 3 + (uint64_t)_i},
              20000, true, true);
}
END_TEST

START_TEST(test_not_closed)
{
    check_all(&(struct maker_options){.segment_bytes = 4 << 20, .seed = 30 + (uint64_t)_i},
              1 + (size_t)(1000 * _i * _i), false, true);
}
END_TEST

START_TEST(test_overwritten)
{
    check_all(&(struct maker_options){.segment_bytes = 1 << 20, .seed = 70 + (uint64_t)_i}, 300000, _i & 1, false);
}
END_TEST

START_TEST(test_at_each_step)
{
    const struct maker_options options = {.segment_bytes = 1 << 20, .seed = 9};
    struct maker maker;
    maker_begin(&maker, &options);
    for (int i = 0; i < 600; i++) {
        maker_run(&maker, &options, i < 300 ? 1 : 100);
        struct trace trace = read_made(maker.segment.fd);
        maker_compare(&maker, &trace, false);
        trace_free(&trace);
    }
    segment_close(&maker.segment);
    maker_free(&maker);
}
END_TEST

// A sample from before the last one stands at that one's time in the chunk, and has its own time when it is read.
START_TEST(test_out_of_order)
{
    enum { UNIT_NS = 1 << QUT_TRACE_TIME_SHIFT };
    struct maker maker;
    maker_begin(&maker, &(struct maker_options){.segment_bytes = 1 << 20, .seed = 5});
    struct segment *segment = &maker.segment;
    struct qut_trace_thread *slot = maker.threads[0].slot;
    const uint64_t now_ns = (maker.now_ns / UNIT_NS + 100000) * UNIT_NS, earlier_ns = now_ns - 2500077;
    const uint64_t times_ns[] = {now_ns, earlier_ns, now_ns + UNIT_NS};
    for (uint32_t i = 0; i < 3; i++) {
        struct qut_trace_writer *writer = segment_begin(slot, 0, 0, 0);
        const struct segment_sample sample = {.time_ns = times_ns[i], .node = maker.stacks[i], .kind = 1};
        ck_assert_int_ge(segment_append(segment, slot, writer, &sample), 0);
        segment_end_of(slot);
    }
    struct trace trace = read_made(segment->fd);
    ck_assert_uint_eq(trace.sample_count, 3);
    ck_assert_uint_eq(trace.samples[0].first_ns, earlier_ns);
    ck_assert_uint_eq(trace.samples[0].last_ns, earlier_ns);
    ck_assert_uint_eq(trace.samples[0].extra_count, 0);
    ck_assert_uint_eq(trace.samples[1].first_ns, now_ns);
    ck_assert_uint_eq(trace.samples[2].first_ns, now_ns + UNIT_NS);
    trace_free(&trace);
    segment_close(segment);
    maker_free(&maker);
}
END_TEST

// ---- while others write

enum { LIVE_THREADS = 3, LIVE_NODES = 50 };

struct live {
    struct segment *segment;
    uint32_t nodes[LIVE_NODES];
};

// Threads that come and go, so that slots change hands, and append as fast as they can.
static void *append_for_ever(void *context)
{
    const struct live *live = context;
    uint64_t random = (uint64_t)(uintptr_t)&random, time_ns = 1000000000;
    for (uint32_t tid = 1;; tid++) {
        struct qut_trace_thread *thread = segment_thread_begin(live->segment, tid, "live", time_ns);
        for (int i = 0; thread && i < 30000; i++) {
            unsigned level = maker_random(&random) % 16 ? 0 : 1;
            struct qut_trace_writer *writer = segment_begin(thread, 0, 0, 0);
            if (level)
                writer = segment_begin(thread, 0, 0, 0);
            const struct segment_sample sample = {.time_ns = time_ns += 1 + maker_random(&random) % 100000,
                                                  .node = live->nodes[maker_random(&random) % LIVE_NODES],
                                                  .kind = 1};
            if (i % 7)
                segment_append(live->segment, thread, writer, &sample);
            else
                segment_skip(writer);
            if (level)
                segment_end_of(thread);
            segment_end_of(thread);
        }
        if (thread)
            segment_thread_end(live->segment, thread, time_ns);
    }
    return NULL;
}

static pid_t start_live(struct segment *segment)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct live live = {.segment = segment};
    for (uint32_t i = 0; i < LIVE_NODES; i++)
        live.nodes[i] = segment_node(segment, i ? live.nodes[i / 2] : 0, segment_raw(segment, 4096 + i),
                                     QUT_TRACE_CLASS_RAW << QUT_TRACE_CLASS_SHIFT);
    pthread_t threads[LIVE_THREADS];
    for (int i = 0; i < LIVE_THREADS; i++)
        pthread_create(&threads[i], NULL, append_for_ever, &live);
    pthread_join(threads[0], NULL);
    _exit(0);
}

static void check_live(int fd, bool is_dead)
{
    struct trace trace;
    struct base_error error = {0};
    ck_assert_int_eq(trace_read_fd(fd, "live", &trace, &error), 0);
    struct trace_balance balance = trace_balance(&trace);
    if (balance.hits_missing || balance.samples_missing || trace.damaged_chunks || trace.damaged_samples)
        ck_abort_msg("%s: %jd hits, %jd samples, %ju chunks: %s", is_dead ? "dead" : "live",
                     (intmax_t)balance.hits_missing, (intmax_t)balance.samples_missing, (uintmax_t)trace.damaged_chunks,
                     trace.damage_count ? trace.damages[0] : "");
    trace_free(&trace);
}

START_TEST(test_live)
{
    struct segment segment;
    // Where nothing is overwritten, one sample too many or too few is seen; until it is full.
    bool is_stream = _i == 1;
    const struct segment_options options = {.segment_bytes = is_stream ? 8 << 20 : 2 << 20,
                                            .mode = is_stream ? QUT_TRACE_STREAM : QUT_TRACE_OVERWRITE,
                                            .thread_count = 6,
                                            .node_bits = 10,
                                            .merge_gap_ns = 1000000,
                                            .pid = 1,
                                            .word_bytes = 8};
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(segment_create(&segment, &options), 0);
        int fd = dup(segment.fd);
        pid_t child = start_live(&segment);
        for (int i = 0; i < (is_stream ? 4 : 10); i++)
            check_live(fd, false);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        check_live(fd, true);
        segment_unmap(&segment);
        close(fd);
    }
}
END_TEST

// ---- spoiled

// A segment has no checksum for all of it: what is asked is that the reader lives, and every index it gives is one.
static void check_indices(const struct trace *trace)
{
    for (size_t i = 0; i < trace->sample_count; i++) {
        const struct trace_sample *sample = &trace->samples[i];
        bool is_good = sample->node < trace->node_count &&
                       (size_t)sample->first_extra + sample->extra_count <= trace->extra_count &&
                       (sample->metrics == TRACE_NONE || sample->metrics < trace->metrics_count);
        if (!is_good)
            ck_abort_msg("sample %zu", i);
    }
    for (size_t i = 1; i < trace->node_count; i++) {
        const struct trace_node *node = &trace->nodes[i];
        if (node->parent >= i || (node->module != TRACE_NONE && node->module >= trace->module_count) ||
            node->class_ >= QUT_TRACE_CLASS_COUNT)
            ck_abort_msg("node %zu", i);
    }
    size_t samples = 0;
    for (size_t i = 0; i < trace->thread_count; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        samples += thread->sample_count;
        if (thread->first_sample + thread->sample_count > trace->sample_count ||
            thread->first_mark + thread->mark_count > trace->mark_count ||
            thread->first_gap + thread->gap_count > trace->gap_count)
            ck_abort_msg("thread %zu", i);
    }
    if (samples != trace->sample_count)
        ck_abort_msg("samples of no thread");
}

START_TEST(test_spoiled)
{
    struct maker maker;
    const struct maker_options options = {.segment_bytes = 1 << 20, .seed = 40 + (uint64_t)_i};
    maker_begin(&maker, &options);
    maker_run(&maker, &options, 3000);
    size_t size = options.segment_bytes;
    uint8_t *bytes = aligned_alloc(64, size);
    uint64_t random = 99 + (uint64_t)_i;
    for (int round = 0; round < (int)heavy_times(250); round++) {
        memcpy(bytes, maker.segment.header, size);
        // Half of them where most depends on it.
        size_t bound = round & 1 ? 64 << 10 : size;
        for (int i = 0; i < 1 + round % 40; i++)
            bytes[maker_random(&random) % bound] ^= (uint8_t)(1u << maker_random(&random) % 8);
        struct trace trace;
        struct base_error error = {0};
        if (trace_read_bytes(bytes, size, "spoiled", &trace, &error) == 0) {
            check_indices(&trace);
            trace_free(&trace);
        } else if (!error.reason) {
            ck_abort_msg("an error without a reason");
        }
    }
    free(bytes);
    segment_close(&maker.segment);
    maker_free(&maker);
}
END_TEST

// A sealed chunk that is spoiled loses itself, and is counted.
START_TEST(test_one_chunk_spoiled)
{
    struct maker maker;
    const struct maker_options options = {.segment_bytes = 2 << 20, .mode = QUT_TRACE_STREAM, .seed = 55};
    maker_begin(&maker, &options);
    maker_run(&maker, &options, 30000);
    struct segment *segment = &maker.segment;
    uint32_t spoiled = 0;
    uint64_t lost = 0;
    for (uint32_t i = 0; i < segment->chunk_count && spoiled < 10; i++) {
        struct qut_trace_chunk *chunk = (void *)(segment->chunks + (size_t)i * QUT_TRACE_CHUNK_BYTES);
        if ((segment->directory[i] & 3) != QUT_TRACE_CHUNK_SEALED)
            continue;
        ((uint8_t *)chunk)[100 + 300 * spoiled] ^= 4;
        lost += chunk->sample_count;
        spoiled++;
    }
    struct trace trace = read_made(segment->fd);
    ck_assert_uint_eq(trace.damaged_chunks, 10);
    ck_assert_uint_eq(trace.damaged_samples, lost);
    ck_assert(!trace.is_complete);
    ck_assert_uint_ge(trace.damage_count, 10);
    ck_assert_int_eq(trace_balance(&trace).samples_missing, 0);
    trace_free(&trace);
    segment_close(segment);
    maker_free(&maker);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace_segment");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120 * (double)heavy_times(1));
    tcase_add_loop_test(all, test_closed, 0, 4);
    tcase_add_loop_test(all, test_not_closed, 0, 6);
    tcase_add_loop_test(all, test_overwritten, 0, 4);
    tcase_add_test(all, test_out_of_order);
    tcase_add_test(all, test_at_each_step);
    tcase_add_loop_test(all, test_live, 0, 2);
    tcase_add_loop_test(all, test_spoiled, 0, 2);
    tcase_add_test(all, test_one_chunk_spoiled);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}

// SPDX-License-Identifier: Apache-2.0
// A file that is read while it is written, and how processes may end: what is whole, and what is said of the rest.
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/run_suite.h"
#include "tests/unit/tracer/trace/files.h"
#include "tests/unit/tracer/trace/maker.h"
#include "tracer/collect/collect.h"

static void *follow(void *context)
{
    struct collect_options *options = context;
    struct collect_result result;
    struct base_error error = {0};
    return collect(options, &result, &error) == 0 && result.has_trailer ? options : NULL;
}

// Chunks that are not full are in the file, too, before it is finished; and not twice when it is.
START_TEST(test_in_progress)
{
    struct maker maker;
    const struct maker_options options = {
        .segment_bytes = 2 << 20, .mode = QUT_TRACE_STREAM, .seed = 3, .no_extras = true};
    int stop[2], fd = new_file();
    pthread_t thread;
    ck_assert_int_eq(pipe(stop), 0);
    maker_begin(&maker, &options);
    struct collect_options collected = {.segment_fd = maker.segment.fd,
                                        .file_fd = fd,
                                        .follow = true,
                                        .interval_ms = 5,
                                        .stop_fd = stop[0],
                                        .process_fd = -1};
    ck_assert_int_eq(pthread_create(&thread, NULL, follow, &collected), 0);
    for (unsigned round = 1; round <= 2; round++) {
        maker_run(&maker, &options, 40); // some hundred bytes: no chunk gets full
        for (uint64_t present = 0, told = 1; present != told || !present;) {
            struct trace trace;
            struct base_error error = {0};
            usleep(10000);
            if (trace_read_fd(fd, "file", &trace, &error) != 0)
                continue; // nothing is in it yet
            struct trace_balance balance = trace_balance(&trace);
            ck_assert(!balance.hits_missing && !balance.samples_missing);
            ck_assert(!trace.is_complete);
            struct trace now;
            ck_assert_int_eq(trace_read_fd(maker.segment.fd, "segment", &now, &error), 0);
            present = trace.present_samples;
            told = now.present_samples;
            trace_free(&now);
            trace_free(&trace);
        }
    }
    maker_close(&maker);
    void *finished;
    pthread_join(thread, &finished);
    ck_assert_ptr_nonnull(finished);
    struct trace trace = read_file(fd);
    ck_assert(trace.is_complete);
    maker_compare(&maker, &trace, true);
    trace_free(&trace);
    maker_free(&maker);
    close(stop[0]);
    close(stop[1]);
    close(fd);
}
END_TEST

static const struct trace_note *note_end(void *context, size_t *count)
{
    *count = ((const struct trace_note *)context)->name != NULL;
    return context;
}

// What did not close its trace, but said that it goes, is whole.
START_TEST(test_ends)
{
    static struct trace_note notes[] = {{.name = NULL},
                                        {.name = "ticks-due", .value = 7},
                                        {.name = "recording-ended", .text = "exec"},
                                        {.name = "recording-ended", .text = "ended"}};
    static const bool whole[] = {false, true, true, false};
    int all = new_file();
    for (unsigned i = 0; i < 4; i++) {
        struct maker maker;
        const struct maker_options options = {.segment_bytes = 2 << 20, .seed = 3 + i};
        int fd = new_file();
        maker_begin(&maker, &options);
        maker_run(&maker, &options, 100);
        struct collect_result result;
        struct base_error error = {0};
        const struct collect_options collected = {.segment_fd = maker.segment.fd,
                                                  .file_fd = fd,
                                                  .stop_fd = -1,
                                                  .process_fd = -1,
                                                  .notes = note_end,
                                                  .notes_context = &notes[i]};
        ck_assert_int_eq(collect(&collected, &result, &error), 0);
        struct trace trace = read_file(fd);
        ck_assert_int_eq(trace.is_complete, whole[i]);
        ck_assert_uint_eq(trace.damage_count, !whole[i]);
        ck_assert_uint_eq(trace.processes[0].end, i == 2 ? QUT_TRACE_FILE_END_EXEC : QUT_TRACE_FILE_END_DIED);
        trace_free(&trace);
        struct base_error failure = {0};
        ck_assert_int_eq(collect_append(all, fd, &failure), 0);
        close(fd);
        segment_close(&maker.segment);
        maker_free(&maker);
    }
    struct trace trace = read_file(all);
    ck_assert(!trace.is_complete);
    ck_assert_uint_eq(trace.damage_count, 1); // of both together
    ck_assert_str_eq(trace.damages[0],
                     "2 processes ended without closing their trace; all that they had stored is here");
    trace_free(&trace);
    close(all);
}
END_TEST

int main(void)
{
    TCase *all = tcase_create("ends");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, test_in_progress);
    tcase_add_test(all, test_ends);
    Suite *suite = suite_create("trace");
    suite_add_tcase(suite, all);
    return run_suite(suite);
}

// SPDX-License-Identifier: Apache-2.0
// .qtrace files: what a collector writes while samples come, read again; cut off, spoiled, without room.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/run_suite.h"
#include "tests/unit/tracer/trace/files.h"
#include "tests/unit/tracer/trace/heavy.h"
#include "tests/unit/tracer/trace/maker.h"
#include "tracer/collect/collect.h"
#include "tracer/trace/raw_trace.h"

// What was put into it, as a file.
static int make_file(struct maker *maker, const struct maker_options *options, size_t steps)
{
    maker_begin(maker, options);
    maker_run(maker, options, steps);
    int segment_fd = dup(maker->segment.fd), file_fd = new_file();
    maker_close(maker);
    struct collect_result result = collect_once(segment_fd, file_fd);
    ck_assert(result.has_trailer);
    ck_assert_uint_eq(result.failed_writes, 0);
    close(segment_fd);
    return file_fd;
}

START_TEST(test_round_trip)
{
    struct maker maker;
    const struct maker_options options = {.segment_bytes = 4 << 20, .mode = (uint32_t)_i & 1, .seed = 5};
    int fd = make_file(&maker, &options, 20000);
    struct trace trace = read_file(fd);
    maker_compare(&maker, &trace, true);
    ck_assert(trace.is_complete);
    ck_assert_uint_eq(trace.damage_count, 0);
    trace_free(&trace);
    maker_free(&maker);
    close(fd);
}
END_TEST

START_TEST(test_stopped_or_died)
{
    struct maker maker;
    const struct maker_options options = {.segment_bytes = 4 << 20, .seed = 6};
    maker_begin(&maker, &options);
    maker_run(&maker, &options, 7000);
    int fd = new_file();
    ck_assert_uint_eq(collect_once(maker.segment.fd, fd).end, QUT_TRACE_FILE_END_DIED);
    struct trace trace = read_file(fd);
    maker_compare(&maker, &trace, true);
    ck_assert(!trace.is_complete);
    ck_assert_uint_eq(trace.damaged_samples, 0);
    trace_free(&trace);
    segment_close(&maker.segment);
    maker_free(&maker);
    close(fd);
}
END_TEST

// ---- while it is written

struct follower {
    struct collect_options options;
    struct collect_result result;
    pthread_t thread;
    int stop[2];
};

static void *follow(void *context)
{
    struct follower *follower = context;
    struct base_error error = {0};
    if (collect(&follower->options, &follower->result, &error) != 0)
        abort();
    return NULL;
}

static void begin_following(struct follower *follower, int segment_fd, int file_fd)
{
    ck_assert_int_eq(pipe(follower->stop), 0);
    follower->options = (struct collect_options){.segment_fd = segment_fd,
                                                 .file_fd = file_fd,
                                                 .follow = true,
                                                 .interval_ms = 1,
                                                 .stop_fd = follower->stop[0],
                                                 .process_fd = -1};
    ck_assert_int_eq(pthread_create(&follower->thread, NULL, follow, follower), 0);
}

static void end_following(struct follower *follower)
{
    pthread_join(follower->thread, NULL);
    close(follower->stop[0]);
    close(follower->stop[1]);
}

// Odd: stopped while the segment goes on.
START_TEST(test_follow)
{
    struct maker maker;
    struct follower follower;
    const struct maker_options options = {
        .segment_bytes = 2 << 20, .mode = (_i & 2) ? QUT_TRACE_STREAM : QUT_TRACE_OVERWRITE, .seed = 8 + (uint64_t)_i};
    maker_begin(&maker, &options);
    int segment_fd = dup(maker.segment.fd), file_fd = new_file();
    begin_following(&follower, segment_fd, file_fd);
    for (int i = 0; i < 60; i++) {
        maker_run(&maker, &options, 2500);
        usleep(2000);
    }
    if (_i & 1)
        ck_assert_int_eq(write(follower.stop[1], "x", 1), 1);
    else
        maker_close(&maker);
    end_following(&follower);
    if (_i & 1)
        maker_close(&maker);
    struct trace trace = read_file(file_fd);
    bool is_stream = options.mode == QUT_TRACE_STREAM;
    maker_compare(&maker, &trace, is_stream);
    ck_assert(trace.is_complete);
    ck_assert_uint_eq(trace.damaged_samples, 0);
    ck_assert_uint_eq(follower.result.end, _i & 1 ? QUT_TRACE_FILE_END_STOPPED : QUT_TRACE_FILE_END_CLOSED);
    // More than the segment ever holds.
    ck_assert_uint_gt(trace.present_samples, 60000);
    trace_free(&trace);
    maker_free(&maker);
    close(segment_fd);
    close(file_fd);
}
END_TEST

// ---- damage

struct bytes {
    uint8_t *data;
    size_t size;
};

static struct bytes load(int fd)
{
    struct stat status;
    ck_assert_int_eq(fstat(fd, &status), 0);
    struct bytes bytes = {.size = (size_t)status.st_size};
    void *data = NULL;
    ck_assert_int_eq(posix_memalign(&data, 64, bytes.size), 0);
    bytes.data = data;
    ck_assert_int_eq(pread(fd, data, bytes.size, 0), (ssize_t)bytes.size);
    return bytes;
}

// Whatever was spoiled: an error that says why; or what is good, and that it is not all.
static uint64_t read_spoiled(uint8_t *bytes, size_t size, uint64_t all_samples, const char *what, size_t at)
{
    struct trace trace;
    struct base_error error = {0};
    if (trace_read_bytes(bytes, size, "spoiled", &trace, &error) != 0) {
        if (!error.reason)
            ck_abort_msg("%s at %zu: an error without a reason", what, at);
        return 0;
    }
    uint64_t present = trace.present_samples;
    if (trace.is_complete)
        ck_abort_msg("%s at %zu: called complete", what, at);
    if (trace.damage_count == 0)
        ck_abort_msg("%s at %zu: nothing said", what, at);
    if (present > all_samples)
        ck_abort_msg("%s at %zu: more than there was", what, at);
    for (size_t i = 0; i < trace.sample_count; i++)
        if (trace.samples[i].node >= trace.node_count)
            ck_abort_msg("%s at %zu: a node that is not there", what, at);
    trace_free(&trace);
    return present;
}

static void cut_at(const struct bytes *bytes, uint8_t *copy, size_t size, uint64_t all)
{
    memcpy(copy, bytes->data, size);
    read_spoiled(copy, size, all, "cut off", size);
}

START_TEST(test_cut_off)
{
    struct maker maker;
    int fd =
        make_file(&maker, &(struct maker_options){.segment_bytes = 2 << 20, .seed = 11 + 100 * (uint64_t)_i}, 30000);
    struct bytes bytes = load(fd);
    struct trace trace = read_file(fd);
    uint64_t all = trace.present_samples;
    trace_free(&trace);
    uint8_t *copy = aligned_alloc(64, (bytes.size + 63) & ~(size_t)63);
    ck_assert_ptr_nonnull(copy);
    const uint32_t magic = QUT_TRACE_FILE_BLOCK_MAGIC;
    for (size_t at = 0; at + 4 <= bytes.size; at++)
        if (memcmp(bytes.data + at, &magic, 4) == 0)
            cut_at(&bytes, copy, at, all);
    uint64_t random = 77 + (uint64_t)_i;
    for (unsigned i = 0; i < heavy_times(300); i++)
        cut_at(&bytes, copy, maker_random(&random) % bytes.size, all);
    free(copy);
    free(bytes.data);
    maker_free(&maker);
    close(fd);
}
END_TEST

START_TEST(test_spoiled_bytes)
{
    struct maker maker;
    int fd =
        make_file(&maker, &(struct maker_options){.segment_bytes = 2 << 20, .seed = 12 + 100 * (uint64_t)_i}, 3000);
    struct bytes bytes = load(fd);
    struct trace trace = read_file(fd);
    uint64_t all = trace.present_samples;
    trace_free(&trace);
    uint64_t random = 5 + (uint64_t)_i;
    for (size_t at = 0; at < bytes.size; at += 1 + maker_random(&random) % (bytes.size / 400)) {
        uint8_t old = bytes.data[at];
        bytes.data[at] ^= (uint8_t)(1 + maker_random(&random) % 255);
        read_spoiled(bytes.data, bytes.size, all, "a spoiled byte", at);
        bytes.data[at] = old;
    }
    free(bytes.data);
    maker_free(&maker);
    close(fd);
}
END_TEST

// A block of chunks that is spoiled costs its samples, and no others.
START_TEST(test_one_block_lost)
{
    struct maker maker;
    int fd = make_file(&maker, &(struct maker_options){.segment_bytes = 8 << 20, .seed = 13, .mode = QUT_TRACE_STREAM},
                       150000);
    struct bytes bytes = load(fd);
    struct trace trace = read_file(fd);
    uint64_t all = trace.present_samples;
    trace_free(&trace);
    unsigned chunk_blocks = 0;
    uint64_t lost_sum = 0;
    for (size_t at = sizeof(struct qut_trace_file_header); at < bytes.size;) {
        struct qut_trace_file_block block;
        memcpy(&block, bytes.data + at, sizeof block);
        size_t middle = at + sizeof block + block.packed_bytes / 2;
        if (block.type == QUT_TRACE_FILE_CHUNK_PLANES) {
            bytes.data[middle] ^= 0x10;
            ck_assert_int_eq(trace_read_bytes(bytes.data, bytes.size, "spoiled", &trace, NULL), 0);
            ck_assert_uint_eq(trace.damaged_blocks, 1);
            ck_assert_uint_eq(trace.present_samples + trace.damaged_samples, all);
            ck_assert_int_eq(trace_balance(&trace).samples_missing, 0);
            ck_assert(!trace.is_complete);
            ck_assert_uint_gt(trace.gap_count, 0);
            lost_sum += all - trace.present_samples;
            trace_free(&trace);
            bytes.data[middle] ^= 0x10;
            chunk_blocks++;
        }
        at += sizeof block + block.packed_bytes;
    }
    ck_assert_uint_gt(chunk_blocks, 2);
    ck_assert_uint_eq(lost_sum, all);
    free(bytes.data);
    maker_free(&maker);
    close(fd);
}
END_TEST

START_TEST(test_no_trace)
{
    static const char *const texts[] = {"", "QUT", "no trace of anything, and long enough to be one of something",
                                        "QUTTrac\x01", "QUTSegm\x01"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        alignas(64) uint8_t bytes[128] = {0};
        struct trace trace;
        struct base_error error = {0};
        memcpy(bytes, texts[i], strlen(texts[i]));
        ck_assert_int_eq(trace_read_bytes(bytes, i < 2 ? strlen(texts[i]) : sizeof bytes, "x", &trace, &error), -1);
        ck_assert_uint_ne(error.reason, BASE_OK);
    }
    struct trace trace;
    struct base_error error = {0};
    ck_assert_int_eq(trace_read("/nowhere/at/all", &trace, &error), -1);
    ck_assert_uint_eq(error.reason, BASE_ERR_IO);
}
END_TEST

// ---- no room

// Files may grow to so much only: writes fail as on a full disk.
START_TEST(test_no_room)
{
    struct maker maker;
    const struct maker_options options = {
        .segment_bytes = 2 << 20, .mode = (_i & 1) ? QUT_TRACE_STREAM : QUT_TRACE_OVERWRITE, .seed = 17};
    maker_begin(&maker, &options);
    maker_run(&maker, &options, 40000);
    int segment_fd = dup(maker.segment.fd);
    maker_close(&maker);
    char path[] = "/tmp/qut-no-room-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    unlink(path);
    signal(SIGXFSZ, SIG_IGN);
    static const rlim_t limits[] = {10, 64, 3000, 20000, 60000, 100000, 150000};
    struct rlimit all;
    getrlimit(RLIMIT_FSIZE, &all);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        ck_assert_int_eq(ftruncate(fd, 0), 0);
        struct rlimit limit = {limits[i], all.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
        struct collect_result result = collect_once(segment_fd, fd);
        setrlimit(RLIMIT_FSIZE, &all);
        ck_assert_uint_gt(result.failed_writes, 0);
        ck_assert_uint_eq(result.first_failure.reason, BASE_ERR_IO);
        struct trace trace;
        struct base_error error = {0};
        if (trace_read_fd(fd, "file", &trace, &error) != 0) {
            ck_assert_uint_lt(limits[i], 20000);
            continue;
        }
        ck_assert(!trace.is_complete);
        ck_assert_uint_gt(trace.damage_count, 0);
        ck_assert_int_eq(trace_balance(&trace).samples_missing, 0);
        trace_free(&trace);
    }
    maker_free(&maker);
    close(fd);
    close(segment_fd);
}
END_TEST

// A collector that is killed leaves what it had written.
START_TEST(test_killed_collector)
{
    struct maker maker;
    const struct maker_options options = {.segment_bytes = 2 << 20, .mode = QUT_TRACE_STREAM, .seed = 19};
    maker_begin(&maker, &options);
    int file_fd = new_file();
    pid_t child = fork();
    if (child == 0) {
        struct collect_result result;
        const struct collect_options followed = {.segment_fd = maker.segment.fd,
                                                 .file_fd = file_fd,
                                                 .follow = true,
                                                 .interval_ms = 1,
                                                 .stop_fd = -1,
                                                 .process_fd = -1};
        _exit(collect(&followed, &result, NULL) != 0);
    }
    struct stat status = {0};
    // Until it is in the middle of it.
    for (int i = 0; i < 4000 && status.st_size < 200000; i++) {
        maker_run(&maker, &options, 500);
        usleep(1000);
        ck_assert_int_eq(fstat(file_fd, &status), 0);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    struct trace trace = read_file(file_fd);
    ck_assert(!trace.is_complete);
    ck_assert_uint_gt(trace.present_samples, 10000);
    ck_assert_int_eq(trace_balance(&trace).samples_missing, 0);
    trace_free(&trace);
    maker_close(&maker);
    maker_free(&maker);
    close(file_fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace_file");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120 * (double)heavy_times(1));
    tcase_add_loop_test(all, test_round_trip, 0, 2);
    tcase_add_test(all, test_stopped_or_died);
    tcase_add_loop_test(all, test_follow, 0, 4);
    tcase_add_loop_test(all, test_cut_off, 0, (int)heavy_times(1));
    tcase_add_loop_test(all, test_spoiled_bytes, 0, (int)heavy_times(1));
    tcase_add_test(all, test_one_block_lost);
    tcase_add_test(all, test_no_trace);
    tcase_add_loop_test(all, test_no_room, 0, 2);
    tcase_add_test(all, test_killed_collector);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}

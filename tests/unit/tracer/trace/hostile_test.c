// SPDX-License-Identifier: Apache-2.0
// Segments of a program that does what it likes with them while they are read and collected: cuts them short, spoils
// the lists that the collector writes to.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/run_suite.h"
#include "tests/unit/tracer/trace/maker.h"
#include "tracer/collect/collect.h"
#include "tracer/trace/mapping_guard.h"
#include "tracer/trace/raw_trace.h"
#include "tracer/trace/segment_view.h"

enum { STEPS = 60000 };

static int new_file(void)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

// A segment that no process has mapped, and whose file is not sealed.
static int unsealed_segment(uint32_t mode)
{
    struct maker maker;
    maker_begin(&maker, &(struct maker_options){.segment_bytes = 2 << 20, .mode = mode, .seed = 3});
    maker_run(&maker, &(struct maker_options){0}, STEPS);
    int fd = new_file();
    ck_assert_int_eq(write(fd, maker.segment.header, 2 << 20), 2 << 20);
    segment_unmap(&maker.segment);
    maker_free(&maker);
    return fd;
}

// To nothing, in its first pages, and in the middle.
START_TEST(test_cut_while_it_is_mapped)
{
    static const off_t sizes[] = {0, 4096, 12288, 65536, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int fd = unsealed_segment(QUT_TRACE_OVERWRITE);
        struct trace_segment_view view;
        ck_assert_int_eq(trace_segment_map(&view, fd, false, NULL), 0);
        ck_assert_int_eq(ftruncate(fd, sizes[i]), 0);
        struct trace_memory *memory = trace_memory_new();
        struct image image = trace_image_new(memory);
        struct base_error error = {0};
        ck_assert_int_eq(trace_image_of_segment(&image, &view, &error), -1);
        ck_assert_uint_eq(error.reason, BASE_ERR_TRUNCATED);
        ck_assert(trace_segment_was_cut(&view));
        trace_memory_free(memory);
        trace_segment_unmap(&view);
        close(fd);
    }
}
END_TEST

// A place that is given back is a new one: many, one after the other, and many at once; where there are none, it is
// said.
START_TEST(test_many_mappings)
{
    enum { AT_ONCE = 1000, GUARDS_MOST = 1 << 20 };
    int fd = unsealed_segment(QUT_TRACE_OVERWRITE);
    struct trace_segment_view *views = calloc(AT_ONCE, sizeof *views), more;
    struct guard **guards = calloc(GUARDS_MOST, sizeof(*guards));
    struct base_error error = {0};
    ck_assert(views && guards);
    for (int round = 0; round < 100; round++) {
        ck_assert_int_eq(trace_segment_map(&views[0], fd, false, NULL), 0);
        ck_assert(!trace_segment_was_cut(&views[0]));
        trace_segment_unmap(&views[0]);
    }
    for (int i = 0; i < AT_ONCE; i++)
        ck_assert_int_eq(trace_segment_map(&views[i], fd, false, NULL), 0);
    int taken = 0;
    while (taken < GUARDS_MOST && (guards[taken] = trace_guard_begin((void *)8, 0)) != NULL)
        taken++;
    ck_assert_int_lt(taken, GUARDS_MOST);
    ck_assert_int_eq(trace_segment_map(&more, fd, false, &error), -1);
    ck_assert_uint_eq(error.reason, BASE_ERR_NO_MEMORY);
    while (taken)
        trace_guard_end(guards[--taken]);
    for (int i = 0; i < AT_ONCE; i++)
        trace_segment_unmap(&views[i]);
    free(guards);
    free(views);
    close(fd);
}
END_TEST

// A SIGBUS of another mapping is as deadly as ever.
START_TEST(test_not_ours)
{
    int fd = unsealed_segment(QUT_TRACE_OVERWRITE), other = new_file();
    ck_assert_int_eq(ftruncate(other, 4096), 0);
    volatile char *mapping = mmap(NULL, 4096, PROT_READ, MAP_SHARED, other, 0);
    ck_assert_ptr_ne((void *)(uintptr_t)mapping, MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        struct trace_segment_view view;
        signal(SIGBUS, SIG_DFL);
        if (trace_segment_map(&view, fd, false, NULL) != 0 || ftruncate(other, 0) != 0)
            _exit(1);
        _exit(mapping[0]);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGBUS);
    munmap((void *)(uintptr_t)mapping, 4096);
    close(other);
    close(fd);
}
END_TEST

struct cutter {
    int fd;
    uint64_t chunks;
};

static void cut_file(void *context, uint64_t chunk_count, uint64_t file_bytes)
{
    struct cutter *cutter = context;
    (void)file_bytes;
    cutter->chunks = chunk_count;
    if (chunk_count && ftruncate(cutter->fd, 8192) != 0)
        abort();
}

// The collector ends, says why, and what it had is a trace.
START_TEST(test_cut_while_it_is_collected)
{
    int fd = unsealed_segment(_i ? QUT_TRACE_STREAM : QUT_TRACE_OVERWRITE), file_fd = new_file();
    struct cutter cutter = {.fd = fd};
    const struct collect_options options = {.segment_fd = fd,
                                            .file_fd = file_fd,
                                            .follow = true,
                                            .interval_ms = 1,
                                            .stop_fd = -1,
                                            .process_fd = -1,
                                            .progress = cut_file,
                                            .progress_context = &cutter};
    struct collect_result result;
    struct base_error error = {0};
    ck_assert_int_eq(collect(&options, &result, &error), -1);
    ck_assert_uint_eq(error.reason, BASE_ERR_TRUNCATED);
    ck_assert_uint_gt(cutter.chunks, 0);
    struct trace trace;
    ck_assert_int_eq(trace_read_fd(file_fd, "file", &trace, &error), 0);
    ck_assert(!trace.is_complete);
    ck_assert_uint_gt(trace.present_samples, STEPS / 4);
    ck_assert_int_eq(trace_balance(&trace).samples_missing, 0);
    trace_free(&trace);
    close(fd);
    close(file_fd);
}
END_TEST

static void spoil(struct segment *segment, int way)
{
    switch (way) {
    case 0: segment->header->free_head = UINT64_MAX; break;
    case 1: segment->header->free_head = 5ull << 32 | 0x7fffffff; break;
    case 2: memset(segment->free_list, 0xff, segment->chunk_count * sizeof *segment->free_list); break;
    case 3:
        for (uint32_t i = 0; i < segment->chunk_count; i++)
            segment->free_list[i] = i + 1; // each chunk behind itself
        break;
    default:
        for (uint32_t i = 0; i < segment->chunk_count; i++)
            segment->directory[i] ^= (uint64_t)0xfff << QUT_TRACE_CHUNK_SLOT_SHIFT;
    }
}

// Neither the collector nor the writers believe what stands in the list of free chunks.
START_TEST(test_spoiled_lists)
{
    struct maker maker;
    const struct maker_options options = {.segment_bytes = 1 << 20, .mode = QUT_TRACE_STREAM, .seed = 9};
    maker_begin(&maker, &options);
    maker_run(&maker, &options, 4000);
    spoil(&maker.segment, _i);
    int file_fd = new_file(), stop[2];
    ck_assert_int_eq(pipe(stop), 0);
    for (int round = 0; round < 4; round++) {
        struct collect_result result;
        struct base_error error = {0};
        const struct collect_options collected = {.segment_fd = maker.segment.fd,
                                                  .file_fd = file_fd,
                                                  .follow = true,
                                                  .interval_ms = 1,
                                                  .stop_fd = stop[0],
                                                  .process_fd = -1};
        ck_assert_int_eq(ftruncate(file_fd, 0), 0);
        ck_assert_int_eq(lseek(file_fd, 0, SEEK_SET), 0);
        ck_assert_int_eq(write(stop[1], "x", 1), 1); // one look, and the end
        ck_assert_int_eq(collect(&collected, &result, &error), 0);
        struct trace trace;
        ck_assert_int_eq(trace_read_fd(file_fd, "file", &trace, &error), 0);
        ck_assert_int_eq(trace_balance(&trace).hits_missing, 0);
        trace_free(&trace);
        maker_run(&maker, &options, 4000);
    }
    close(stop[0]);
    close(stop[1]);
    close(file_fd);
    segment_close(&maker.segment);
    maker_free(&maker);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace_hostile");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, test_cut_while_it_is_mapped);
    tcase_add_test(all, test_many_mappings);
    tcase_add_test(all, test_not_ours);
    tcase_add_loop_test(all, test_cut_while_it_is_collected, 0, 2);
    tcase_add_loop_test(all, test_spoiled_lists, 0, 5);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}

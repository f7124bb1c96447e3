// SPDX-License-Identifier: Apache-2.0
// A segment whose process writes what it likes, taken to a file: the file is sound, and is read without damage of its
// own. Input: one byte of options; the sections of a segment.
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/proof/fuzz/fuzz.h"
#include "tests/proof/fuzz/segment_input.h"
#include "tracer/collect/collect.h"

static int memory_file(void)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    fuzz_require(fd >= 0);
    return fd;
}

static const struct trace_note *make_notes(void *context, size_t *count)
{
    static const struct trace_note notes[] = {{.name = "ticks-due", .value = 7}, {.name = "trigger", .text = "clock"}};
    *count = *(size_t *)context;
    return notes;
}

static void append_twice(int fd)
{
    int to_fd = memory_file();
    const struct trace_note note = {.name = "fuzz-notes", .value = 1};
    struct base_error error = {0};
    fuzz_require(collect_append(to_fd, fd, &error) == 0 && collect_append(to_fd, fd, &error) == 0);
    fuzz_require(collect_append_notes(to_fd, &note, 1, &error) == 0);
    struct trace trace;
    if (trace_read_fd(to_fd, "fuzz", &trace, &error) == 0)
        trace_free(&trace);
    else
        fuzz_require(error.reason != BASE_OK);
    close(to_fd);
}

int fuzz_collect(const uint8_t *data, size_t size)
{
    enum { LEFT = 1, STREAM = 2, CUT = 4, APPEND = 8, FOLLOW = 16 };
    if (size == 0)
        return 0;
    const unsigned way = data[0];
    size_t segment_bytes;
    uint8_t *bytes = fuzz_segment(data + 1, size - 1, &segment_bytes);
    struct qut_trace_header *header = (void *)bytes;
    if (way & LEFT)
        header->state = QUT_TRACE_RUNNING;
    if (way & STREAM)
        header->mode = QUT_TRACE_STREAM;
    int segment_fd = memory_file(), file_fd = memory_file();
    size_t written = way & CUT ? segment_bytes / 2 : segment_bytes;
    fuzz_require(write(segment_fd, bytes, written) == (ssize_t)written);
    // It was told to end already: one look, and what is left.
    int stop_fd = eventfd(1, EFD_CLOEXEC);
    size_t note_count = way & APPEND ? 2 : 0;
    const struct collect_options options = {.segment_fd = segment_fd,
                                            .file_fd = file_fd,
                                            .follow = way & FOLLOW,
                                            .interval_ms = 1,
                                            .stop_fd = stop_fd,
                                            .process_fd = -1,
                                            .notes = make_notes,
                                            .notes_context = &note_count};
    struct collect_result result;
    struct base_error error = {0};
    if (collect(&options, &result, &error) == 0) {
        struct trace trace;
        fuzz_require(result.failed_writes == 0);
        if (trace_read_fd(file_fd, "fuzz", &trace, &error) == 0) {
            fuzz_require(trace.damaged_blocks == 0);
            trace_free(&trace);
        } else {
            fuzz_require(error.reason != BASE_OK);
        }
        if (way & APPEND)
            append_twice(file_fd);
    } else {
        fuzz_require(error.reason != BASE_OK);
    }
    close(stop_fd);
    close(segment_fd);
    close(file_fd);
    free(bytes);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Files of traces, in memory.
#ifndef TESTS_UNIT_TRACER_TRACE_FILES_H
#define TESTS_UNIT_TRACER_TRACE_FILES_H

#include <check.h>
#include <sys/mman.h>

#include "tracer/collect/collect.h"
#include "tracer/trace/trace_data.h"

static inline int new_file(void)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static inline struct trace read_file(int fd)
{
    struct trace trace;
    struct base_error error = {0};
    char text[256];
    ck_assert_msg(trace_read_fd(fd, "file", &trace, &error) == 0, "%s", base_error_text(&error, text, sizeof text));
    return trace;
}

static inline struct collect_result collect_once(int segment_fd, int file_fd)
{
    struct collect_result result;
    struct base_error error = {0};
    const struct collect_options options = {
        .segment_fd = segment_fd, .file_fd = file_fd, .stop_fd = -1, .process_fd = -1};
    ck_assert_int_eq(collect(&options, &result, &error), 0);
    return result;
}

#endif

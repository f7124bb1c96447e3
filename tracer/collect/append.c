// SPDX-License-Identifier: Apache-2.0
// Several traces in one file: what is put behind what is there.
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "tracer/collect/collect.h"
#include "tracer/collect/file_copy.h"
#include "tracer/collect/notes_write.h"

static int io_error(struct base_error *error, uint64_t at, const char *what)
{
    return base_fail(error, BASE_ERR_IO, "", at, "%s: %s", what, strerror(errno));
}

// Where the file ends. -1: that cannot be found out.
static int find_end(int fd, uint64_t *end, struct base_error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return io_error(error, 0, "fstat");
    *end = (uint64_t)status.st_size;
    return 0;
}

// Half a part would be told of as damage. Should this fail too, it is.
static int cut_back(int fd, uint64_t end)
{
    if (ftruncate(fd, (off_t)end) != 0)
        return -1;
    return -1;
}

int collect_append(int to_fd, int fd, struct base_error *error)
{
    uint64_t end = 0;
    if (find_end(to_fd, &end, error) != 0)
        return -1;
    return collect_file_copy(to_fd, end, fd, 0, error) == 0 ? 0 : cut_back(to_fd, end);
}

int collect_append_notes(int to_fd, const struct trace_note *notes, size_t count, struct base_error *error)
{
    uint64_t now_ns = base_clock_now_ns(), end = 0;
    const struct qut_trace_header nobody = {0};
    struct trace_file file;
    if (find_end(to_fd, &end, error) != 0)
        return -1;
    struct qut_trace_file_trailer trailer = {.end = QUT_TRACE_FILE_END_CLOSED, .end_ns = now_ns};
    int status = collect_trace_file_begin_at(&file, to_fd, end, 0, &nobody, now_ns, error);
    if (status == 0)
        status = collect_file_notes_write(&file, notes, count, error);
    if (status == 0)
        status = collect_trace_file_end(&file, &trailer, error);
    collect_trace_file_free(&file);
    return status == 0 ? 0 : cut_back(to_fd, end);
}

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tracer/trace/raw_trace.h"
#include "tracer/trace/segment_view.h"

// <linux/magic.h>
enum { TMPFS = 0x01021994, RAMFS = (int)0x858458f6 };

// Where a process may still write to it.
static bool is_in_memory(int fd)
{
    struct statfs system;
    return fstatfs(fd, &system) == 0 && ((int)system.f_type == TMPFS || (int)system.f_type == RAMFS);
}

static int io_error(struct base_error *error, const char *what)
{
    return base_fail(error, BASE_ERR_IO, "", 0, "%s: %s", what, strerror(errno));
}

// Whole, into a mapping: what is cut short under a reader is an end of file so, and no SIGBUS.
static int read_whole(int fd, size_t size, uint8_t **bytes, size_t *got, struct base_error *error)
{
    *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*bytes == MAP_FAILED)
        return io_error(error, "mmap");
    *got = 0;
    while (*got < size) {
        ssize_t part = pread(fd, *bytes + *got, size - *got, (off_t)*got);
        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0) {
            io_error(error, "read");
            munmap(*bytes, size);
            return -1;
        }
        if (part == 0)
            break;
        *got += (size_t)part;
    }
    return 0;
}

static int no_memory(struct base_error *error)
{
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the trace");
}

static int build_of_view(const struct trace_segment_view *view, struct trace *trace, struct base_error *error)
{
    struct trace_memory *memory = trace_memory_new();
    if (!memory)
        return no_memory(error);
    struct image image = trace_image_new(memory);
    if (trace_image_of_segment(&image, view, error) == 0 && trace_build(&image, trace, error) == 0) {
        trace->memory = memory;
        if (trace_add_unticked(trace))
            return 0;
        no_memory(error);
    }
    trace_memory_free(memory);
    return -1;
}

static int read_of_bytes(uint8_t *bytes, size_t size, struct trace *trace, struct base_error *error)
{
    if (size < 8 || memcmp(bytes, QUT_TRACE_MAGIC, 8) != 0)
        return trace_read_file_bytes(bytes, size, trace, error);
    struct trace_segment_view view;
    if (trace_segment_view(&view, bytes, size, error) != 0)
        return -1;
    return build_of_view(&view, trace, error);
}

static int read_of_fd(int fd, struct trace *trace, struct base_error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return io_error(error, "fstat");
    if (S_ISDIR(status.st_mode))
        return base_fail(error, BASE_ERR_IO, "", 0, "is a directory");
    if (!S_ISREG(status.st_mode))
        return base_fail(error, BASE_ERR_IO, "", 0, "is no regular file");
    uint8_t magic[8] = {0};
    ssize_t magic_bytes = pread(fd, magic, sizeof magic, 0);
    if (magic_bytes < 0)
        return io_error(error, "read");
    if (magic_bytes == 0)
        return base_fail(error, BASE_ERR_TRUNCATED, "", 0, "is empty");
    if (memcmp(magic, QUT_TRACE_MAGIC, sizeof magic) == 0 && is_in_memory(fd)) {
        struct trace_segment_view view;
        if (trace_segment_map(&view, fd, false, error) != 0)
            return -1;
        int result = build_of_view(&view, trace, error);
        trace_segment_unmap(&view);
        return result;
    }
    uint8_t *bytes;
    size_t size = (size_t)status.st_size, got = 0;
    if (read_whole(fd, size, &bytes, &got, error) != 0)
        return -1;
    int result = read_of_bytes(bytes, got, trace, error);
    munmap(bytes, size);
    return result;
}

static int finish(int result, const char *name, struct trace *trace, struct base_error *error)
{
    if (result == 0) {
        trace->path = trace_memory_text(trace->memory, "%s", name);
        if (trace->path)
            return 0;
        trace_free(trace);
        result = no_memory(error);
    }
    *trace = (struct trace){0};
    return result;
}

int trace_read_fd(int fd, const char *name, struct trace *trace, struct base_error *error)
{
    *trace = (struct trace){0};
    return finish(read_of_fd(fd, trace, error), name, trace, error);
}

int trace_read_bytes(uint8_t *bytes, size_t size, const char *name, struct trace *trace, struct base_error *error)
{
    *trace = (struct trace){0};
    return finish(read_of_bytes(bytes, size, trace, error), name, trace, error);
}

int trace_read(const char *path, struct trace *trace, struct base_error *error)
{
    *trace = (struct trace){0};
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); // a pipe without a writer is no file, and not waited for
    if (fd < 0)
        return base_fail_errno(error, errno);
    int result = trace_read_fd(fd, path, trace, error);
    close(fd);
    return result;
}

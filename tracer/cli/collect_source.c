// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/collect_source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "formats/qut_trace_file.h"

static int io_error(struct base_error *error, const char *what)
{
    return base_fail(error, BASE_ERR_IO, "", 0, "%s: %s", what, strerror(errno));
}

// When a process began, in ns of CLOCK_BOOTTIME; 0: not known. The command's name, before it, may have any character.
static uint64_t began_ns(uint32_t pid)
{
    enum { FIELDS_BETWEEN = 19 };
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", pid);
    FILE *file = fopen(path, "re");
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[size] = 0;
    char *at = strrchr(text, ')');
    for (int i = 0; at && i <= FIELDS_BETWEEN; i++)
        at = strchr(at + 1, ' ');
    long ticks_per_second = sysconf(_SC_CLK_TCK);
    if (!at || ticks_per_second <= 0)
        return 0;
    return strtoull(at + 1, NULL, 10) * (1000000000u / (uint64_t)ticks_per_second);
}

// The process that the header names, unless another one has its number now.
static void find_process(struct collect_source *source)
{
    struct qut_trace_header header;
    source->process_fd = -1;
    source->is_gone = false;
    if (pread(source->segment_fd, &header, sizeof header, 0) != (ssize_t)sizeof header || header.pid == 0)
        return;
    source->process_fd = (int)syscall(SYS_pidfd_open, header.pid, 0);
    if (source->process_fd < 0) {
        source->is_gone = errno == ESRCH;
        return;
    }
    const uint64_t tick_ns = 20000000;
    if (began_ns(header.pid) > header.boottime_ns + tick_ns) {
        close(source->process_fd);
        source->process_fd = -1;
        source->is_gone = true;
    }
}

int cli_collect_source_of_fd(struct collect_source *source, int fd, struct base_error *error)
{
    uint8_t magic[8];
    struct stat status;
    *source = (struct collect_source){.segment_fd = fd, .process_fd = -1};
    if (fstat(fd, &status) != 0)
        return io_error(error, "fstat");
    if (!S_ISREG(status.st_mode))
        return base_fail(error, BASE_ERR_IO, "", 0, "%s",
                         S_ISDIR(status.st_mode) ? "is a directory" : "is no regular file");
    ssize_t size = pread(fd, magic, sizeof magic, 0);
    if (size < 0)
        return io_error(error, "read");
    if (size == 0)
        return base_fail(error, BASE_ERR_TRUNCATED, "", 0, "is empty");
    if (size == (ssize_t)sizeof magic && memcmp(magic, QUT_TRACE_FILE_MAGIC, sizeof magic) == 0)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "is a .qtrace file already, no segment of a trace");
    if (size != (ssize_t)sizeof magic || memcmp(magic, QUT_TRACE_MAGIC, sizeof magic) != 0)
        return base_fail(error, BASE_ERR_MALFORMED, "", 0, "no segment of a trace");
    find_process(source);
    return 0;
}

int cli_collect_source_of_file(struct collect_source *source, const char *path, bool writable, struct base_error *error)
{
    int fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_CLOEXEC); // a pipe is not waited for
    if (fd < 0)
        return base_fail_errno(error, errno);
    if (cli_collect_source_of_fd(source, fd, error) == 0)
        return 0;
    close(fd);
    return -1;
}

static bool is_own_segment(int fd, int pid)
{
    struct qut_trace_header header;
    return pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
           memcmp(header.magic, QUT_TRACE_MAGIC, sizeof header.magic) == 0 && header.pid == (uint32_t)pid;
}

// -1: it is none, or one of the process that this one was forked from.
static int open_if_segment(const char *directory, const char *entry, int pid, bool writable)
{
    char path[128], target[128];
    snprintf(path, sizeof path, "%s/%.32s", directory, entry);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0)
        return -1;
    target[length] = 0;
    bool may_be = strncmp(target, "/memfd:qut-trace", 16) == 0 || strncmp(target, "/dev/shm/", 9) == 0;
    int fd = may_be ? open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC) : -1;
    if (fd >= 0 && !is_own_segment(fd, pid)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int cli_collect_source_of_process(struct collect_source *source, int pid, bool writable, struct base_error *error)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    *source = (struct collect_source){.segment_fd = -1, .process_fd = -1};
    DIR *directory = opendir(path);
    if (!directory)
        return errno == ENOENT ? base_fail(error, BASE_ERR_IO, "", 0, "no such process")
                               : io_error(error, "its descriptors");
    int fd = -1;
    for (struct dirent *entry; fd < 0 && (entry = readdir(directory));)
        fd = open_if_segment(path, entry->d_name, pid, writable);
    closedir(directory);
    if (fd < 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "it has no trace open (or none that may be opened from here)");
    if (cli_collect_source_of_fd(source, fd, error) == 0)
        return 0;
    close(fd);
    return -1;
}

void cli_collect_source_close(struct collect_source *source)
{
    if (source->segment_fd >= 0)
        close(source->segment_fd);
    if (source->process_fd >= 0)
        close(source->process_fd);
}

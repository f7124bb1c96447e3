// SPDX-License-Identifier: Apache-2.0
#include "tracer/top/growing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static int io_error(struct base_error *error, const char *what)
{
    return base_fail(error, BASE_ERR_IO, "", 0, "%s: %s", what, strerror(errno));
}

// What is in the file now, behind what is in to_fd. A part that is gone was put into the file meanwhile: the next look
// has it.
static int add_file(int to_fd, const char *path, struct base_error *error)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : io_error(error, path);
    int result = fstat(fd, &status) == 0 ? 0 : io_error(error, path);
    for (off_t left = status.st_size; result == 0 && left > 0;) {
        ssize_t copied = sendfile(to_fd, fd, NULL, (size_t)left);
        if (copied < 0 && errno != EINTR)
            result = io_error(error, path);
        if (copied == 0) // it was cut meanwhile
            break;
        left -= copied > 0 ? copied : 0;
    }
    close(fd);
    return result;
}

static int add_parts(int to_fd, const char *path, struct base_error *error)
{
    char parts[PATH_MAX], part[2 * PATH_MAX];
    snprintf(parts, sizeof parts, "%s.parts", path);
    DIR *directory = opendir(parts);
    int result = 0;
    if (!directory)
        return errno == ENOENT ? 0 : io_error(error, parts);
    for (struct dirent *entry; result == 0 && (entry = readdir(directory));)
        if (entry->d_name[0] != '.') {
            snprintf(part, sizeof part, "%s/%s", parts, entry->d_name);
            result = add_file(to_fd, part, error);
        }
    closedir(directory);
    return result;
}

int top_growing_read(const char *path, struct trace *trace, struct base_error *error)
{
    struct stat status;
    int fd = memfd_create("qut-top", MFD_CLOEXEC);
    if (fd < 0)
        return io_error(error, "memfd_create");
    int result = add_file(fd, path, error);
    if (result == 0)
        result = add_parts(fd, path, error);
    if (result == 0 && fstat(fd, &status) == 0 && status.st_size == 0)
        result = base_fail(error, BASE_ERR_TRUNCATED, "", 0, "is empty");
    if (result == 0)
        result = trace_read_fd(fd, path, trace, error);
    close(fd);
    return result;
}

void top_growing_remove(const char *directory, const char *path)
{
    char parts[PATH_MAX], part[2 * PATH_MAX];
    snprintf(parts, sizeof parts, "%s.parts", path);
    DIR *entries = opendir(parts);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (entry->d_name[0] != '.') {
            snprintf(part, sizeof part, "%s/%s", parts, entry->d_name);
            unlink(part);
        }
    if (entries)
        closedir(entries);
    rmdir(parts);
    unlink(path);
    rmdir(directory);
}

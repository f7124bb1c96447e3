// SPDX-License-Identifier: Apache-2.0
// A file takes its place when it is whole. What is no regular file (a pipe, /dev/null) is written as it comes.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/export/sink_inside.h"

struct sink_to_file {
    struct sink sink;
    int fd;
    char *path;      // that is to be replaced; NULL: there is nothing to replace
    char *temporary; // beside it
};

static void write_file(struct sink *sink)
{
    struct sink_to_file *file = (struct sink_to_file *)sink;
    size_t done = 0;
    while (done < sink->used && !sink->has_failed) {
        ssize_t size = write(file->fd, sink->bytes + done, sink->used - done);
        if (size > 0)
            done += (size_t)size;
        else if (size < 0 && errno != EINTR)
            sink_fail(sink, QUTC_ERR_IO, "write", errno);
    }
    sink->used = 0;
}

static void free_file(struct sink_to_file *file)
{
    free(file->sink.bytes);
    free(file->path);
    free(file->temporary);
    free(file);
}

static int close_file(struct sink *sink, bool keep, struct qutc_error *error)
{
    struct sink_to_file *file = (struct sink_to_file *)sink;
    if (keep)
        write_file(sink);
    // Some file systems say only now that there was no room.
    if (file->fd != STDOUT_FILENO && close(file->fd) != 0 && errno != EINTR)
        sink_fail(sink, QUTC_ERR_IO, "close", errno);
    keep = keep && !sink->has_failed;
    if (keep && file->temporary && rename(file->temporary, file->path) != 0) {
        sink_fail(sink, QUTC_ERR_IO, "rename", errno);
        keep = false;
    }
    if (!keep && file->temporary)
        unlink(file->temporary);
    bool has_failed = sink->has_failed;
    if (has_failed && error)
        *error = sink->error;
    free_file(file);
    return has_failed ? -1 : 0;
}

static bool is_special(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

// The file behind links: they stay.
static char *real_path(const char *path)
{
    char *real = realpath(path, NULL);
    return real ? real : strdup(path);
}

static int open_beside(struct sink_to_file *file)
{
    size_t size = strlen(file->path) + 32;
    file->temporary = malloc(size);
    if (!file->temporary) {
        errno = ENOMEM;
        return -1;
    }
    for (unsigned attempt = 0;; attempt++) {
        snprintf(file->temporary, size, "%s.%ld-%u.part", file->path, (long)getpid(), attempt);
        int fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            return fd;
        int why = errno;
        if (why == EEXIST && attempt < 100)
            continue;
        free(file->temporary); // not ours
        file->temporary = NULL;
        errno = why;
        return -1;
    }
}

static int open_file(struct sink_to_file *file, const char *path)
{
    if (strcmp(path, "-") == 0)
        return STDOUT_FILENO;
    if (is_special(path))
        return open(path, O_WRONLY | O_CLOEXEC);
    file->path = real_path(path);
    return file->path ? open_beside(file) : -1;
}

struct sink *sink_file(const char *path, struct qutc_error *error)
{
    struct sink_to_file *file = calloc(1, sizeof *file);
    if (!file || !sink_begin(&file->sink, write_file, close_file)) {
        free(file);
        qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "output");
        return NULL;
    }
    file->fd = open_file(file, path);
    if (file->fd < 0) {
        qutc_fail(error, QUTC_ERR_IO, "", 0, "%s", strerror(errno));
        free_file(file);
        return NULL;
    }
    return &file->sink;
}

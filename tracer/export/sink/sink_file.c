// SPDX-License-Identifier: Apache-2.0
// A file takes its place when it is whole. Until then it has no name where the file system can do that (O_TMPFILE):
// however this process ends, nothing is left. What is no regular file (a pipe, /dev/null) is written as it comes.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_io_inline.h"
#include "tracer/export/sink/inside.h"

struct sink_to_file {
    struct sink sink;
    int fd;
    char *path;      // that is to be replaced; NULL: there is nothing to replace
    char *temporary; // a name beside it
    bool has_name;   // the new file is at `temporary`
};

enum { ATTEMPTS = 100, NAME_ROOM = 40 };

static void write_file(struct sink *sink)
{
    struct sink_to_file *file = (struct sink_to_file *)sink;
    if (!sink->has_failed && base_file_write_all(file->fd, sink->bytes, sink->used) != 0)
        sink_fail(sink, BASE_ERR_IO, "write", errno);
    sink->used = 0;
}

static int free_file(struct sink_to_file *file, struct base_error *error)
{
    bool has_failed = file->sink.has_failed;
    if (has_failed && error)
        *error = file->sink.error;
    free(file->sink.bytes);
    free(file->path);
    free(file->temporary);
    free(file);
    return has_failed ? -1 : 0;
}

static void name_temporary(struct sink_to_file *file, unsigned attempt)
{
    snprintf(file->temporary, strlen(file->path) + NAME_ROOM, "%s.%ld-%u.part", file->path, (long)getpid(), attempt);
}

static int link_to(const struct sink_to_file *file, const char *name)
{
    char from[32];
    snprintf(from, sizeof from, "/proc/self/fd/%d", file->fd);
    return linkat(AT_FDCWD, from, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

// A file without a name can be given one that is free, but takes no other's place: it has a second one for a moment.
static int give_name(struct sink_to_file *file)
{
    if (!file->has_name && link_to(file, file->path) == 0)
        return 0;
    for (unsigned attempt = 0; !file->has_name && errno == EEXIST && attempt < ATTEMPTS; attempt++) {
        name_temporary(file, attempt);
        file->has_name = link_to(file, file->temporary) == 0;
    }
    if (!file->has_name || rename(file->temporary, file->path) != 0)
        return -1;
    file->has_name = false;
    return 0;
}

static void keep_file(struct sink_to_file *file)
{
    // Some file systems say only when a file is closed that there was no room.
    if (file->sink.is_synced && fsync(file->fd) != 0) {
        sink_fail(&file->sink, BASE_ERR_IO, "fsync", errno);
        return;
    }
    int copy = dup(file->fd);
    if (copy >= 0 && close(copy) != 0 && errno != EINTR) {
        sink_fail(&file->sink, BASE_ERR_IO, "close", errno);
        return;
    }
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before); // so that no signal ends this process between the two names
    if (give_name(file) != 0)
        sink_fail(&file->sink, BASE_ERR_IO, "name", errno);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static int close_file(struct sink *sink, bool keep, struct base_error *error)
{
    struct sink_to_file *file = (struct sink_to_file *)sink;
    if (keep)
        write_file(sink);
    if (keep && file->path && !sink->has_failed)
        keep_file(file);
    if (file->has_name)
        unlink(file->temporary);
    if (file->fd != STDOUT_FILENO && close(file->fd) != 0 && errno != EINTR && keep && !file->path)
        sink_fail(sink, BASE_ERR_IO, "close", errno);
    return free_file(file, error);
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

static int open_nameless(const struct sink_to_file *file)
{
    char *slash = strrchr(file->path, '/');
    if (!slash)
        return open(".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    char *folder = strndup(file->path, slash == file->path ? 1 : (size_t)(slash - file->path));
    int fd = folder ? open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666) : -1;
    int why = errno;
    free(folder);
    errno = why;
    return fd;
}

// The old way: killed, it leaves half a file with a name that says so.
static int open_beside(struct sink_to_file *file)
{
    int fd = -1;
    for (unsigned attempt = 0; fd < 0 && attempt < ATTEMPTS; attempt++) {
        name_temporary(file, attempt);
        fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            return -1;
    }
    file->has_name = fd >= 0;
    return fd;
}

// Linking needs /proc.
static int open_new(struct sink_to_file *file)
{
    file->temporary = malloc(strlen(file->path) + NAME_ROOM);
    if (!file->temporary)
        return -1;
    int fd = access("/proc/self/fd", F_OK) == 0 ? open_nameless(file) : -1;
    return fd >= 0 ? fd : open_beside(file);
}

static int open_file(struct sink_to_file *file, const char *path)
{
    if (strcmp(path, "-") == 0)
        return STDOUT_FILENO;
    if (is_special(path))
        return open(path, O_WRONLY | O_CLOEXEC);
    file->path = real_path(path);
    return file->path ? open_new(file) : -1;
}

void sink_sync(struct sink *sink)
{
    sink->is_synced = true;
}

struct sink *sink_file(const char *path, struct base_error *error)
{
    struct sink_to_file *file = calloc(1, sizeof *file);
    if (!file || !sink_begin(&file->sink, write_file, close_file)) {
        free(file);
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "output");
        return NULL;
    }
    file->fd = open_file(file, path);
    if (file->fd < 0) {
        base_fail_errno(error, errno);
        free_file(file, NULL);
        return NULL;
    }
    return &file->sink;
}

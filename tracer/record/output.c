// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/collect/collect.h"

static int io_error(struct base_error *error, const char *what)
{
    return base_fail(error, BASE_ERR_IO, "", 0, "%s%s%s", what, *what ? ": " : "", strerror(errno));
}

int record_output_check(const char *path, struct base_error *error)
{
    char directory[PATH_MAX];
    struct stat status;
    enum { SUFFIX_MAX = 32 };
    if (!*path || strlen(path) + SUFFIX_MAX >= sizeof directory)
        return base_fail(error, BASE_ERR_IO, "", 0, "%s", *path ? strerror(ENAMETOOLONG) : "is no name of a file");
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return base_fail(error, BASE_ERR_IO, "", 0, "%s",
                         S_ISDIR(status.st_mode) ? "is a directory" : "is no regular file");
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) + (slash == path) : 1;
    snprintf(directory, sizeof directory, "%.*s", length, slash ? path : ".");
    const bool is_known = access(directory, W_OK | X_OK) == 0 || errno == EPERM || errno == ENOSYS; // else open says it
    return is_known ? 0 : io_error(error, directory);
}

// FILE.N, and FILE.N.parts, for the first N that is free for both.
static int move_away(struct output *output, struct base_error *error)
{
    enum { TRIES = 10000, LONGEST = 16 };
    struct stat status;
    for (int i = 1; i < TRIES; i++) {
        char to[PATH_MAX + LONGEST], parts[PATH_MAX + 2 * LONGEST];
        snprintf(to, sizeof to, "%s.%d", output->path, i);
        snprintf(parts, sizeof parts, "%s.parts", to);
        if (strlen(to) >= sizeof output->kept_as || lstat(parts, &status) == 0)
            continue;
        int moved = renameat2(AT_FDCWD, output->path, AT_FDCWD, to, RENAME_NOREPLACE);
        if (moved != 0 && (errno == EINVAL || errno == ENOSYS)) // not on this file system
            moved = lstat(to, &status) == 0 ? (errno = EEXIST, -1) : rename(output->path, to);
        if (moved == 0) {
            rename(output->parts, parts); // of a recording that was killed
            memcpy(output->kept_as, to, strlen(to) + 1);
            return 0;
        }
        if (errno != EEXIST)
            return io_error(error, "the file that is there cannot be moved away");
    }
    return base_fail(error, BASE_ERR_IO, "", 0, "too many old ones are there");
}

int record_output_begin(struct output *output, const char *path, struct base_error *error)
{
    struct stat status;
    *output = (struct output){.fd = -1};
    if (record_output_check(path, error) != 0)
        return -1;
    snprintf(output->path, sizeof output->path, "%s", path);
    snprintf(output->parts, sizeof output->parts, "%s.parts", path);
    // What is empty is no recording.
    if (stat(path, &status) == 0 && (status.st_size ? move_away(output, error) : unlink(path)) != 0)
        return error->reason ? -1 : io_error(error, "");
    output->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return output->fd >= 0 ? 0 : io_error(error, path);
}

int record_output_part(struct output *output, uint32_t pid, char *path, size_t size, struct base_error *error)
{
    if (!output->has_parts && mkdir(output->parts, 0700) != 0 && errno != EEXIST)
        return io_error(error, output->parts);
    output->has_parts = true;
    enum { TRIES = 1000 };
    int fd = -1;
    for (int i = 0; fd < 0 && i < TRIES; i++) {
        snprintf(path, size, "%s/%" PRIu32 "-%" PRIu64 ".qtrace", output->parts, pid, ++output->part_count);
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd >= 0 ? fd : io_error(error, path);
}

int record_output_append(struct output *output, const char *part_path, struct base_error *error)
{
    int fd = open(part_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return io_error(error, part_path);
    int status = collect_append(output->fd, fd, error);
    close(fd);
    if (status == 0)
        unlink(part_path);
    return status;
}

// Else it was removed, or another one was put there.
static bool is_there(const struct output *output)
{
    struct stat ours, there;
    return fstat(output->fd, &ours) != 0 ||
           (lstat(output->path, &there) == 0 && ours.st_dev == there.st_dev && ours.st_ino == there.st_ino);
}

int record_output_end(struct output *output, bool is_wanted, struct base_error *error)
{
    int status = 0;
    const bool is_ours = output->fd >= 0 && is_there(output);
    if (output->fd >= 0 && is_wanted && !is_ours)
        status = base_fail(error, BASE_ERR_IO, "", 0, "the file was removed while it was written");
    if (output->has_parts)
        rmdir(output->parts); // stays where something is left in it
    if (output->fd >= 0 && close(output->fd) != 0)
        status = io_error(error, "");
    if (is_ours && !is_wanted && unlink(output->path) == 0 && output->kept_as[0] &&
        rename(output->kept_as, output->path) == 0)
        output->kept_as[0] = 0;
    output->fd = -1;
    return status;
}

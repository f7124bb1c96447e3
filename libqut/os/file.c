// SPDX-License-Identifier: Apache-2.0
#include "libqut/os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libqut/os/os.h"

// A pipe in a file's place must not block us.
static int open_to_read(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

int os_open_file(const char *path, uint64_t *size)
{
    int fd = open_to_read(path);
    if (fd < 0)
        return fd;
    struct stat status;
    int result = fstat(fd, &status) != 0 ? -errno : !S_ISREG(status.st_mode) ? -EINVAL : 0;
    if (result != 0) {
        close(fd);
        return result;
    }
    if (size)
        *size = status.st_size > 0 ? (uint64_t)status.st_size : 0;
    return fd;
}

void os_close_file(int fd)
{
    close(fd);
}

size_t os_read_at(int fd, uint64_t offset, void *bytes, size_t size)
{
    size_t done = 0;
    while (done < size && offset <= (uint64_t)INT64_MAX - done) {
        ssize_t got = pread(fd, (uint8_t *)bytes + done, size - done, (off_t)(offset + done));
        if (got == 0 || (got < 0 && errno != EINTR))
            break;
        if (got > 0)
            done += (size_t)got;
    }
    return done;
}

static bool may_be_not_theirs(int fd, uint32_t user_id)
{
    struct stat status;
    return fstat(fd, &status) != 0 || (status.st_mode & S_IWOTH) || (status.st_uid != 0 && status.st_uid != user_id);
}

int os_open_file_of(const char *path, uint32_t user_id, uint64_t *size)
{
    int fd = os_open_file(path, size);
    if (fd < 0 || !may_be_not_theirs(fd, user_id))
        return fd;
    close(fd);
    return -EPERM;
}

static int read_whole(int fd, size_t size, void **pages)
{
    void *whole = os_pages(size, true); // else each page takes a fault while it is read into
    if (!whole)
        return -ENOMEM;
    if (os_read_at(fd, 0, whole, size) != size) {
        os_free_pages(whole, size);
        return -ENODATA;
    }
    *pages = whole;
    return 0;
}

static bool may_be_anothers(int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || (status.st_mode & S_IWOTH))
        return true;
    return geteuid() == 0 && (status.st_uid != 0 || (status.st_mode & S_IWGRP));
}

// Of an open file, or a failure to open it; closes it.
static int read_file(int fd, uint64_t file_bytes, size_t max_bytes, void **pages, size_t *size)
{
    if (fd < 0)
        return fd;
    int result = file_bytes == 0          ? -ENODATA
                 : file_bytes > max_bytes ? -EFBIG
                                          : read_whole(fd, (size_t)file_bytes, pages);
    close(fd);
    if (result == 0)
        *size = (size_t)file_bytes;
    return result;
}

int os_read_file(const char *path, size_t max_bytes, void **pages, size_t *size)
{
    uint64_t file_bytes = 0;
    int fd = os_open_file(path, &file_bytes);
    return read_file(fd, file_bytes, max_bytes, pages, size);
}

int os_read_own_file(const char *path, size_t max_bytes, void **pages, size_t *size)
{
    uint64_t file_bytes = 0;
    int fd = os_open_file(path, &file_bytes);
    if (fd >= 0 && may_be_anothers(fd)) {
        close(fd);
        return -EPERM;
    }
    return read_file(fd, file_bytes, max_bytes, pages, size);
}

int os_read_file_of(const char *path, uint32_t user_id, size_t max_bytes, void **pages, size_t *size)
{
    uint64_t file_bytes = 0;
    int fd = os_open_file_of(path, user_id, &file_bytes);
    return read_file(fd, file_bytes, max_bytes, pages, size);
}

// Reads on until the end, however the size changes meanwhile.
static int read_to_end(int fd, size_t max_bytes, char **text, size_t *size)
{
    size_t capacity = 4096, done = 0;
    char *bytes = malloc(capacity);
    for (;;) {
        if (!bytes)
            return -ENOMEM;
        size_t room = capacity - 1 - done;
        ssize_t got = read(fd, bytes + done, room < max_bytes - done ? room : max_bytes - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int result = -errno;
            free(bytes);
            return result;
        }
        done += (size_t)got;
        if (got == 0 || done == max_bytes)
            break;
        if (done + 1 == capacity) {
            char *more = realloc(bytes, capacity *= 2);
            if (!more)
                free(bytes);
            bytes = more;
        }
    }
    bytes[done] = '\0';
    *text = bytes;
    *size = done;
    return 0;
}

int os_read_text(const char *path, size_t max_bytes, char **text, size_t *size)
{
    int fd = open_to_read(path);
    if (fd < 0)
        return fd;
    int result = read_to_end(fd, max_bytes, text, size);
    close(fd);
    return result;
}

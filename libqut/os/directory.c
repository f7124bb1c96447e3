// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libqut/os/file.h"

int qut_os_open_file(const char *path, uint64_t *size)
{
    // A pipe in a file's place must not block us.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    struct stat status;
    int result = fstat(fd, &status) != 0 ? -errno : !S_ISREG(status.st_mode) ? -EINVAL : 0;
    if (result != 0) {
        close(fd);
        return result;
    }
    if (size)
        *size = (uint64_t)status.st_size;
    return fd;
}

void qut_os_close_file(int fd)
{
    close(fd);
}

size_t qut_os_read_at(int fd, uint64_t offset, void *bytes, size_t size)
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

// Reads on until the end, however the size changes meanwhile.
static int read_to_end(int fd, size_t max_bytes, char **text, size_t *size)
{
    size_t capacity = 4096, done = 0;
    char *bytes = malloc(capacity);
    for (;;) {
        if (!bytes)
            return -ENOMEM;
        ssize_t got = read(fd, bytes + done, capacity - 1 - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int result = -errno;
            free(bytes);
            return result;
        }
        done += (size_t)got;
        if (got == 0 || done >= max_bytes)
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

int qut_os_read_text(const char *path, size_t max_bytes, char **text, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    int result = read_to_end(fd, max_bytes, text, size);
    close(fd);
    return result;
}

int qut_os_each_name(const char *directory, int (*each)(void *context, const char *name), void *context)
{
    DIR *dir = opendir(directory);
    if (!dir)
        return -errno;
    int result = 0;
    for (struct dirent *entry; result == 0 && (entry = readdir(dir));)
        result = each(context, entry->d_name);
    closedir(dir);
    return result;
}

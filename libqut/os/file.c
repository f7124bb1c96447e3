// SPDX-License-Identifier: Apache-2.0
#include "libqut/os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libqut/os/os.h"

static int read_fully(int fd, uint8_t *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(fd, bytes + done, size - done, (off_t)done);
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got == 0)
            return -ENODATA;
        if (got > 0)
            done += (size_t)got;
    }
    return 0;
}

static int read_open_file(int fd, size_t max_bytes, void **pages, size_t *size)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -EINVAL;
    if (status.st_size <= 0)
        return -ENODATA;
    if ((uintmax_t)status.st_size > max_bytes)
        return -EFBIG;
    size_t wanted = (size_t)status.st_size;
    void *read_pages = qut_os_pages(wanted, false);
    if (!read_pages)
        return -ENOMEM;
    int result = read_fully(fd, read_pages, wanted);
    if (result != 0) {
        qut_os_free_pages(read_pages, wanted);
        return result;
    }
    *pages = read_pages;
    *size = wanted;
    return 0;
}

int qut_os_read_file(const char *path, size_t max_bytes, void **pages, size_t *size)
{
    // A pipe in a file's place must not block us.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    int result = read_open_file(fd, max_bytes, pages, size);
    close(fd);
    return result;
}

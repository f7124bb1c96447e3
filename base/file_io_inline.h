// SPDX-License-Identifier: Apache-2.0
#ifndef BASE_FILE_IO_INLINE_H
#define BASE_FILE_IO_INLINE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

// All of it, whatever interrupts. -1: errno says why.
static inline int base_file_write_all(int fd, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t part = write(fd, (const uint8_t *)bytes + done, size - done);
        if (part < 0 && errno == EINTR)
            continue;
        if (part == 0)
            errno = ENOSPC;
        if (part <= 0)
            return -1;
        done += (size_t)part;
    }
    return 0;
}

#endif

// SPDX-License-Identifier: Apache-2.0
#include "tracer/collect/file_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int io_error(struct base_error *error, uint64_t at, const char *what)
{
    return base_fail(error, BASE_ERR_IO, "", at, "%s: %s", what, strerror(errno));
}

static int write_whole(int fd, const uint8_t *bytes, size_t size, uint64_t at, struct base_error *error)
{
    while (size) {
        ssize_t part = pwrite(fd, bytes, size, (off_t)at);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0) {
            errno = part < 0 ? errno : ENOSPC;
            return io_error(error, at, "write");
        }
        bytes += part;
        size -= (size_t)part;
        at += (uint64_t)part;
    }
    return 0;
}

int collect_file_copy(int to_fd, uint64_t to, int fd, uint64_t from, struct base_error *error)
{
    enum { PIECE_BYTES = 1 << 16 };
    uint8_t *piece = malloc(PIECE_BYTES);
    if (!piece)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for a copy");
    int status = 0;
    for (uint64_t done = 0; status == 0;) {
        ssize_t part = pread(fd, piece, PIECE_BYTES, (off_t)(from + done));
        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0)
            status = io_error(error, from + done, "read");
        if (part <= 0)
            break;
        status = write_whole(to_fd, piece, (size_t)part, to + done, error);
        done += (uint64_t)part;
    }
    free(piece);
    return status;
}

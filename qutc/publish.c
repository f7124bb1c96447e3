// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_io_inline.h"
#include "qutc/qutc.h"

// A device or a pipe is written to. Root's `-o /dev/null` would put a file in its place.
static bool is_no_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

static int write_to(const char *path, const void *bytes, size_t size, struct base_error *error)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC), saved = 0;
    if (fd < 0 || base_file_write_all(fd, bytes, size) != 0)
        saved = errno;
    if (fd >= 0 && close(fd) != 0 && !saved)
        saved = errno;
    return !saved ? 0 : base_fail(error, BASE_ERR_IO, "", 0, "cannot write %s: %s", path, strerror(saved));
}

int qutc_publish(const char *path, const void *bytes, size_t size, bool synced, struct base_error *error)
{
    static atomic_uint attempts;
    char *temporary = NULL;
    if (is_no_file(path))
        return write_to(path, bytes, size, error);
    unsigned attempt = atomic_fetch_add_explicit(&attempts, 1, memory_order_relaxed);
    if (asprintf(&temporary, "%s.%ld-%u.tmp", path, (long)getpid(), attempt) < 0)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path");
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    bool ok = fd >= 0 && base_file_write_all(fd, bytes, size) == 0 && (!synced || fsync(fd) == 0);
    int saved = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        ok = false;
        saved = errno;
    }
    if (ok && rename(temporary, path) != 0) {
        ok = false;
        saved = errno;
    }
    if (!ok && fd >= 0)
        unlink(temporary);
    free(temporary);
    return ok ? 0 : base_fail(error, BASE_ERR_IO, "", 0, "cannot write %s: %s", path, strerror(saved));
}

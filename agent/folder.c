// SPDX-License-Identifier: Apache-2.0
#include "agent/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/inside.h"
#include "libqut/host/host.h"

bool agent_folder_is_meant(void)
{
    return agent_settings.folder[0] != '\0';
}

int agent_folder_reach(void)
{
    return faccessat(AT_FDCWD, agent_settings.folder, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : -errno;
}

// The number of the process alone is not new: in a container it is the same each time.
bool agent_folder_path(char *path, size_t size)
{
    enum { NEVER_WAIT = 1 };
    uint64_t unique;
    if (syscall(SYS_getrandom, &unique, sizeof unique, NEVER_WAIT) != (long)sizeof unique) {
        struct timespec now = {0, 0};
        clock_gettime(CLOCK_REALTIME, &now);
        unique = (uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec;
    }
    const int length =
        snprintf(path, size, "%s/%d-%016llx", agent_settings.folder, (int)getpid(), (unsigned long long)unique);
    return length > 0 && (size_t)length < size;
}

// Anybody may write into the folder: a file of root's counts, and one of the process's own user.
static uint32_t read_halvings(int fd)
{
    struct stat status;
    char text[4] = "";
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || (status.st_uid != 0 && status.st_uid != geteuid()) ||
        (status.st_mode & (S_IWGRP | S_IWOTH)) || read(fd, text, sizeof text - 1) <= 0)
        return 0;
    uint32_t number = 0;
    for (const char *at = text; *at >= '0' && *at <= '9'; at++)
        number = number * 10 + (uint32_t)(*at - '0');
    return number < AGENT_FOLDER_HALVINGS_MAX ? number : AGENT_FOLDER_HALVINGS_MAX;
}

int agent_folder_look(void)
{
    enum { EVERY_MS = 5000 };
    char path[AGENT_PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/" AGENT_FOLDER_RATE, agent_settings.folder);
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    atomic_store_explicit(&sampling_halvings, fd < 0 ? 0 : read_halvings(fd), memory_order_relaxed);
    if (fd >= 0)
        close(fd);
    return EVERY_MS;
}

void agent_folder_left(enum agent_left why, enum agent_tell_left who, int error)
{
    char path[AGENT_PATH_BYTES + 64];
    const int length = snprintf(path, sizeof path, "%s/" AGENT_NOTE "%u-%u-%d-%d", agent_settings.folder, (unsigned)why,
                                (unsigned)agent_tell_failed_call(error), -error, (int)getpid());
    if (length < 0 || (size_t)length >= sizeof path)
        return;
    if (who == AGENT_TELL_TAKEN_BACK) {
        unlink(path);
        return;
    }
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd >= 0)
        close(fd);
}

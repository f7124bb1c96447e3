// SPDX-License-Identifier: Apache-2.0
#include "tracer/inject/owner.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// State, and when it was started; 0: no such process.
static uint64_t start_of(uint32_t pid, char *state)
{
    enum { FIELDS_BEFORE_START = 19 }; // from the state on
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    if (got <= 0)
        return 0;
    line[got] = '\0';
    const char *at = strrchr(line, ')'); // its name may have anything in it
    if (!at || at[1] != ' ')
        return 0;
    at += 2;
    *state = *at;
    for (unsigned i = 0; at && i < FIELDS_BEFORE_START; i++) {
        at = strchr(at, ' ');
        at += at != NULL;
    }
    return at ? strtoull(at, NULL, 10) : 0;
}

static uint32_t own_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (uint32_t)status.st_ino : 0;
}

struct inject_owner inject_owner_self(void)
{
    char state = 0;
    struct inject_owner self = {.pid = (uint32_t)getpid(), .pid_namespace = own_namespace()};
    self.start_ticks = start_of(self.pid, &state);
    return self.pid_namespace && self.start_ticks ? self : (struct inject_owner){0};
}

bool inject_owner_is(const struct inject_owner *owner, const struct inject_owner *other)
{
    return owner->pid && owner->pid == other->pid && owner->pid_namespace == other->pid_namespace &&
           owner->start_ticks == other->start_ticks;
}

bool inject_owner_is_gone(const struct inject_owner *owner)
{
    char state = 0;
    if (!owner->pid || owner->pid_namespace != own_namespace())
        return false;
    return start_of(owner->pid, &state) != owner->start_ticks || state == 'Z' || state == 'X';
}

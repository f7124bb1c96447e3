// SPDX-License-Identifier: Apache-2.0
// Files without content that agents leave in a folder: of processes that are left alone, by name
// "left-WHY-CALL-ERROR-PID". Each counts once: when it was taken away.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/monitor/inside.h"

bool monitor_note_is(const char *name)
{
    return strncmp(name, AGENT_NOTE, sizeof AGENT_NOTE - 1) == 0;
}

void monitor_note_take(struct monitor_window *window, int folder, const char *name)
{
    struct monitor_balance *sums = &window->next.sums;
    struct stat status;
    unsigned why, call, failure, pid;
    int end = 0;
    if (sscanf(name + sizeof AGENT_NOTE - 1, "%2u-%5u-%5u-%10u%n", &why, &call, &failure, &pid, &end) != 4 ||
        name[sizeof AGENT_NOTE - 1 + (size_t)end] || why == AGENT_LEFT_NOT || why >= AGENT_LEFT_COUNT ||
        call > UINT16_MAX || failure > UINT16_MAX)
        return;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode) || status.st_size != 0 ||
        unlinkat(folder, name, 0) != 0)
        return;
    sums->left[why]++;
    if (why == AGENT_LEFT_FAILED) {
        sums->failed_call = (uint16_t)call;
        sums->failed_error = (uint16_t)failure;
    }
    window->is_changed = true;
}

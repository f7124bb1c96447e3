// SPDX-License-Identifier: Apache-2.0
#include "tracer/agent/environment.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "tracer/agent/agent.h"

static bool is_of(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static void take_out(char **entry)
{
    do
        entry[0] = entry[1];
    while (*entry++);
}

void agent_environment_forget(void)
{
    static const char preload[] = "LD_PRELOAD=";
    for (char **entry = environ; entry && *entry;) {
        if (is_of(*entry, AGENT_VARIABLE)) {
            take_out(entry);
        } else if (is_of(*entry, "LD_PRELOAD")) {
            size_t length = strlen(agent_settings.preload);
            // What was there before is a part of what is there now: it fits.
            if (length == 0 || strlen(*entry) < strlen(preload) + length) {
                take_out(entry);
                continue;
            }
            memcpy(*entry + strlen(preload), agent_settings.preload, length + 1);
            entry++;
        } else {
            entry++;
        }
    }
}

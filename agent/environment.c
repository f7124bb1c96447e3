// SPDX-License-Identifier: Apache-2.0
#include "agent/environment.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "agent/inside.h"

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

// The recorder adds to it.
static bool forget_sanitizers(char *entry)
{
    static const char ours[] = "verify_asan_link_order=0";
    size_t length = strlen(entry), size = sizeof ours - 1, name = sizeof "ASAN_OPTIONS=" - 1;
    if (length < name + size || strcmp(entry + length - size, ours) != 0)
        return false;
    if (length == name + size)
        return true; // there was none before
    if (entry[length - size - 1] == ':')
        entry[length - size - 1] = '\0';
    return false;
}

void agent_environment_forget(void)
{
    static const char preload[] = "LD_PRELOAD=";
    for (char **entry = environ; entry && *entry;) {
        if (is_of(*entry, AGENT_VARIABLE) || (is_of(*entry, "ASAN_OPTIONS") && forget_sanitizers(*entry))) {
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

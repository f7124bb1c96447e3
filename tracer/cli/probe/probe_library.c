// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/probe/probe_library.h"

#include <stdio.h>
#include <string.h>

#include "cli/diagnostics.h"
#include "cli/nearest.h"

const struct probe_library_script *cli_probe_library_find(const char *name)
{
    for (const struct probe_library_script *script = probe_library_scripts; script->name; script++)
        if (strcmp(script->name, name) == 0)
            return script;
    return NULL;
}

const char *cli_probe_library_nearest(const char *name)
{
    struct cli_nearest nearest;
    cli_nearest_begin(&nearest, name, strlen(name));
    for (const struct probe_library_script *script = probe_library_scripts; script->name; script++)
        cli_nearest_offer(&nearest, script->name);
    return nearest.word;
}

// Comments at its beginning, without the first line, which is the licence.
static void list(const struct probe_library_script *script)
{
    const char *at = script->text, *end = at + script->length;
    printf("%s\n", script->name);
    for (unsigned line = 0; end - at > 2 && memcmp(at, "//", 2) == 0; line++) {
        const char *behind = memchr(at, '\n', (size_t)(end - at));
        behind = behind ? behind : end;
        if (line > 0)
            printf("   %.*s\n", (int)(behind - at - 2), at + 2);
        at = behind < end ? behind + 1 : end;
    }
}

int cli_probe_library_list(void)
{
    for (const struct probe_library_script *script = probe_library_scripts; script->name; script++)
        list(script);
    return CLI_OK;
}

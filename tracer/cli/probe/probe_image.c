// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/probe/probe_image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"

static int write_image(const struct probe_script *script, const char *path)
{
    FILE *file = fopen(path, "wxe");
    bool is_written = file && fwrite(script->image, 1, script->image_bytes, file) == script->image_bytes;
    int error = errno;
    if (file && fclose(file) != 0 && is_written) {
        is_written = false;
        error = errno;
    }
    if (is_written)
        return CLI_OK;
    if (file)
        unlink(path);
    cli_report(stderr, path, "%s", strerror(error));
    return CLI_BAD;
}

static const char *name_of(enum qut_probe_kind kind)
{
    switch (kind) {
    case QUT_PROBE_RETURN: return "return";
    case QUT_PROBE_UNWIND: return "unwind";
    default: return "entry";
    }
}

// What the own process can run: <qut/own_probes.h>.
static bool can_be_own(const struct probe_place *place)
{
    return qut_probe_is_inside(place->kind) && place->kind != QUT_PROBE_PLACE && !place->caller;
}

int cli_probe_image_write(const struct probe_script *script, const char *path)
{
    for (size_t i = 0; i < script->places.count; i++)
        if (!can_be_own(&script->places.items[i])) {
            cli_report(stderr, "--compile",
                       "the script has other places than entry, return and unwind of functions: those are for this "
                       "command alone");
            return CLI_BAD;
        }
    const int status = write_image(script, path);
    if (status != CLI_OK)
        return status;
    for (size_t i = 0; i < script->places.count; i++) {
        const struct probe_place *place = &script->places.items[i];
        if (!qut_probe_is_mark(place->kind)) // by what comes next to a place of the stack it is seen as well
            printf("program %u: %s:%s\n", (unsigned)place->program, name_of(place->kind), place->pattern);
    }
    for (size_t i = 0; i < script->maps.count; i++)
        printf("map %zu: @%s, a key of %u words\n", i, script->maps.items[i].name, script->maps.items[i].key.words);
    for (size_t i = 0; i < script->records.count; i++)
        printf("record %zu: %u words\n", i, script->records.items[i].words.words);
    return CLI_OK;
}

// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { FAILURES_MAX = 3 }; // in a row, of the servers, not of the file

typedef int (*find_fn)(void *client, const unsigned char *build_id, int build_id_bytes, char **path);

struct names_debuginfod {
    bool is_opened;
    void *library, *client;
    find_fn find[2];
    void (*end)(void *client);
    unsigned failures;
};

struct names_debuginfod *names_debuginfod_open(void)
{
    return calloc(1, sizeof(struct names_debuginfod));
}

void names_debuginfod_close(struct names_debuginfod *debuginfod)
{
    if (!debuginfod)
        return;
    if (debuginfod->client)
        debuginfod->end(debuginfod->client);
    // The library stays loaded: its own libraries have threads and handlers for the end of the process.
    free(debuginfod);
}

// Where a function's pointer is kept: ISO C knows no way from void * to a function.
static bool look_up(void *library, const char *name, void *function)
{
    void **place = function;
    *place = dlsym(library, name);
    return *place != NULL;
}

static void load(struct names_debuginfod *debuginfod)
{
    debuginfod->is_opened = true;
    void *library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    void *(*begin)(void);
    if (!library)
        return;
    if (look_up(library, "debuginfod_begin", &begin) && look_up(library, "debuginfod_end", &debuginfod->end) &&
        look_up(library, "debuginfod_find_debuginfo", &debuginfod->find[NAMES_DEBUGINFO]) &&
        look_up(library, "debuginfod_find_executable", &debuginfod->find[NAMES_EXECUTABLE]))
        debuginfod->client = begin();
}

char *names_debuginfod_find(struct names_debuginfod *debuginfod, enum names_debuginfod_kind kind,
                            const uint8_t *build_id, size_t build_id_bytes, const char **why)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    *why = "debuginfod: $DEBUGINFOD_URLS names no server";
    if (!urls || !*urls || build_id_bytes == 0 || build_id_bytes > INT_MAX)
        return NULL;
    if (!debuginfod->is_opened)
        load(debuginfod);
    *why = "debuginfod: libdebuginfod.so.1 is not installed";
    if (!debuginfod->client)
        return NULL;
    *why = "debuginfod: the servers do not answer";
    if (debuginfod->failures >= FAILURES_MAX)
        return NULL;
    char *path = NULL;
    int fd = debuginfod->find[kind](debuginfod->client, build_id, (int)build_id_bytes, &path);
    if (fd >= 0) {
        close(fd);
        debuginfod->failures = 0;
        return path;
    }
    bool answered = fd == -ENOENT;
    debuginfod->failures = answered ? 0 : debuginfod->failures + 1;
    if (answered)
        *why = "debuginfod: the servers do not have it";
    return NULL;
}

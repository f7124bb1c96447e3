// SPDX-License-Identifier: Apache-2.0
// A program with libqut and its compiler inside. Loads libraries, takes their files away (`gone`) or not (`here`), and
// walks through each.
// Usage: walker here|gone KEY|- CACHE|- TIMEOUT_MS COUNT LIBRARY... URL...
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <qut/qut.h>
#include <qutc/provide.h>
#include <qutc/servers.h>

typedef void relay_fn(void (*call)(void *), void *argument);
enum { LIBRARIES_MAX = 8 };

static void walk(void *end)
{
    uintptr_t pcs[64];
    qut_backtrace(pcs, sizeof pcs / sizeof *pcs, end);
    __asm__ volatile("" ::: "memory"); // no tail call
}

static relay_fn *load(const char *path)
{
    relay_fn *relay = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *function = library ? dlsym(library, "relay") : NULL;
    memcpy(&relay, &function, sizeof relay);
    return relay;
}

static void say(const char *path, relay_fn *relay)
{
    struct qut_end end = {0};
    struct qut_loaded_module module = {0};
    relay(walk, &end);
    qut_module_at((uintptr_t)relay, &module, sizeof module);
    printf("%s: %s: %s\n", path, end.reason == QUT_END_OUTERMOST ? "whole" : "cut", module.reason);
}

static const char *text_or_null(const char *text)
{
    return strcmp(text, "-") == 0 ? NULL : text;
}

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    const int count = argc > 6 ? atoi(argv[5]) : 0;
    if (count < 1 || count > LIBRARIES_MAX || argc < 6 + count)
        return 2;
    char **paths = argv + 6;
    const char *const *urls = (const char *const *)(paths + count);
    struct qutc_servers_options from = {.size = sizeof from,
                                        .urls = urls,
                                        .url_count = (size_t)(argc - 6 - count),
                                        .key = text_or_null(argv[2]),
                                        .cache_directory = text_or_null(argv[3]),
                                        .timeout_ms = (unsigned)atoi(argv[4])};
    struct qutc_provide_options provide = {.size = sizeof provide};
    struct qut_options options = {.size = sizeof options, .compile = qutc_compile_for_qut, .compile_context = &provide};
    struct qutc_servers *servers = NULL;
    relay_fn *relays[LIBRARIES_MAX];
    char reason[200];
    if (from.url_count && qutc_servers_open(&from, &servers, reason, sizeof reason) != 0) {
        printf("refused: %s\n", reason);
        return 1;
    }
    if (servers) {
        provide.take = qutc_servers_take;
        provide.take_context = servers;
    }
    for (int i = 0; i < count; i++) {
        relays[i] = load(paths[i]);
        if (!relays[i] || (strcmp(argv[1], "gone") == 0 && unlink(paths[i]) != 0))
            return 2;
    }
    const long begin_ms = now_ms();
    if (qut_start(&options) != 0)
        return 2;
    struct qut_end end = {0};
    const long walk_begin_ms = now_ms();
    for (int i = 0; i < count; i++)
        relays[i](walk, &end);
    const long walks_ms = now_ms() - walk_begin_ms;
    if (qut_wait(60000) != 0)
        return 2;
    printf("tables: %ld ms, walks meanwhile: %ld ms\n", now_ms() - begin_ms, walks_ms);
    for (int i = 0; i < count; i++)
        say(paths[i], relays[i]);
    qut_stop();
    qutc_servers_close(servers);
    return 0;
}

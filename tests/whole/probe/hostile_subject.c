// SPDX-License-Identifier: Apache-2.0
// Does to itself what a tool that looks on must bear, and calls a function so often before:
//
//     probe_hostile die N              is killed
//     probe_hostile abort N            aborts, within a call
//     probe_hostile exec N M           becomes "die M", with the same pid
//     probe_hostile unload N LIBRARY   loads and unloads the library N times, and calls a function of it each time
//     probe_hostile ways N             is called by N different stacks
//     probe_hostile chain N            hands over a list of N places, the last of which leads nowhere
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline))

long probe_called(long n);
void probe_dies(void);
long probe_chain(const void *first);
long probe_way(long way, unsigned depth);

APART long probe_called(long n)
{
    __asm__ volatile("" : "+r"(n) : : "memory");
    return n * 3 + (n & 4 ? 1 : 2); // room for a jump
}

APART void probe_dies(void)
{
    abort();
}

APART long probe_chain(const void *first)
{
    __asm__ volatile("" : "+r"(first) : : "memory");
    return probe_called((long)(intptr_t)first) + 1;
}

// By two calls, of which each bit chooses one.
APART long probe_way(long way, unsigned depth)
{
    long got;
    if (depth == 0)
        return probe_called(way) + 1;
    if (way & 1) {
        got = probe_way(way >> 1, depth - 1);
        __asm__ volatile("# odd" : "+r"(got) : : "memory");
    } else {
        got = probe_way(way >> 1, depth - 1);
        __asm__ volatile("# even" : "+r"(got) : : "memory");
    }
    return got;
}

static void call(long n)
{
    for (long i = 0; i < n; i++)
        probe_called(i);
}

static int unload(long n, const char *path)
{
    for (long i = 0; i < n; i++) {
        void *library = dlopen(path, RTLD_NOW);
        void *(*take)(const void *, int, const char *);
        static const char nothing[256];
        *(void **)&take = library ? dlsym(library, "probe_take") : NULL;
        if (!take)
            return 1;
        take(nothing, 0, "");
        dlclose(library);
        probe_called(i);
    }
    return 7;
}

static int chain(long n)
{
    struct place {
        const struct place *next;
    } *places = calloc((size_t)n, sizeof *places);
    for (long i = 0; places && i + 1 < n; i++)
        places[i].next = &places[i + 1];
    places[n - 1].next = (const struct place *)(uintptr_t)0xdead0000dead0008;
    probe_chain(places);
    probe_chain(NULL);
    probe_chain((const void *)UINTPTR_MAX);
    return 7;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    const long n = argc > 2 ? atol(argv[2]) : 0;
    if (strcmp(what, "unload") == 0 && argc == 4)
        return unload(n, argv[3]);
    if (strcmp(what, "ways") == 0) {
        for (long way = 0; way < n; way++)
            probe_way(way, 20);
        return 7;
    }
    if (strcmp(what, "chain") == 0 && n > 0)
        return chain(n);
    call(n);
    if (strcmp(what, "die") == 0)
        raise(SIGKILL);
    if (strcmp(what, "abort") == 0)
        probe_dies();
    if (strcmp(what, "exec") == 0 && argc == 4)
        execl(argv[0], argv[0], "die", argv[3], NULL);
    return 2;
}

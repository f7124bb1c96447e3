// SPDX-License-Identifier: Apache-2.0
// From dlopen to walkable: how long until a module that was just loaded has its table in use, when nothing but a
// walk says that there is one. Once with an empty cache (compiled), once from the cache.
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <qut/local.h>
#include <qutc/provide.h>

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct qut_stats stats(void)
{
    struct qut_stats now;
    qut_get_stats(&now, sizeof now);
    return now;
}

struct measured {
    double open_ms, walkable_ms; // negative: it failed
    uint64_t module_count;
};

// In a process of its own: many libraries cannot be unloaded.
static struct measured measure(const char *path, const char *cache)
{
    struct measured measured = {.walkable_ms = -1};
    struct qutc_provide_options provide = {.size = sizeof provide, .cache_directory = cache};
    struct qut_options options = {
        .size = sizeof options, .cache_directory = cache, .compile = qutc_compile_for_qut, .compile_context = &provide};
    if (qut_start(&options) != 0 || qut_wait(20000) != 0)
        return measured;
    uint64_t before = stats().module_count;
    double begin = now_ms();
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    double opened = now_ms();
    if (!handle) {
        fprintf(stderr, "bench_walkable: %s\n", dlerror());
        return measured;
    }
    // A walk finds that the loader has added something.
    uintptr_t pcs[64];
    qut_backtrace(pcs, 64, NULL);
    struct qut_stats now;
    do {
        usleep(20);
        now = stats();
        if (now_ms() > opened + 10000)
            return measured;
    } while (now.module_count == before || now.pending_count > 0);
    return (struct measured){opened - begin, now_ms() - opened, now.module_count - before};
}

static struct measured measure_in_child(const char *path, const char *cache)
{
    struct measured measured = {.walkable_ms = -1};
    int ends[2];
    if (pipe(ends) != 0)
        return measured;
    pid_t child = fork();
    if (child == 0) {
        measured = measure(path, cache);
        _exit(write(ends[1], &measured, sizeof measured) != sizeof measured);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &measured, sizeof measured) != sizeof measured)
        measured.walkable_ms = -1;
    close(ends[0]);
    waitpid(child, NULL, 0);
    return measured;
}

int main(int argc, char **argv)
{
    char cache[] = "/tmp/qut-walkable-XXXXXX";
    if (argc < 2 || argv[1][0] == '-' || !mkdtemp(cache)) {
        fprintf(stderr, "Usage: bench_walkable LIBRARY...\n");
        return 2;
    }
    int failed = 0;
    printf("| library | modules it brings | dlopen ms | walkable after: compiled ms | from the cache ms |\n"
           "|---|---:|---:|---:|---:|\n");
    for (int i = 1; i < argc; i++) {
        struct measured compiled = measure_in_child(argv[i], cache), cached = measure_in_child(argv[i], cache);
        if (compiled.walkable_ms < 0 || cached.walkable_ms < 0) {
            fprintf(stderr, "bench_walkable: %s: not walkable within 10 s\n", argv[i]);
            failed = 1;
            continue;
        }
        const char *name = strrchr(argv[i], '/');
        printf("| %s | %" PRIu64 " | %.2f | %.2f | %.2f |\n", name ? name + 1 : argv[i], compiled.module_count,
               compiled.open_ms, compiled.walkable_ms, cached.walkable_ms);
        fflush(stdout);
    }
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", cache);
    return system(command) != 0 || failed;
}

// SPDX-License-Identifier: Apache-2.0
#include "bench/compile/compile_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/compile/child.h"
#include "bench/compile/compile_rounds.h"
#include "bench/measure.h"

enum { TABLES_IN_MEMORY = 3 }; // promised: no more than the input and so many times the table

static int run(char *const arguments[], int keep_output, struct child_result *result, struct base_error *error)
{
    if (bench_child(arguments, keep_output, result) != 0 || result->status < 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "%s %s: it does not run", arguments[0], arguments[1]);
    return 0;
}

static int64_t kib(uint64_t bytes)
{
    return (int64_t)(bytes / 1024);
}

static int measure_memory(char *qutc, char *table_path, char *path, uint64_t idle_bytes, struct base_error *error)
{
    char *const arguments[] = {qutc, "compile", "--quiet", "-o", table_path, path, NULL};
    struct child_result result;
    struct stat input, table;
    if (run(arguments, 0, &result, error) != 0)
        return -1;
    if (result.status != 0 || stat(path, &input) != 0 || stat(table_path, &table) != 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "%s: it did not compile", path);
    uint64_t bound = (uint64_t)input.st_size + TABLES_IN_MEMORY * (uint64_t)table.st_size;
    uint64_t peak = result.peak_rss_bytes > idle_bytes ? result.peak_rss_bytes - idle_bytes : 0;
    const char *slash = strrchr(path, '/');
    bench_verdict(peak <= bound,
                  "memory: %s %" PRId64 " KiB (target <= %" PRId64 " KiB = input %" PRId64 " + 3 x table %" PRId64 ")",
                  slash ? slash + 1 : path, kib(peak), kib(bound), kib((uint64_t)input.st_size),
                  kib((uint64_t)table.st_size));
    return 0;
}

int bench_compile_memory(const char *qutc, const char *scratch, char **paths, int count, struct base_error *error)
{
    char *table_path;
    char *const idle_arguments[] = {(char *)qutc, "--version", NULL};
    struct child_result idle;
    if (run(idle_arguments, 0, &idle, error) != 0)
        return -1;
    if (asprintf(&table_path, "%s/memory.qut", scratch) < 0)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "a path");
    int result = 0;
    for (int i = 0; i < count && result == 0; i++)
        result = measure_memory((char *)qutc, table_path, paths[i], idle.peak_rss_bytes, error);
    remove(table_path);
    free(table_path);
    return result;
}

// The sum of all `"key": N` of the command's JSON.
static uint64_t sum(const char *text, const char *key)
{
    uint64_t total = 0;
    for (const char *at = text; (at = strstr(at, key)) != NULL;) {
        at += strlen(key);
        total += strtoull(at, NULL, 10);
    }
    return total;
}

int bench_compile_tree(const char *qutc, const char *scratch, const char *tree, unsigned rounds,
                       struct base_error *error)
{
    // What follows code takes a hundred times as long, and has figures of its own.
    char *const arguments[] = {(char *)qutc, "compile", "--quiet",       "--no-fill",  "--json", "-j",
                               "2",          "-o",      (char *)scratch, (char *)tree, NULL};
    static double wall_s[BENCH_ROUNDS_MAX], cpu_s[BENCH_ROUNDS_MAX];
    uint64_t files = 0, rows = 0, bytes = 0;
    for (unsigned round = 0; round <= rounds; round++) {
        struct child_result result;
        if (run(arguments, 1, &result, error) != 0)
            return -1;
        if (!result.output || result.status > 1) { // 1: some files are no ELF we read
            free(result.output);
            return base_fail(error, BASE_ERR_IO, "", 0, "%s: exit status %d", tree, result.status);
        }
        rows = sum(result.output, "\"rows\": ");
        bytes = sum(result.output, "\"table_bytes\": ");
        files = 0;
        for (const char *at = result.output; (at = strstr(at, "\"table_bytes\": ")) != NULL; at++)
            files++;
        free(result.output);
        if (round) {
            wall_s[round - 1] = (double)result.wall_ns / 1e9;
            cpu_s[round - 1] = (double)(result.user_ns + result.system_ns) / 1e9;
        }
    }
    if (!rows)
        return base_fail(error, BASE_ERR_NO_UNWIND, "", 0, "%s: no table was made", tree);
    struct bench_spread wall = bench_spread(wall_s, rounds), cpu = bench_spread(cpu_s, rounds);
    printf("%s with -j 2, %u rounds: %" PRIu64 " tables, %" PRIu64 " rows, %" PRIu64 " bytes, written and synced\n",
           tree, rounds, files, rows, bytes);
    printf("  wall %.2f s (%.2f - %.2f), %.0f ns a row; processor %.2f s, %.0f ns a row\n", wall.median, wall.p10,
           wall.p90, wall.median * 1e9 / (double)rows, cpu.median, cpu.median * 1e9 / (double)rows);
    return 0;
}

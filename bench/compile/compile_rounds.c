// SPDX-License-Identifier: Apache-2.0
#include "bench/compile/compile_rounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/compile/child.h"
#include "bench/compile/contestants.h"
#include "bench/measure.h"

static const double COMPILE_MAX = 2.5, LIBDW_MIN = 12, LIBDWARF_MIN = 20; // what we promise

enum { PURE, CHECKED, QUTC, LIBDW, LIBDW_FACTS, LIBDWARF, LIBDWARF_LEAST, CONTESTANT_END };

static const struct {
    const char *name;
    bench_contestant *run;
} contestants[CONTESTANT_END] = {
    [PURE] = {"decode, unchecked", bench_run_pure},
    [CHECKED] = {"decode, bounds-checked", bench_run_checked},
    [QUTC] = {"QUT: open and compile", bench_run_qutc},
    [LIBDW] = {"libdw: addrframe a row", bench_run_libdw},
    [LIBDW_FACTS] = {"libdw: cfa and registers", bench_run_libdw_facts},
    [LIBDWARF] = {"libdwarf: all_regs3 a row", bench_run_libdwarf},
    [LIBDWARF_LEAST] = {"libdwarf, 17 registers", bench_run_libdwarf_least},
};

struct results {
    unsigned rounds, count; // of contestants
    double ns[CONTESTANT_END][BENCH_ROUNDS_MAX];
    uint64_t rows[CONTESTANT_END];
};

// A new order each round, the same in every run: whom one comes after decides what it finds in the caches.
static void shuffle(unsigned *order, unsigned count, uint64_t *seed)
{
    for (unsigned i = 0; i < count; i++)
        order[i] = i;
    for (unsigned i = count - 1; i > 0; i--) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        unsigned other = (unsigned)((*seed >> 33) % (i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static int run_rounds(const struct bench_subject *subject, struct results *results, struct base_error *error)
{
    uint64_t seed = 1;
    // One round more, first and not counted: caches, page tables, branch predictors.
    for (unsigned round = 0; round <= results->rounds; round++) {
        unsigned order[CONTESTANT_END];
        shuffle(order, results->count, &seed);
        for (unsigned turn = 0; turn < results->count; turn++) {
            unsigned who = order[turn];
            uint64_t end_ns = 0, start_ns = bench_now_ns();
            if (contestants[who].run(subject, &results->rows[who], &end_ns) != 0)
                return base_fail(error, BASE_ERR_MALFORMED, ".eh_frame", 0, "%s: failed", contestants[who].name);
            if (round)
                results->ns[who][round - 1] = (double)(end_ns - start_ns);
        }
    }
    return 0;
}

// Of one contestant to another, round by round; per row where they saw different numbers of rows.
static struct bench_spread ratio(const struct results *results, unsigned who, unsigned to, bool per_row)
{
    static double values[BENCH_ROUNDS_MAX];
    double scale = per_row ? (double)results->rows[to] / (double)results->rows[who] : 1;
    for (unsigned i = 0; i < results->rounds; i++)
        values[i] = results->ns[who][i] / results->ns[to][i] * scale;
    return bench_spread(values, results->rounds);
}

static void print_results(const struct results *results)
{
    printf("\n%-26s %9s %21s %9s %8s  %8s\n", "", "ms", "", "rows", "ns/row", "ratio");
    for (unsigned i = 0; i < results->count; i++) {
        static double copy[BENCH_ROUNDS_MAX]; // sorted
        memcpy(copy, results->ns[i], sizeof copy);
        struct bench_spread times = ratio(results, i, PURE, false), ns = bench_spread(copy, results->rounds);
        printf("%-26s %9.3f (%8.3f - %8.3f) %9" PRIu64 " %8.2f  %8.2f (%.2f - %.2f)\n", contestants[i].name,
               ns.median / 1e6, ns.p10 / 1e6, ns.p90 / 1e6, results->rows[i], ns.median / (double)results->rows[i],
               times.median, times.p10, times.p90);
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void print_verdicts(const struct bench_subject *subject, const struct results *results)
{
    const char *name = base_name(subject->path);
    struct bench_spread compile = ratio(results, QUTC, PURE, false);
    putchar('\n');
    bench_verdict(compile.median <= COMPILE_MAX, "compile: %s in %.2f x pure decode (target <= %.1f)", name,
                  compile.median, COMPILE_MAX);
    if (results->count <= LIBDWARF_LEAST)
        return;
    // libdw for what a row of ours says; libdwarf at its best, with a table that an expert made small.
    struct bench_spread libdw = ratio(results, LIBDW_FACTS, QUTC, true),
                        libdwarf = ratio(results, LIBDWARF_LEAST, QUTC, true);
    bench_verdict(libdw.median >= LIBDW_MIN, "compile: %s %.1f x faster a row than libdw (target >= %.0f)", name,
                  libdw.median, LIBDW_MIN);
    bench_verdict(libdwarf.median >= LIBDWARF_MIN, "compile: %s %.1f x faster a row than libdwarf (target >= %.0f)",
                  name, libdwarf.median, LIBDWARF_MIN);
}

static void run_readelf(const char *path)
{
    char *const arguments[] = {"readelf", "--debug-dump=frames-interp", (char *)path, NULL};
    struct child_result result;
    if (bench_child(arguments, 0, &result) == 0 && result.status == 0)
        printf("%-26s %9.3f (once; a process that prints text)\n", "readelf frames-interp",
               (double)result.wall_ns / 1e6);
    else
        printf("not measured: readelf: it does not run\n");
}

static int run_subject(struct bench_subject *subject, struct results *results, bool with_peers,
                       struct base_error *error)
{
    if (with_peers && bench_libdw_rows(subject, error) != 0)
        return -1;
    if (with_peers && subject->row_count == 0)
        return base_fail(error, BASE_ERR_NO_UNWIND, ".eh_frame", 0, "libdw finds no row");
    results->count = with_peers ? CONTESTANT_END : LIBDW;
    int cpu = bench_pin();
    int result = run_rounds(subject, results, error);
    if (result == 0) {
        printf("%s: .eh_frame %zu bytes, %" PRIu64 " functions, %" PRIu64 " rows, %" PRIu64 " instructions\n",
               subject->path, subject->eh_frame->bytes.size, subject->counts.fdes, subject->counts.rows,
               subject->counts.instructions);
        printf("%u rounds on cpu %d; median (p10 - p90); ratio to unchecked decoding, of the same round\n",
               results->rounds, cpu);
        print_results(results);
        if (with_peers)
            run_readelf(subject->path);
        print_verdicts(subject, results);
    }
    bench_unpin();
    return result;
}

int bench_compile_rounds(const char *path, unsigned rounds, bool with_peers, struct base_error *error)
{
    static struct results results;
    struct bench_subject subject;
    results = (struct results){.rounds = rounds};
    int result = bench_subject_open(path, &subject, error);
    if (result == 0)
        result = run_subject(&subject, &results, with_peers, error);
    bench_subject_close(&subject);
    return result;
}

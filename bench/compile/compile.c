// SPDX-License-Identifier: Apache-2.0
// The speed and the memory of compiling. bench/compile builds and calls this, once for each question.
#include <errno.h>
#include <ftw.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/compile/compile_command.h"
#include "bench/compile/compile_rounds.h"
#include "bench/measure.h"
#include "qutc/qutc.h"

static const char usage[] =
    "Usage: bench_compile [--rounds N] [--no-peers] FILE...              decoding, QUT, libdw, libdwarf, readelf\n"
    "       bench_compile [--rounds N] --images FILE...                  open and compile; xz, and the rest\n"
    "       bench_compile --qutc COMMAND --memory FILE...                peak memory of the command\n"
    "       bench_compile --qutc COMMAND [--rounds N] --tree DIRECTORY   the command on all files of a directory\n"
    "       bench_compile --once FILE                                    one compilation, to count instructions of\n";

struct one_compile {
    double open_ns, compile_ns, xz_ns;
    struct qutc_compile_stats stats;
};

static int compile_once(const char *path, struct one_compile *one, struct base_error *error)
{
    struct input_image *image;
    uint8_t *table = NULL;
    size_t size;
    uint64_t start_ns = bench_now_ns();
    if (input_image_open(path, NULL, 0, 0, NULL, &image, error) != 0)
        return -1;
    uint64_t opened_ns = bench_now_ns();
    int result = qutc_compile(image, NULL, &table, &size, &one->stats, error);
    one->open_ns = (double)(opened_ns - start_ns);
    one->compile_ns = (double)(bench_now_ns() - opened_ns);
    one->xz_ns = (double)image->xz_time_ns;
    free(table);
    input_image_close(image);
    return result;
}

// Images whose frames are packed: what unpacking costs beside our own work.
static int measure_image(const char *path, unsigned rounds, struct base_error *error)
{
    static double whole[BENCH_ROUNDS_MAX], xz[BENCH_ROUNDS_MAX], own[BENCH_ROUNDS_MAX], own_of_xz[BENCH_ROUNDS_MAX];
    struct one_compile one;
    bench_pin();
    for (unsigned round = 0; round <= rounds; round++) {
        if (compile_once(path, &one, error) != 0)
            return -1;
        if (round == 0)
            continue;
        whole[round - 1] = one.open_ns + one.compile_ns;
        xz[round - 1] = one.xz_ns;
        own[round - 1] = whole[round - 1] - one.xz_ns;
        own_of_xz[round - 1] = own[round - 1] / one.xz_ns;
    }
    bench_unpin();
    const char *slash = strrchr(path, '/');
    double rows = (double)one.stats.row_count;
    struct bench_spread all = bench_spread(whole, rounds), ours = bench_spread(own, rounds);
    bool is_packed = one.xz_ns > 0;
    printf("%-42.42s %8.3f (%7.3f - %7.3f) %8" PRIu64 " %8.3f %8.3f %8.1f %8.2f\n", slash ? slash + 1 : path,
           all.median / 1e6, all.p10 / 1e6, all.p90 / 1e6, one.stats.row_count, bench_spread(xz, rounds).median / 1e6,
           ours.median / 1e6, ours.median / rows, is_packed ? bench_spread(own_of_xz, rounds).median : 0);
    return 0;
}

static int report(const char *path, const struct base_error *error)
{
    char why[256];
    fprintf(stderr, "bench_compile: %s: %s\n", path, base_error_text(error, why, sizeof why));
    return -1;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

enum mode { ROUNDS, IMAGES, MEMORY, TREE, ONCE };

struct options {
    enum mode mode;
    unsigned rounds;
    bool with_peers;
    const char *qutc;
    char **paths;
    int count;
};

static int run_command(const struct options *options)
{
    struct base_error error = {0};
    char scratch[4096];
    const char *parent = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/qut-bench-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(scratch)) {
        fprintf(stderr, "bench_compile: %s: %s\n", scratch, strerror(errno));
        return -1;
    }
    int result = options->mode == MEMORY
                     ? bench_compile_memory(options->qutc, scratch, options->paths, options->count, &error)
                     : bench_compile_tree(options->qutc, scratch, options->paths[0], options->rounds, &error);
    if (result != 0)
        report(options->qutc, &error);
    nftw(scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return result;
}

static int run_files(const struct options *options)
{
    int result = 0;
    if (options->mode == IMAGES)
        printf("%-42s %8s %19s %8s %8s %8s %8s %8s\n", "open and compile", "ms", "(p10 - p90)", "rows", "xz ms",
               "rest ms", "ns/row", "rest/xz");
    for (int i = 0; i < options->count; i++) {
        const char *path = options->paths[i];
        struct base_error error = {0};
        struct one_compile one;
        int failed = options->mode == ROUNDS ? bench_compile_rounds(path, options->rounds, options->with_peers, &error)
                     : options->mode == IMAGES ? measure_image(path, options->rounds, &error)
                                               : compile_once(path, &one, &error);
        if (failed)
            result = report(path, &error);
    }
    return result;
}

// Returns an exit status, or -1 to go on.
static int parse(int argc, char **argv, struct options *options)
{
    static const struct option long_options[] = {{"rounds", required_argument, NULL, 'r'},
                                                 {"no-peers", no_argument, NULL, 'n'},
                                                 {"images", no_argument, NULL, 'i'},
                                                 {"memory", no_argument, NULL, 'm'},
                                                 {"tree", no_argument, NULL, 't'},
                                                 {"once", no_argument, NULL, 'o'},
                                                 {"qutc", required_argument, NULL, 'q'},
                                                 {"help", no_argument, NULL, 'h'},
                                                 {0}};
    *options = (struct options){.mode = ROUNDS, .rounds = 15, .with_peers = true};
    for (int option; (option = getopt_long(argc, argv, "h", long_options, NULL)) != -1;) {
        switch (option) {
        case 'r': options->rounds = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'n': options->with_peers = false; break;
        case 'i': options->mode = IMAGES; break;
        case 'm': options->mode = MEMORY; break;
        case 't': options->mode = TREE; break;
        case 'o': options->mode = ONCE; break;
        case 'q': options->qutc = optarg; break;
        case 'h': fputs(usage, stdout); return 0;
        default: fputs(usage, stderr); return 2;
        }
    }
    options->paths = argv + optind;
    options->count = argc - optind;
    bool is_command = options->mode == MEMORY || options->mode == TREE;
    if (options->count < 1 || options->rounds < 1 || options->rounds > BENCH_ROUNDS_MAX ||
        (is_command && !options->qutc) || (options->mode == TREE && options->count != 1)) {
        fputs(usage, stderr);
        return 2;
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct options options;
    int status = parse(argc, argv, &options);
    if (status >= 0)
        return status;
    bool is_command = options.mode == MEMORY || options.mode == TREE;
    if ((is_command ? run_command(&options) : run_files(&options)) != 0)
        return 2;
    return bench_misses() > 0;
}

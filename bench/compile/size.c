// SPDX-License-Identifier: Apache-2.0
// The size of tables: QUT's, the originals', the peers', file by file. bench/compile/size builds and calls this.
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bench/compile/file_sizes.h"
#include "bench/compile/size_files.h"
#include "bench/measure.h"

static const double QUT_MEDIAN_MAX = 0.33, QUT_ANY_MAX = 0.60, SMALL_MEDIAN_MAX = 0.25;

enum column { QUT, SMALL, SFRAME, ORC, OTEL, OTEL_MERGED, COLUMN_END };
static const char *const column_names[COLUMN_END] = {"qut", "small", "sframe_v2", "orc", "otel", "otel_merged"};

struct entry {
    const char *name;
    char *path; // NULL: not on this machine
    const char *package;
    bool failed;
    struct base_error error;
    struct file_sizes sizes;
    double ratios[COLUMN_END]; // to the original's bytes
};

struct report {
    struct entry *entries;
    size_t count, measured;
    double medians[COLUMN_END];
    double largest; // of QUT's ratios
    const char *largest_name;
};

static void measure(struct entry *entry)
{
    const struct file_sizes *sizes = &entry->sizes;
    if (!entry->path)
        return;
    entry->failed = bench_file_sizes(entry->path, &entry->sizes, &entry->error) != 0;
    const uint64_t bytes[COLUMN_END] = {
        [QUT] = sizes->qut_bytes, [SMALL] = sizes->small_bytes, [SFRAME] = sizes->peers.sframe_v2,
        [ORC] = sizes->peers.orc, [OTEL] = sizes->peers.otel,   [OTEL_MERGED] = sizes->peers.otel_merged,
    };
    for (unsigned i = 0; i < COLUMN_END && !entry->failed; i++)
        entry->ratios[i] = (double)bytes[i] / (double)sizes->eh_bytes;
}

static int summarise(struct report *report)
{
    double *values = malloc((report->count + 1) * sizeof *values);
    if (!values)
        return -1;
    for (unsigned column = 0; column < COLUMN_END; column++) {
        report->measured = 0;
        for (size_t i = 0; i < report->count; i++)
            if (report->entries[i].path && !report->entries[i].failed)
                values[report->measured++] = report->entries[i].ratios[column];
        report->medians[column] = bench_spread(values, report->measured).median;
    }
    for (size_t i = 0; i < report->count; i++)
        if (report->entries[i].ratios[QUT] > report->largest) {
            report->largest = report->entries[i].ratios[QUT];
            report->largest_name = report->entries[i].name;
        }
    free(values);
    return 0;
}

static void print_ratios(const double ratios[COLUMN_END])
{
    printf(" |  %5.3f  %5.3f | %6.3f %6.3f %6.3f %6.3f\n", ratios[QUT], ratios[SMALL], ratios[SFRAME], ratios[ORC],
           ratios[OTEL], ratios[OTEL_MERGED]);
}

static void print_table(const struct report *report)
{
    char why[256];
    printf("E: bytes of .eh_frame + .eh_frame_hdr. Ratios to E. Peers computed for the same rows.\n\n");
    printf("%-21s %9s %9s %8s %6s %9s %9s |   QUT    small | SFrame    ORC   OTel   OTel\n", "", "text", "E", "rows",
           "rules", "QUT", "small");
    printf("%-21s %9s %9s %8s %6s %9s %9s |   / E     / E  |     v2   6+4  plain merged\n", "file", "bytes", "bytes",
           "", "", "bytes", "bytes");
    for (size_t i = 0; i < report->count; i++) {
        const struct entry *entry = &report->entries[i];
        const struct file_sizes *sizes = &entry->sizes;
        if (!entry->path || entry->failed)
            continue;
        printf("%-21s %9" PRIu64 " %9" PRIu64 " %8" PRIu64 " %6" PRIu64 " %9" PRIu64 " %9" PRIu64, entry->name,
               sizes->text_bytes, sizes->eh_bytes, sizes->rows, sizes->rules, sizes->qut_bytes, sizes->small_bytes);
        print_ratios(entry->ratios);
    }
    printf("median of %-67zu", report->measured);
    print_ratios(report->medians);
    for (size_t i = 0; i < report->count; i++) {
        const struct entry *entry = &report->entries[i];
        if (!entry->path)
            printf("missing: %s (package %s)\n", entry->name, entry->package);
        else if (entry->failed)
            printf("failed: %s: %s\n", entry->path, base_error_text(&entry->error, why, sizeof why));
    }
}

// A library that was built with its own SFrame section: the measured figure beside the computed one.
static int print_sframe(const char *path)
{
    struct file_sizes sizes;
    struct base_error error = {0};
    char why[256];
    if (bench_file_sizes(path, &sizes, &error) != 0) {
        fprintf(stderr, "bench_size: %s: %s\n", path, base_error_text(&error, why, sizeof why));
        return -1;
    }
    if (!sizes.sframe_section_bytes) {
        fprintf(stderr, "bench_size: %s: it has no .sframe\n", path);
        return -1;
    }
    double eh_bytes = (double)sizes.eh_bytes;
    printf("\nSFrame as the assembler and linker here make it, of a library with %" PRIu64 " functions, E %" PRIu64
           " bytes:\n",
           sizes.functions, sizes.eh_bytes);
    printf("  .sframe          %7" PRIu64 " bytes  %.3f of E   (formula for v1: %" PRIu64 ", v2: %" PRIu64 ")\n",
           sizes.sframe_section_bytes, (double)sizes.sframe_section_bytes / eh_bytes, sizes.peers.sframe_v1,
           sizes.peers.sframe_v2);
    printf("  QUT              %7" PRIu64 " bytes  %.3f of E\n", sizes.qut_bytes, (double)sizes.qut_bytes / eh_bytes);
    printf("  QUT --small      %7" PRIu64 " bytes  %.3f of E\n", sizes.small_bytes,
           (double)sizes.small_bytes / eh_bytes);
    return 0;
}

static void print_verdicts(const struct report *report)
{
    putchar('\n');
    bench_verdict(report->medians[QUT] <= QUT_MEDIAN_MAX, "size: median of %zu files %.3f of E (target <= %.2f)",
                  report->measured, report->medians[QUT], QUT_MEDIAN_MAX);
    bench_verdict(report->largest <= QUT_ANY_MAX, "size: largest %.3f of E, %s (target <= %.2f)", report->largest,
                  report->largest_name, QUT_ANY_MAX);
    bench_verdict(report->medians[SMALL] <= SMALL_MEDIAN_MAX, "size: --small median %.3f of E (target <= %.2f)",
                  report->medians[SMALL], SMALL_MEDIAN_MAX);
}

static void print_json(const struct report *report)
{
    char why[256];
    struct base_json json = {.stream = stdout};
    base_json_open(&json, NULL, '{');
    base_json_open(&json, "files", '[');
    for (size_t i = 0; i < report->count; i++) {
        const struct entry *entry = &report->entries[i];
        const struct file_sizes *sizes = &entry->sizes;
        base_json_open(&json, NULL, '{');
        base_json_string(&json, "file", entry->name);
        if (!entry->path) {
            base_json_string(&json, "missing", entry->package);
        } else if (entry->failed) {
            base_json_string(&json, "failed", base_error_text(&entry->error, why, sizeof why));
        } else {
            base_json_number(&json, "text_bytes", sizes->text_bytes);
            base_json_number(&json, "eh_bytes", sizes->eh_bytes);
            base_json_number(&json, "functions", sizes->functions);
            base_json_number(&json, "rows", sizes->rows);
            base_json_number(&json, "peer_rows", sizes->peers.rows);
            base_json_number(&json, "rules", sizes->rules);
            base_json_number(&json, "qut_bytes", sizes->qut_bytes);
            base_json_number(&json, "small_bytes", sizes->small_bytes);
            for (unsigned column = 0; column < COLUMN_END; column++)
                base_json_real(&json, column_names[column], entry->ratios[column], 4);
        }
        base_json_close(&json, '}');
    }
    base_json_close(&json, ']');
    base_json_open(&json, "medians", '{');
    for (unsigned column = 0; column < COLUMN_END; column++)
        base_json_real(&json, column_names[column], report->medians[column], 4);
    base_json_close(&json, '}');
    base_json_close(&json, '}');
    putchar('\n');
}

static int make_entries(struct report *report, char **paths, size_t path_count)
{
    report->count = path_count ? path_count : BENCH_FILES;
    report->entries = calloc(report->count, sizeof *report->entries);
    if (!report->entries)
        return -1;
    for (size_t i = 0; i < report->count; i++) {
        struct entry *entry = &report->entries[i];
        if (path_count) {
            const char *slash = strrchr(paths[i], '/');
            entry->name = slash ? slash + 1 : paths[i];
            entry->path = strdup(paths[i]);
        } else {
            entry->name = bench_files[i].name;
            entry->path = bench_file_find(&bench_files[i]);
            entry->package = bench_files[i].package;
        }
        measure(entry);
    }
    return summarise(report);
}

static const char usage[] = "Usage: bench_size [--json] [--sframe LIBRARY] [FILE]...\n";

int main(int argc, char **argv)
{
    static const struct option long_options[] = {{"json", no_argument, NULL, 'j'},
                                                 {"sframe", required_argument, NULL, 's'},
                                                 {"help", no_argument, NULL, 'h'},
                                                 {0}};
    bool as_json = false;
    const char *sframe = NULL;
    for (int option; (option = getopt_long(argc, argv, "h", long_options, NULL)) != -1;) {
        switch (option) {
        case 'j': as_json = true; break;
        case 's': sframe = optarg; break;
        case 'h': fputs(usage, stdout); return 0;
        default: fputs(usage, stderr); return 2;
        }
    }
    struct report report = {0};
    if (make_entries(&report, argv + optind, (size_t)(argc - optind)) != 0) {
        fputs("bench_size: out of memory\n", stderr);
        return 2;
    }
    bool complete = report.measured > 0;
    for (size_t i = 0; i < report.count; i++)
        complete = complete && !report.entries[i].failed;
    if (as_json) {
        print_json(&report);
    } else {
        print_table(&report);
        if (sframe && print_sframe(sframe) != 0)
            complete = false;
        if (report.measured)
            print_verdicts(&report);
    }
    for (size_t i = 0; i < report.count; i++)
        free(report.entries[i].path);
    free(report.entries);
    return complete ? bench_misses() > 0 : 2;
}

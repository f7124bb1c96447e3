// SPDX-License-Identifier: Apache-2.0
// names_dump FILE <ADDRESSES                as addr2line -a -i -f prints them, to be compared with it
// names_dump --debuginfod FILE <ADDRESSES   the same, as if FILE were not there: by its build-id, from a server
// names_dump --time FILE COUNT AGAIN        how long it takes to name COUNT different addresses, AGAIN nodes each
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/tracer/names/by_hand.h"
#include "tracer/symbols/symbols.h"

static void print(const struct names *names, uint32_t node, uint64_t pc)
{
    printf("0x%016" PRIx64 "\n", pc);
    for (size_t i = 0; i < names_count(names, node); i++) {
        const struct name *name = names_at(names, node, i);
        printf("%s\n%s:%" PRIu32 "\n",
               name->mangled    ? name->mangled
               : name->is_known ? name->function
                                : "??",
               name->file ? name->file : "??", name->line);
    }
}

static int dump(const char *file, bool debuginfod)
{
    struct trace trace = by_hand_trace();
    uint32_t module =
        debuginfod ? by_hand_module(&trace, "/does/not/exist", file, 0) : by_hand_module(&trace, file, NULL, 0);
    char line[64];
    while (fgets(line, sizeof line, stdin))
        by_hand_node(&trace, module, strtoull(line, NULL, 16), QUT_TRACE_CLASS_CODE);
    const struct names_options options = {
        .inlined = true, .lines = true, .debuginfod = debuginfod, .debug_root = debuginfod ? "/does/not/exist" : NULL};
    struct names *names = names_of(&trace, &options, NULL);
    for (uint32_t i = 1; i < trace.node_count; i++)
        print(names, i, trace.nodes[i].pc);
    names_free(names);
    by_hand_free(&trace);
    return 0;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void take_time(const struct trace *trace, const struct names_options *options, const char *what)
{
    double start = seconds();
    struct names *names = names_of(trace, options, NULL);
    double spent = seconds() - start;
    printf("%-20s %zu nodes, %zu functions: %.3f s, %.2f M nodes/s\n", what, trace->node_count, names_id_count(names),
           spent, (double)trace->node_count / spent / 1e6);
    const struct names_missing *missing;
    size_t count = names_missing(names, &missing);
    for (size_t i = 0; i < count; i++)
        printf("  %zu without: %s\n", missing[i].node_count, missing[i].why);
    names_free(names);
}

// The same pcs `again` times, as trees of frames have them.
static int measure(const char *file, uint64_t count, uint64_t again)
{
    const struct input_image_options image_options = {.read_files = true};
    struct input_image *image = NULL;
    if (input_image_open(file, NULL, 0, 0, &image_options, &image, NULL) != 0)
        return 2;
    struct trace trace = by_hand_trace();
    uint32_t module = by_hand_module(&trace, file, NULL, 0);
    by_hand_node(&trace, module, image->exec[0].start, QUT_TRACE_CLASS_CODE);
    take_time(&trace, NULL, "one node");
    uint64_t all = image->exec[0].end - image->exec[0].start, seed = 1;
    for (uint64_t k = 0; k < again; k++, seed = 1)
        for (uint64_t i = 0; i < count; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            by_hand_node(&trace, module, image->exec[0].start + (seed >> 16) % all, QUT_TRACE_CLASS_CODE);
        }
    take_time(&trace, NULL, "symbols");
    if (names_can_inline()) {
        take_time(&trace, &(struct names_options){.inlined = true}, "inlined");
        take_time(&trace, &(struct names_options){.inlined = true, .lines = true}, "inlined, lines");
    }
    input_image_close(image);
    by_hand_free(&trace);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--time") == 0)
        return measure(argv[2], strtoull(argv[3], NULL, 0), strtoull(argv[4], NULL, 0));
    if (argc == 3 && strcmp(argv[1], "--debuginfod") == 0)
        return dump(argv[2], true);
    return argc == 2 ? dump(argv[1], false) : 2;
}

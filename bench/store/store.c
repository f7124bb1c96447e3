// SPDX-License-Identifier: Apache-2.0
// What it costs to store a sample: see bench/store/run.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/measure.h"
#include "bench/store/parts.h"

static void usage(FILE *stream)
{
    fputs("Usage: bench_store [--rounds N] [--steps N] [--only append|sample|writers]...\n"
          "\n"
          "Prints markdown and, behind each part, which targets are met.\n"
          "\n"
          "  --rounds N  each contestant so often, in turn (default: 11)\n"
          "  --steps N   samples of a round (default: 200000)\n",
          stream);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"rounds", required_argument, NULL, 'r'},
                                            {"steps", required_argument, NULL, 's'},
                                            {"only", required_argument, NULL, 'o'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    static int (*const parts[])(const struct store_request *) = {store_part_append, store_part_sample,
                                                                 store_part_writers};
    static const char *const names[] = {"append", "sample", "writers"};
    struct store_request request = {.round_count = 11, .step_count = 200000};
    unsigned wanted = 0;
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'r': request.round_count = strtoul(optarg, NULL, 10); break;
        case 's': request.step_count = strtoul(optarg, NULL, 10); break;
        case 'o':
            for (unsigned i = 0; i < 3; i++)
                wanted |= strcmp(optarg, names[i]) == 0 ? 1u << i : 0;
            break;
        case 'h': usage(stdout); return 0;
        default: usage(stderr); return 2;
        }
    }
    if (request.round_count < 1 || request.round_count > STORE_ROUNDS_MAX || request.step_count < 1000 ||
        optind != argc) {
        usage(stderr);
        return 2;
    }
    for (unsigned i = 0; i < 3; i++)
        if ((!wanted || (wanted >> i & 1)) && parts[i](&request) != 0)
            return 2;
    return bench_misses() != 0;
}

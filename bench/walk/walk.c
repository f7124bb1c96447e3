// SPDX-License-Identifier: Apache-2.0
// Walks of one scenario at one depth, by some walkers. bench/walk/run calls this, once for each process that the
// figures are to come from, and makes tables of what it prints.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/measure.h"
#include "bench/walk/rounds.h"

static const char usage[] =
    "Usage: bench_walk [OPTION]...\n"
    "Prints a line for each round and walker; rounds.h says which. bench/walk/run calls it.\n\n"
    "  --scenario S   same, top1, top3, top5, top9, middle, all, known3, known5, known, diverse, cold-l2, cold-memory, fresh-thread,\n"
    "                 signal or fresh-process (default: same)\n"
    "  --depth N      frames to walk, 2 to 200 (default: 60)\n"
    "  --code C       fp or nofp: what the others walk; the frame pointers' walkers have fp (default: both)\n"
    "  --walkers W,.. who walks, besides nothing and chase, which always do (default: all)\n"
    "  --rounds N     how often all have their turn (default: 5)\n"
    "  --walks N      in each turn (default: as many as fit into a millisecond)\n"
    "  --count        print no times: call bench_count_on and bench_count_off around each walk, once for each walker\n"
    "  --cache DIR    where tables are\n"
    "  --aosp FILE    the library that walks by libunwindstack\n"
    "  --spoil W      make one pc of this walker wrong\n"
    "  --seed N       choose other functions\n"
    "  --list         print all walkers, and `missing: NAME: WHY` for those that are not there\n"
    "Exit status: 0, or 1 where a walk was wrong, 2 where nothing could be measured.\n";

struct options {
    const char *scenario, *code, *walkers, *spoiled;
    size_t depth, round_count, walk_count;
    uint64_t seed;
    bool counting, listing;
};

static struct bench_stacks stacks[BENCH_CODES];

// Whether a walker belongs to the scenario and is in the list, if there is one.
static bool is_wanted(const struct bench_walker *walker, const struct options *options)
{
    if (walker == &bench_walker_nothing || walker == &bench_walker_chase)
        return true;
    if ((strncmp(walker->name, "signal-", 7) == 0) != (strcmp(options->scenario, "signal") == 0))
        return false;
    if (!options->walkers || walker->walks_nothing)
        return true;
    size_t length = strlen(walker->name);
    for (const char *at = options->walkers; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, walker->name, length) == 0 && (at[length] == ',' || !at[length]))
            return true;
    return false;
}

static void list(void)
{
    for (size_t i = 0; bench_walker_at(i); i++) {
        const struct bench_walker *walker = bench_walker_at(i);
        const char *why = walker->open ? walker->open() : NULL;
        if (why)
            printf("missing: %s: %s\n", walker->name, why);
        else
            printf("%s\n", walker->name);
    }
}

static void add_items(struct bench_request *request, const struct options *options)
{
    for (enum bench_code code = 0; code < BENCH_CODES; code++) {
        for (size_t i = 0; bench_walker_at(i); i++) {
            const struct bench_walker *walker = bench_walker_at(i);
            bool chases = walker->needs_frame_pointers, of_code = code == BENCH_FP || !chases;
            bool asked = !options->code || strcmp(options->code, bench_code_names[code]) == 0 || chases;
            if (!is_wanted(walker, options) || !of_code || (!asked && walker != &bench_walker_nothing))
                continue;
            const char *why = walker->open ? walker->open() : NULL;
            if (why)
                fprintf(stderr, "missing: %s: %s\n", walker->name, why);
            else
                request->items[request->item_count++] =
                    (struct bench_item){.walker = walker, .code = code, .stacks = &stacks[code]};
        }
    }
}

static int measure(const struct options *options)
{
    struct bench_request request = {.scenario = bench_scenario(options->scenario),
                                    .depth = options->depth,
                                    .round_count = options->round_count,
                                    .walk_count = options->walk_count,
                                    .spoiled = options->spoiled};
    if (!request.scenario || options->depth < 2 || options->depth > BENCH_MAX_DEPTH ||
        options->walk_count > BENCH_MAX_WALKS) {
        fputs(usage, stderr);
        return 2;
    }
    for (enum bench_code code = 0; code < BENCH_CODES; code++)
        if (bench_stacks_make(&stacks[code], request.scenario, options->depth, code, options->seed) != 0) {
            fprintf(stderr, "bench_walk: no two functions have frames of one size\n");
            return 2;
        }
    bench_walkers_thread();
    add_items(&request, options);
    // After libqut has started its thread, which is not to share the processor.
    bench_pin();
    int status = options->counting                                      ? bench_rounds_counted(&request)
                 : strcmp(request.scenario->name, "fresh-process") == 0 ? bench_rounds_fresh(&request)
                                                                        : bench_rounds_timed(&request);
    return status != 0;
}

static size_t number(const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    return *end || end == text ? SIZE_MAX : (size_t)value;
}

int main(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"scenario", required_argument, NULL, 's'}, {"depth", required_argument, NULL, 'd'},
        {"code", required_argument, NULL, 'c'},     {"walkers", required_argument, NULL, 'w'},
        {"rounds", required_argument, NULL, 'r'},   {"walks", required_argument, NULL, 'n'},
        {"cache", required_argument, NULL, 'C'},    {"aosp", required_argument, NULL, 'a'},
        {"spoil", required_argument, NULL, 'x'},    {"seed", required_argument, NULL, 'S'},
        {"count", no_argument, NULL, 'k'},          {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},           {0}};
    struct options options = {.scenario = "same", .depth = 60, .round_count = 5, .seed = 20240229};
    for (int option; (option = getopt_long(argc, argv, "h", long_options, NULL)) != -1;) {
        switch (option) {
        case 's': options.scenario = optarg; break;
        case 'd': options.depth = number(optarg); break;
        case 'c': options.code = optarg; break;
        case 'w': options.walkers = optarg; break;
        case 'r': options.round_count = number(optarg); break;
        case 'n': options.walk_count = number(optarg); break;
        case 'C': bench_cache_directory = optarg; break;
        case 'a': bench_aosp_library = optarg; break;
        case 'x': options.spoiled = optarg; break;
        case 'S': options.seed = number(optarg); break;
        case 'k': options.counting = true; break;
        case 'l': options.listing = true; break;
        case 'h': fputs(usage, stdout); return 0;
        default: fputs(usage, stderr); return 2;
        }
    }
    if (options.listing) {
        list();
        return 0;
    }
    return measure(&options);
}

// SPDX-License-Identifier: Apache-2.0
// The stacks of each scenario.
#include "bench/walk/run.h"

#include <string.h>

const char *const bench_code_names[BENCH_CODES] = {"fp", "nofp"};

static const struct bench_scenario scenarios[] = {
    {.name = "same", .change = BENCH_CHANGE_TOP, .frames = 0},
    {.name = "top1", .change = BENCH_CHANGE_TOP, .frames = 1},
    {.name = "top3", .change = BENCH_CHANGE_TOP, .frames = 3},
    {.name = "top5", .change = BENCH_CHANGE_TOP, .frames = 5},
    {.name = "top9", .change = BENCH_CHANGE_TOP, .frames = 9},
    {.name = "middle", .change = BENCH_CHANGE_MIDDLE},
    {.name = "all", .change = BENCH_CHANGE_ALL},
    {.name = "known3", .change = BENCH_CHANGE_KNOWN, .frames = 3},
    {.name = "known5", .change = BENCH_CHANGE_KNOWN, .frames = 5},
    {.name = "known", .change = BENCH_CHANGE_KNOWN},
    {.name = "diverse", .change = BENCH_CHANGE_RANDOM},
    {.name = "cold-l2", .change = BENCH_CHANGE_TOP, .cold_l2 = true},
    {.name = "cold-memory", .change = BENCH_CHANGE_TOP, .cold_memory = true},
    {.name = "fresh-thread", .change = BENCH_CHANGE_TOP, .fresh_thread = true},
    {.name = "signal", .change = BENCH_CHANGE_TOP},
    {.name = "fresh-process", .change = BENCH_CHANGE_TOP},
};

const struct bench_scenario *bench_scenario_at(size_t index)
{
    return index < sizeof scenarios / sizeof *scenarios ? &scenarios[index] : NULL;
}

const struct bench_scenario *bench_scenario(const char *name)
{
    for (size_t i = 0; bench_scenario_at(i); i++)
        if (strcmp(scenarios[i].name, name) == 0)
            return &scenarios[i];
    return NULL;
}

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 16;
}

// The first `count` of stacks->functions become a random choice, none of them twice.
static void shuffle(struct bench_stacks *stacks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t other = i + draw(&stacks->random) % (BENCH_ALL_FUNCTIONS - i);
        bench_function *function = stacks->functions[i];
        stacks->functions[i] = stacks->functions[other];
        stacks->functions[other] = function;
    }
}

static void gather(struct bench_stacks *stacks, enum bench_code code)
{
    bench_function *const *const tables[BENCH_CODES][BENCH_SUBJECTS] = {
        {bench_subject_fp_0, bench_subject_fp_1, bench_subject_fp_2, bench_subject_fp_3},
        {bench_subject_nofp_0, bench_subject_nofp_1, bench_subject_nofp_2, bench_subject_nofp_3}};
    for (size_t i = 0; i < BENCH_ALL_FUNCTIONS; i++)
        stacks->functions[i] = tables[code][i / BENCH_SUBJECT_FUNCTIONS][i % BENCH_SUBJECT_FUNCTIONS];
    shuffle(stacks, BENCH_ALL_FUNCTIONS);
}

// The second variant has another function with a frame of the same size at the level.
static int replace_middle(struct bench_stacks *stacks)
{
    size_t level = stacks->depth / 2;
    uintptr_t frame = bench_run_frame_below(stacks->variants[0][level]);
    for (size_t i = stacks->depth; i < BENCH_ALL_FUNCTIONS; i++) {
        if (bench_run_frame_below(stacks->functions[i]) != frame)
            continue;
        memcpy(stacks->variants[1], stacks->variants[0], sizeof stacks->variants[0]);
        stacks->variants[1][level] = stacks->functions[i];
        stacks->changed_level = level;
        stacks->variant_count = 2;
        return 0;
    }
    return -1;
}

int bench_stacks_make(struct bench_stacks *stacks, const struct bench_scenario *scenario, size_t depth,
                      enum bench_code code, uint64_t seed)
{
    *stacks = (struct bench_stacks){.depth = depth, .scenario = scenario, .random = seed | 1};
    gather(stacks, code);
    size_t frames = scenario->frames < depth ? scenario->frames : depth;
    if (!frames && scenario->change >= BENCH_CHANGE_ALL)
        frames = depth;
    stacks->variant_count = frames ? BENCH_VARIANTS : 1;
    // A stack that stays the same is made by calling the leaf again.
    stacks->changed_level = frames ? depth - frames + 1 : depth;
    size_t next = 0;
    for (size_t variant = 0; variant < BENCH_VARIANTS; variant++) {
        for (size_t level = 1; level < depth; level++)
            stacks->variants[variant][level] =
                variant && level < stacks->changed_level ? stacks->variants[0][level] : stacks->functions[next++];
        stacks->variants[variant][depth] = bench_leaves[variant];
    }
    return scenario->change == BENCH_CHANGE_MIDDLE ? replace_middle(stacks) : 0;
}

void bench_stacks_first(struct bench_stacks *stacks, struct bench_path *path)
{
    stacks->variant = 0;
    memcpy(path->call, stacks->variants[0], (stacks->depth + 1) * sizeof *path->call);
}

void bench_stacks_next(struct bench_stacks *stacks, struct bench_path *path)
{
    size_t depth = stacks->depth;
    path->stay = stacks->changed_level - 1;
    if (stacks->scenario->change == BENCH_CHANGE_RANDOM) {
        shuffle(stacks, depth - 1);
        memcpy(path->call + 1, stacks->functions, (depth - 1) * sizeof *path->call);
        path->call[depth] = bench_leaves[draw(&stacks->random) % BENCH_LEAVES];
        return;
    }
    if (stacks->scenario->change == BENCH_CHANGE_KNOWN) {
        // Functions may come twice, as in recursion.
        for (size_t level = stacks->changed_level; level < depth; level++)
            path->call[level] = stacks->functions[draw(&stacks->random) % BENCH_KNOWN_FUNCTIONS];
        path->call[depth] = bench_leaves[draw(&stacks->random) % BENCH_LEAVES];
        return;
    }
    stacks->variant = (stacks->variant + 1) % stacks->variant_count;
    for (size_t level = stacks->changed_level; level <= depth; level++)
        path->call[level] = stacks->variants[stacks->variant][level];
}

// SPDX-License-Identifier: Apache-2.0
// How often a change is found that is there, and one that is not: comparisons of samples that are drawn from known
// distributions, the same ones each time. A program of 60 functions, few of them hot; in B one of them takes 5 %
// longer.
//
//     diff_power [RUNS]
//
// Of equal ones 5 % may be told as changed; what more runs find is chance, up to a bound that 95 % of such do not pass.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/diff/judge.h"

enum { FUNCTIONS = 60, RECORDINGS_MAX = 8, SLOWER = 1 };

static uint64_t state = 0x9e3779b97f4a7c15u;

static double uniform(void) // above 0, below 1
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

static double poisson(double mean)
{
    if (mean > 200) // as a normal one, whose steps are smaller than its deviation by far
        return fmax(0, round(mean + sqrt(mean) * normal()));
    double count = 0;
    for (double product = uniform(); product > exp(-mean); product *= uniform())
        count++;
    return count;
}

struct scene {
    const char *name;
    size_t recordings;  // of each side
    double samples;     // of each recording
    double spread;      // between recordings, of each function's own time
    double more_spread; // of every seventh function
    enum judge_basis basis;
    bool can_find; // there are samples enough for 5 %
};

struct tally {
    int found, wrong_way, others, any;
};

// Counts of one recording.
static void draw(const struct scene *scene, double slower, double counts[FUNCTIONS])
{
    double cost[FUNCTIONS], sum = 0;
    for (int f = 0; f < FUNCTIONS; f++) {
        const double spread = f % 7 == 0 ? scene->more_spread : scene->spread;
        cost[f] = 1.0 / (1 + f) * exp(spread * normal());
        sum += 1.0 / (1 + f);
    }
    cost[SLOWER] *= slower;
    for (int f = 0; f < FUNCTIONS; f++)
        counts[f] = poisson(scene->samples * cost[f] / sum);
}

static void compare(const struct scene *scene, double slower, struct tally *tally)
{
    static double values[FUNCTIONS][2][RECORDINGS_MAX];
    struct judge_item items[FUNCTIONS], *all[FUNCTIONS];
    double sums[2] = {0, 0};
    memset(items, 0, sizeof items);
    for (int side = 0; side < 2; side++)
        for (size_t r = 0; r < scene->recordings; r++) {
            double counts[FUNCTIONS], sum = 0;
            draw(scene, side ? slower : 1, counts);
            for (int f = 0; f < FUNCTIONS; f++)
                sum += counts[f];
            sums[side] += sum;
            for (int f = 0; f < FUNCTIONS; f++) {
                items[f].met[side] += counts[f];
                values[f][side][r] = scene->basis == JUDGE_SHARES ? counts[f] / sum : counts[f];
            }
        }
    for (int f = 0; f < FUNCTIONS; f++) {
        all[f] = &items[f];
        for (int side = 0; side < 2; side++) {
            items[f].of[side] = sums[side];
            items[f].whole[side] = sums[side] / (double)scene->recordings; // a sample is worth 1
            items[f].values[side] = values[f][side];
        }
    }
    const size_t recordings[2] = {scene->recordings, scene->recordings};
    if (!diff_judge(all, FUNCTIONS, recordings, scene->basis) || !diff_judge_correct(all, FUNCTIONS))
        abort();
    bool any = false;
    for (int f = 0; f < FUNCTIONS; f++) {
        any = any || items[f].verdict != JUDGE_CANNOT_TELL;
        tally->others += f != SLOWER && items[f].verdict != JUDGE_CANNOT_TELL;
    }
    tally->any += any;
    tally->found += items[SLOWER].verdict == JUDGE_MORE;
    tally->wrong_way += items[SLOWER].verdict == JUDGE_LESS;
}

int main(int argc, char **argv)
{
    static const struct scene scenes[] = {
        {"one recording a side, 300,000 samples", 1, 300000, 0, 0, JUDGE_SHARES, true},
        {"one recording a side, 2,000 samples", 1, 2000, 0, 0, JUDGE_SHARES, false},
        {"one recording a side, 100 samples", 1, 100, 0, 0, JUDGE_SHARES, false},
        {"one recording a side, by amount, 300,000 samples", 1, 300000, 0, 0, JUDGE_AMOUNTS, true},
        {"two a side, 200,000 samples each", 2, 200000, 0, 0, JUDGE_SHARES, false},
        {"five a side, which differ by 1 %, 150,000 samples each", 5, 150000, 0.01, 0.01, JUDGE_SHARES, true},
        {"five a side, by amount, which differ by 1 %, 150,000 samples each", 5, 150000, 0.01, 0.01, JUDGE_AMOUNTS,
         true},
        {"three a side, which differ by 1 %, some functions by 4 %, 50,000 samples each", 3, 50000, 0.01, 0.04,
         JUDGE_SHARES, false},
        {"eight a side, which differ by 2 %, some functions by 6 %, 100,000 samples each", 8, 100000, 0.02, 0.06,
         JUDGE_SHARES, false},
        {"three a side, 500 samples each", 3, 500, 0, 0, JUDGE_SHARES, false},
    };
    const int runs = argc > 1 ? atoi(argv[1]) : 200;
    int failures = 0;
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        struct tally equal = {0, 0, 0, 0}, slower = {0, 0, 0, 0};
        for (int run = 0; run < runs; run++) {
            compare(&scenes[i], 1, &equal);
            compare(&scenes[i], 1.05, &slower);
        }
        const bool is_false = equal.any > runs * 0.05 + 1.645 * sqrt(runs * 0.05 * 0.95);
        const bool is_missed = (scenes[i].can_find && slower.found * 100 < runs * 95) || slower.wrong_way * 50 > runs;
        printf("%s%s: equal ones told as changed in %d of %d; 5 %% slower found in %d, told as less in %d\n",
               is_false || is_missed ? "FAILED: " : "", scenes[i].name, equal.any, runs, slower.found,
               slower.wrong_way);
        failures += is_false || is_missed;
    }
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

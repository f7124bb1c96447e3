// SPDX-License-Identifier: Apache-2.0
#include "tracer/diff/judge.h"

#include <math.h>
#include <stdlib.h>

#include "tracer/diff/chance.h"

enum {
    USUAL_LEAST_ITEMS = 10, // fewer do not say what is usual
    USUAL_LEAST_MET = 5,    // samples in a recording, for a function to take part in that
};

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / (double)count : 0;
}

static double squares_of(const double *values, size_t count, double mean)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return sum;
}

// ---- what sampling alone makes

// The variance of one side's value, if both sides have the same share.
static double sampling_variance(const struct judge_item *item, int side, enum judge_basis basis)
{
    const double of = item->of[0] + item->of[1];
    if (basis == JUDGE_MEASURED || of <= 0 || item->of[side] <= 0)
        return 0;
    const double share = fmin(1, (item->met[0] + item->met[1]) / of);
    if (basis == JUDGE_SHARES)
        return share * (1 - share) / item->of[side];
    return item->whole[side] * item->whole[side] * share / item->of[side];
}

static double chance_of_sampling(const struct judge_item *item, enum judge_basis basis)
{
    if (basis == JUDGE_MEASURED)
        return 0;
    if (basis == JUDGE_SHARES)
        return diff_chance_shares(item->met[0], item->of[0], item->met[1], item->of[1]);
    const double time[2] = {item->whole[0] > 0 ? item->of[0] / item->whole[0] : 0,
                            item->whole[1] > 0 ? item->of[1] / item->whole[1] : 0};
    return diff_chance_rates(item->met[0], time[0], item->met[1], time[1]);
}

// ---- what is between recordings

struct spread {
    double variance; // of one recording's value
    double expected; // of it, what sampling makes
};

static struct spread spread_of(const struct judge_item *item, const size_t recordings[2], enum judge_basis basis)
{
    const double freedom = (double)(recordings[0] + recordings[1] - 2);
    double squares = 0, expected = 0;
    for (int side = 0; side < 2; side++) {
        const double count = (double)recordings[side];
        squares += squares_of(item->values[side], recordings[side], item->mean[side]);
        expected += sampling_variance(item, side, basis) * count * (count - 1);
    }
    return (struct spread){.variance = squares / freedom, .expected = expected / freedom};
}

// What is usual: beside what sampling makes, a value differs by `own` times itself; and as sure as `freedom` more
// recordings would make it.
struct usual_input {
    double mean, variance, expected;
};

struct usual {
    double own, scale, freedom;
};

static double usual_variance(const struct usual *usual, const struct judge_item *item, const struct spread *spread)
{
    const double mean = (item->mean[0] + item->mean[1]) / 2 * usual->own;
    return spread->expected + mean * mean;
}

// The `own` for which the variances that are seen are likeliest.
static double likeliest_own(const struct usual_input *inputs, size_t count)
{
    double best = 0, most = -INFINITY;
    for (int step = -1; step < 60; step++) {
        const double own = step < 0 ? 0 : 1e-4 * exp(step * 0.16); // up to 1.26
        double likelihood = 0;
        for (size_t i = 0; i < count; i++) {
            const double variance = inputs[i].expected + own * own * inputs[i].mean * inputs[i].mean;
            likelihood -= log(variance) + inputs[i].variance / variance;
        }
        if (likelihood > most) {
            most = likelihood;
            best = own;
        }
    }
    return best;
}

// How sure that is: by the mean and the variance of the logarithms of what is seen over what is usual. Those of
// variances of so many degrees of freedom are known. Where functions are of two sorts, a few that differ by much and
// many that do not, that was seen to make equal recordings look changed in 8 of 100 comparisons; half as sure, in less
// than 5 (tests/unit/tracer/diff/power_test.c).
static bool usual_of(struct usual *usual, struct judge_item *const *items, size_t count, const size_t recordings[2],
                     enum judge_basis basis)
{
    const double freedom = (double)(recordings[0] + recordings[1] - 2), half = freedom / 2;
    struct usual_input *inputs = malloc((count + 1) * sizeof *inputs);
    double *logs = malloc((count + 1) * sizeof *logs);
    size_t taken = 0;
    *usual = (struct usual){.scale = 1};
    if (!logs || !inputs) {
        free(logs);
        free(inputs);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct spread spread = spread_of(items[i], recordings, basis);
        const double met = (items[i]->met[0] + items[i]->met[1]) / (double)(recordings[0] + recordings[1]);
        if (met >= USUAL_LEAST_MET && spread.variance > 0 && spread.expected > 0)
            inputs[taken++] =
                (struct usual_input){(items[i]->mean[0] + items[i]->mean[1]) / 2, spread.variance, spread.expected};
    }
    if (taken >= USUAL_LEAST_ITEMS) {
        usual->own = likeliest_own(inputs, taken);
        for (size_t i = 0; i < taken; i++)
            logs[i] = log(inputs[i].variance /
                          (inputs[i].expected + usual->own * usual->own * inputs[i].mean * inputs[i].mean)) -
                      diff_chance_digamma(half) + log(half);
        const double mean = mean_of(logs, taken);
        const double more = squares_of(logs, taken, mean) / (double)(taken - 1) - diff_chance_trigamma(half);
        const double their_half = more > 0 ? diff_chance_trigamma_inverse(more) / 2 : INFINITY;
        usual->freedom = 2 * their_half;
        usual->scale = fmax(1, exp(mean + (isinf(their_half) ? 0 : diff_chance_digamma(their_half) - log(their_half))));
    }
    free(logs);
    free(inputs);
    return true;
}

// The chance by the spread, and the error that it says.
static double chance_of_spread(const struct judge_item *item, const struct usual *usual, const size_t recordings[2],
                               enum judge_basis basis, double *error)
{
    const struct spread spread = spread_of(item, recordings, basis);
    const double own = (double)(recordings[0] + recordings[1] - 2);
    double variance = spread.variance, freedom = own;
    if (spread.expected > 0 && usual->freedom > 0) {
        const double theirs = usual->scale * usual_variance(usual, item, &spread);
        variance = isinf(usual->freedom) ? theirs : (own * variance + usual->freedom * theirs) / (own + usual->freedom);
        freedom = own + usual->freedom;
    }
    const double deviation = sqrt(variance * (1 / (double)recordings[0] + 1 / (double)recordings[1]));
    *error = diff_chance_bound(freedom) * deviation;
    if (deviation <= 0)
        return item->change < 0 || item->change > 0 ? 0 : 1;
    return diff_chance_student(item->change / deviation, freedom);
}

bool diff_judge(struct judge_item *const *items, size_t count, const size_t recordings[2], enum judge_basis basis)
{
    const bool has_spread = recordings[0] && recordings[1] && recordings[0] + recordings[1] > 2;
    struct usual usual = {.scale = 1};
    for (size_t i = 0; i < count; i++) {
        struct judge_item *item = items[i];
        for (int side = 0; side < 2; side++)
            item->mean[side] = mean_of(item->values[side], recordings[side]);
        item->change = item->mean[1] - item->mean[0];
        item->is_tested = item->met[0] + item->met[1] >= JUDGE_LEAST_MET || basis == JUDGE_MEASURED;
    }
    if (has_spread && !usual_of(&usual, items, count, recordings, basis))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct judge_item *item = items[i];
        const double variance = sampling_variance(item, 0, basis) + sampling_variance(item, 1, basis);
        double error = 0;
        item->chance = chance_of_sampling(item, basis);
        item->error = item->of[0] > 0 && item->of[1] > 0 ? diff_chance_bound(INFINITY) * sqrt(variance) : INFINITY;
        if (has_spread) {
            item->chance = fmax(item->chance, chance_of_spread(item, &usual, recordings, basis, &error));
            item->error = basis == JUDGE_MEASURED ? error : fmax(item->error, error);
        } else if (basis == JUDGE_MEASURED) { // exact, and nothing says what the next recording would be
            item->is_tested = false;
            item->error = INFINITY;
        }
    }
    return true;
}

static int by_chance(const void *one, const void *other)
{
    const struct judge_item *a = *(struct judge_item *const *)one, *b = *(struct judge_item *const *)other;
    return (a->chance > b->chance) - (a->chance < b->chance);
}

bool diff_judge_correct(struct judge_item *const *items, size_t count)
{
    struct judge_item **tested = malloc((count + 1) * sizeof(struct judge_item *));
    size_t tests = 0;
    if (!tested)
        return false;
    for (size_t i = 0; i < count; i++) {
        items[i]->correct = 1;
        items[i]->verdict = JUDGE_CANNOT_TELL;
        if (items[i]->is_tested)
            tested[tests++] = items[i];
    }
    qsort(tested, tests, sizeof(struct judge_item *), by_chance);
    double least = 1;
    for (size_t rank = tests; rank > 0; rank--) {
        struct judge_item *item = tested[rank - 1];
        least = fmin(least, item->chance * (double)tests / (double)rank);
        item->correct = least;
        if (least <= JUDGE_LEVEL)
            item->verdict = item->change > 0 ? JUDGE_MORE : JUDGE_LESS;
    }
    free(tested);
    return true;
}

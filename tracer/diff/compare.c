// SPDX-License-Identifier: Apache-2.0
// From sums to rows: what of a function's change chance may have made.
#include <math.h>
#include <stdlib.h>

#include "tracer/diff/inside.h"

static void add_basis(struct share_basis *to, const struct share_basis *from)
{
    to->sum += from->sum;
    to->told_sum += from->told_sum;
    to->ticks += from->ticks;
    to->looks += from->looks;
}

// ---- how many samples a side has for one share

// Of a side: as many equal, independent samples as its clocks are worth for a share that both sides have. The error is
// that of 95 %.
static double worth(const struct share_basis *basis, double share, double told_share)
{
    const double user_sum = (double)basis->sum - (double)basis->told_sum;
    const double weight = share * (double)basis->sum;
    double told = fmin(told_share * (double)basis->sum, fmin(weight, (double)basis->told_sum));
    told = fmax(told, weight - user_sum);
    const double error = analysis_share_error(basis, (uint64_t)weight, (uint64_t)fmin(told, floor(weight)));
    const double all = basis->ticks + (basis->looks > 0 ? basis->looks : 0);
    return error > 0 && error < 1 ? fmin(all, 1.96 * 1.96 * share * (1 - share) / (error * error)) : all;
}

static void set_samples(const struct diff *diff, struct judge_item *item, const uint64_t weights[2],
                        const uint64_t told[2])
{
    const double sum = (double)diff->basis[DIFF_A].sum + (double)diff->basis[DIFF_B].sum;
    const double share = ((double)weights[DIFF_A] + (double)weights[DIFF_B]) / sum;
    const double told_share = ((double)told[DIFF_A] + (double)told[DIFF_B]) / sum;
    for (int side = 0; side < 2; side++) {
        const struct share_basis *basis = &diff->basis[side];
        item->of[side] = worth(basis, share, told_share);
        item->met[side] = item->of[side] * (double)weights[side] / (double)basis->sum;
        item->whole[side] = (double)basis->sum / (double)diff->recordings[side];
    }
}

// ---- rows

static void fill_row(const struct diff *diff, struct diff_row *row, double *values)
{
    const size_t all = diff_all(diff), first_b = diff->recordings[DIFF_A];
    uint64_t self_told[2] = {0, 0}, total_told[2] = {0, 0};
    double *self = values, *total = values + all;
    for (size_t recording = 0; recording < all; recording++) {
        const struct diff_samples *samples = &diff->samples.items[(size_t)row->function * all + recording];
        const enum diff_side side = recording < first_b ? DIFF_A : DIFF_B;
        const double whole = diff->by_amount ? 1 : (double)diff->told[recording].sum;
        row->self[side] += samples->self;
        row->total[side] += samples->total;
        self_told[side] += samples->self_told;
        total_told[side] += samples->total_told;
        self[recording] = whole > 0 ? (double)samples->self / whole : 0;
        total[recording] = whole > 0 ? (double)samples->total / whole : 0;
    }
    row->by_self = (struct judge_item){.values = {self, self + first_b}};
    row->by_total = (struct judge_item){.values = {total, total + first_b}};
    set_samples(diff, &row->by_self, row->self, self_told);
    set_samples(diff, &row->by_total, row->total, total_told);
}

bool diff_row_is_told(const struct diff_row *row)
{
    return row->by_self.verdict != JUDGE_CANNOT_TELL || row->by_total.verdict != JUDGE_CANNOT_TELL;
}

static int by_change(const void *one, const void *other)
{
    const struct diff_row *a = one, *b = other;
    if (diff_row_is_told(a) != diff_row_is_told(b))
        return diff_row_is_told(a) ? -1 : 1;
    double left = fabs(a->by_self.change), right = fabs(b->by_self.change);
    if (!(left > right || right > left)) {
        left = fabs(a->by_total.change);
        right = fabs(b->by_total.change);
    }
    if (left > right || right > left)
        return left > right ? -1 : 1;
    return a->function < b->function ? -1 : 1;
}

static bool judge_rows(struct diff *diff)
{
    const enum judge_basis basis = diff->by_amount ? JUDGE_AMOUNTS : JUDGE_SHARES;
    const size_t count = diff->row_count;
    struct judge_item **items = calloc(2 * count + 1, sizeof(struct judge_item *));
    if (!items)
        return false;
    for (size_t i = 0; i < count; i++) {
        items[i] = &diff->rows[i].by_self;
        items[count + i] = &diff->rows[i].by_total;
    }
    bool is_good = diff_judge(items, count, diff->recordings, basis) &&
                   diff_judge(items + count, count, diff->recordings, basis) && diff_judge_correct(items, 2 * count);
    free(items);
    return is_good;
}

static int finish_samples(struct diff *diff)
{
    const size_t all = diff_all(diff);
    for (size_t recording = 0; recording < all; recording++)
        add_basis(&diff->basis[recording < diff->recordings[DIFF_A] ? DIFF_A : DIFF_B], &diff->told[recording].basis);
    if (!diff_has_samples(diff))
        return 0;
    diff->rows = calloc(diff->functions.count + 1, sizeof *diff->rows);
    diff->values = calloc(2 * diff->functions.count * all + 1, sizeof *diff->values);
    if (!diff->rows || !diff->values)
        return -1;
    for (uint32_t function = 0; function < diff->functions.count; function++) {
        bool is_met = false;
        for (size_t recording = 0; recording < all; recording++)
            is_met = is_met || diff->samples.items[(size_t)function * all + recording].total;
        if (!is_met)
            continue;
        struct diff_row *row = &diff->rows[diff->row_count];
        *row = (struct diff_row){.function = function};
        fill_row(diff, row, &diff->values[2 * all * diff->row_count++]);
    }
    if (!judge_rows(diff))
        return -1;
    qsort(diff->rows, diff->row_count, sizeof *diff->rows, by_change);
    return 0;
}

int diff_finish(struct diff *diff, struct base_error *error)
{
    if (finish_samples(diff) != 0 || diff_finish_calls(diff) != 0)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory to compare");
    return 0;
}

bool diff_has_samples(const struct diff *diff)
{
    return diff->basis[DIFF_A].sum && diff->basis[DIFF_B].sum;
}

bool diff_has_calls(const struct diff *diff)
{
    bool has[2] = {false, false};
    for (size_t recording = 0; recording < diff_all(diff); recording++)
        has[recording < diff->recordings[DIFF_A] ? DIFF_A : DIFF_B] |= diff->told[recording].has_calls;
    return has[DIFF_A] && has[DIFF_B];
}

size_t diff_count(const struct diff *diff, enum judge_verdict verdict)
{
    size_t count = 0;
    for (size_t i = 0; i < diff->row_count; i++)
        count += diff->rows[i].by_self.verdict == verdict || diff->rows[i].by_total.verdict == verdict;
    return count;
}

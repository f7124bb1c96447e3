// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "base/json.h"
#include "tracer/diff/inside.h"
#include "tracer/export/weight_words.h"

static void print_pair(struct base_json *json, const char *key, const uint64_t values[2])
{
    base_json_open(json, key, '[');
    base_json_number(json, NULL, values[DIFF_A]);
    base_json_number(json, NULL, values[DIFF_B]);
    base_json_close(json, ']');
}

static void print_item(struct base_json *json, const char *key, const struct judge_item *item, bool by_amount)
{
    static const char *const words[] = {
        [JUDGE_CANNOT_TELL] = "cannot tell", [JUDGE_MORE] = "more", [JUDGE_LESS] = "less"};
    const int decimals = by_amount ? 1 : 8;
    base_json_open(json, key, '{');
    base_json_real(json, "a", item->mean[DIFF_A], decimals);
    base_json_real(json, "b", item->mean[DIFF_B], decimals);
    base_json_real(json, "change", item->change, decimals);
    if (!isinf(item->error)) // else it is not known
        base_json_real(json, "error", item->error, decimals);
    base_json_real(json, "chance", item->chance, 12);
    base_json_real(json, "chance_corrected", item->correct, 12);
    base_json_string(json, "verdict", words[item->verdict]);
    base_json_close(json, '}');
}

static void print_function(struct base_json *json, const struct diff *diff, uint32_t function)
{
    base_json_string(json, "function", diff_function_text(diff, function));
    base_json_string(json, "library", base_interner_text(&diff->strings, diff->functions.items[function].module));
}

static void print_rows(struct base_json *json, const struct diff *diff, size_t limit, bool with_tree)
{
    base_json_open(json, "functions", '[');
    for (size_t i = 0; i < diff->row_count && (!limit || i < limit); i++) {
        const struct diff_row *row = &diff->rows[i];
        base_json_open(json, NULL, '{');
        print_function(json, diff, row->function);
        if (with_tree)
            base_json_number(json, "index", row->function);
        print_pair(json, "self_sum", row->self);
        print_pair(json, "total_sum", row->total);
        print_item(json, "self", &row->by_self, diff->by_amount);
        print_item(json, "total", &row->by_total, diff->by_amount);
        base_json_close(json, '}');
    }
    base_json_close(json, ']');
}

static void print_calls(struct base_json *json, const struct diff *diff, size_t limit)
{
    base_json_open(json, "calls", '[');
    for (size_t i = 0; i < diff->call_row_count && (!limit || i < limit); i++) {
        const struct diff_call_row *row = &diff->call_rows[i];
        const struct diff_calls *a = &row->of[DIFF_A], *b = &row->of[DIFF_B];
        base_json_open(json, NULL, '{');
        print_function(json, diff, row->function);
        print_pair(json, "calls", (const uint64_t[]){a->count, b->count});
        print_pair(json, "with_events", (const uint64_t[]){a->told, b->told});
        print_pair(json, "total_ns", (const uint64_t[]){a->total_ns, b->total_ns});
        print_pair(json, "self_ns", (const uint64_t[]){a->self_ns, b->self_ns});
        print_item(json, "mean_ns", &row->by_mean, true);
        base_json_close(json, '}');
    }
    base_json_close(json, ']');
}

// Frames as four columns: parent, index in tree_functions, self of A and of B. Frame 0, the root, is left out.
static void print_tree(struct base_json *json, const struct diff *diff)
{
    base_json_open(json, "tree_functions", '[');
    for (uint32_t i = 0; i < diff->functions.count; i++)
        base_json_string(json, NULL, diff_function_text(diff, i));
    base_json_close(json, ']');
    base_json_open(json, "tree", '{');
    static const char *const keys[] = {"parent", "function", "a", "b"};
    for (int column = 0; column < 4; column++) {
        base_json_open(json, keys[column], '[');
        for (size_t i = 1; i < diff->frames.count; i++) {
            const struct diff_frame *frame = &diff->frames.items[i];
            const uint64_t values[] = {frame->parent, frame->function, frame->self[DIFF_A], frame->self[DIFF_B]};
            base_json_number(json, NULL, values[column]);
        }
        base_json_close(json, ']');
    }
    base_json_close(json, '}');
}

static void print_side(struct base_json *json, const struct diff *diff, enum diff_side side)
{
    base_json_open(json, side == DIFF_A ? "a" : "b", '[');
    for (size_t i = 0; i < diff->recordings[side]; i++) {
        const struct diff_recording *told = &diff->told[diff_index(diff, side, i)];
        base_json_open(json, NULL, '{');
        base_json_string(json, "file", base_interner_text(&diff->strings, told->path));
        base_json_bool(json, "complete", told->is_complete);
        base_json_number(json, "sum", told->sum);
        base_json_number(json, "samples", told->samples);
        base_json_number(json, "own", told->own);
        base_json_real(json, "seconds", told->seconds, 6);
        base_json_close(json, '}');
    }
    base_json_close(json, ']');
}

void diff_print_json(const struct diff *diff, size_t limit, bool with_tree, FILE *output)
{
    struct base_json json = {.stream = output};
    base_json_open(&json, NULL, '{');
    print_side(&json, diff, DIFF_A);
    print_side(&json, diff, DIFF_B);
    base_json_string(&json, "kind", analysis_kind_name(diff->kind));
    base_json_string(&json, "weight", export_weights_name(diff->measure));
    base_json_string(&json, "unit", export_weights_unit(diff->measure));
    base_json_string(&json, "by", diff->by_amount ? "amount" : "share");
    print_pair(&json, "sum", (const uint64_t[]){diff->basis[DIFF_A].sum, diff->basis[DIFF_B].sum});
    base_json_number(&json, "more", diff_count(diff, JUDGE_MORE));
    base_json_number(&json, "less", diff_count(diff, JUDGE_LESS));
    if (diff_has_samples(diff))
        print_rows(&json, diff, limit, with_tree);
    if (diff_has_calls(diff))
        print_calls(&json, diff, limit);
    if (with_tree)
        print_tree(&json, diff);
    base_json_close(&json, '}');
}

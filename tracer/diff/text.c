// SPDX-License-Identifier: Apache-2.0
// What changed, for people: what is told first, then what cannot be told, each by size.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/quantity.h"
#include "cli/diagnostics.h"
#include "cli/style.h"
#include "tracer/diff/inside.h"
#include "tracer/export/weight_words.h"
#include "tracer/names/short_name.h"

enum { NAME_COLUMNS_MAX = 500, NAME_COLUMNS_LEAST = 20, CELL_BYTES = 40 };

struct text {
    const struct diff *diff;
    size_t limit;
    unsigned columns;
    FILE *output;
};

// ---- cells

static void print_name(const struct text *text, uint32_t function, unsigned before)
{
    char shortened[4 * NAME_COLUMNS_MAX + 8];
    const char *name = diff_function_text(text->diff, function);
    unsigned columns = text->columns > before + NAME_COLUMNS_LEAST ? text->columns - before : NAME_COLUMNS_LEAST;
    if (text->columns)
        name =
            names_shorten(name, columns < NAME_COLUMNS_MAX ? columns : NAME_COLUMNS_MAX, shortened, sizeof shortened);
    cli_print_name(text->output, name);
    fputc('\n', text->output);
}

static const char *amount_cell(const struct diff *diff, double amount, const char *sign, char cell[CELL_BYTES])
{
    const double size = fmin(fabs(amount), 9e18);
    snprintf(cell, CELL_BYTES, "%s%s", sign, export_weights_amount(diff->measure, (uint64_t)(size + 0.5)).text);
    return cell;
}

static const char *sign_of(double change)
{
    return change < 0 ? "-" : "+";
}

static const char *value_cell(const struct diff *diff, double value, char cell[CELL_BYTES])
{
    if (diff->by_amount)
        return amount_cell(diff, value, "", cell);
    snprintf(cell, CELL_BYTES, "%.2f", 100 * value);
    return cell;
}

static const char *change_cell(const struct diff *diff, double change, char cell[CELL_BYTES])
{
    if (diff->by_amount)
        return amount_cell(diff, change, sign_of(change), cell);
    snprintf(cell, CELL_BYTES, "%+.2f", 100 * change);
    return cell;
}

static const char *error_cell(const struct diff *diff, double error, char cell[CELL_BYTES])
{
    if (isinf(error))
        return "?";
    return value_cell(diff, error, cell);
}

// A, B, change, *: told, its error.
static void print_item(const struct text *text, const struct judge_item *item)
{
    const struct diff *diff = text->diff;
    const int width = diff->by_amount ? 10 : 6;
    char a[CELL_BYTES], b[CELL_BYTES], change[CELL_BYTES], error[CELL_BYTES];
    fprintf(text->output, " %*s %*s %*s%c%*s ", width, value_cell(diff, item->mean[DIFF_A], a), width,
            value_cell(diff, item->mean[DIFF_B], b), width + 1, change_cell(diff, item->change, change),
            item->verdict == JUDGE_CANNOT_TELL ? ' ' : '*', width - (diff->by_amount ? 0 : 1),
            error_cell(diff, item->error, error));
}

// How much the function's own amount changed, of a recording.
static double amount_change(const struct diff *diff, const struct diff_row *row)
{
    return (double)row->self[DIFF_B] / (double)diff->recordings[DIFF_B] -
           (double)row->self[DIFF_A] / (double)diff->recordings[DIFF_A];
}

static void print_row(const struct text *text, const struct diff_row *row)
{
    char amount[CELL_BYTES];
    print_item(text, &row->by_self);
    print_item(text, &row->by_total);
    if (text->diff->by_amount) {
        fputc(' ', text->output);
        print_name(text, row->function, 97);
        return;
    }
    const double change = amount_change(text->diff, row);
    fprintf(text->output, " %10s  ", amount_cell(text->diff, change, sign_of(change), amount));
    print_name(text, row->function, 73);
}

// ---- tables

static void print_head(const struct text *text)
{
    const bool by_amount = text->diff->by_amount;
    const int width = by_amount ? 10 : 6, item = 4 * width + 7 - !by_amount;
    fprintf(text->output, "%s   %-*s%-*s%s%s\n ", cli_style_head(text->output), item - 2, "self", by_amount ? 0 : item,
            "total", by_amount ? "" : "of a recording", cli_style_end(text->output));
    fputs(cli_style_head(text->output), text->output);
    for (int i = 0; i < 2; i++)
        fprintf(text->output, "%*s %*s %*s %*s  ", width, "A", width, "B", width + 1, "change", width - !by_amount,
                "+-");
    fprintf(text->output, "%s function%s\n", by_amount ? "" : "self change ", cli_style_end(text->output));
}

static void print_rows(const struct text *text, size_t first, size_t end)
{
    size_t shown = 0;
    for (size_t i = first; i < end && shown < text->limit; i++, shown++)
        print_row(text, &text->diff->rows[i]);
    if (end - first > shown)
        fprintf(text->output, "  and %zu more (--limit N)\n", end - first - shown);
}

static void print_side(const struct text *text, enum diff_side side)
{
    const struct diff *diff = text->diff;
    uint64_t samples = 0;
    double seconds = 0;
    for (size_t i = 0; i < diff->recordings[side]; i++) {
        const struct diff_recording *told = &diff->told[diff_index(diff, side, i)];
        samples += told->samples;
        seconds += told->seconds;
    }
    fprintf(text->output, "  %c  %zu recording%s, %.2f s: ", side == DIFF_A ? 'A' : 'B', diff->recordings[side],
            diff->recordings[side] == 1 ? "" : "s", seconds);
    if (diff->basis[side].sum)
        fprintf(text->output,
                "%s of %s in %s samples: ", export_weights_amount(diff->measure, diff->basis[side].sum).text,
                export_weights_name(diff->measure), base_quantity_count(samples).text);
    for (size_t i = 0; i < diff->recordings[side] && i < 3; i++) {
        fputs(i ? ", " : "", text->output);
        cli_print_name(text->output, base_interner_text(&diff->strings, diff->told[diff_index(diff, side, i)].path));
    }
    fputs(diff->recordings[side] > 3 ? ", ...\n" : "\n", text->output);
}

static void print_samples(const struct text *text)
{
    const struct diff *diff = text->diff;
    size_t told = 0;
    while (told < diff->row_count && diff_row_is_told(&diff->rows[told]))
        told++;
    const char *what = diff->by_amount ? "amount" : "share";
    fprintf(text->output, "\n  %zu of %zu functions have another %s of %s%s%s\n", told, diff->row_count, what,
            export_weights_name(diff->measure), diff->by_amount ? ", of a recording" : ", in percent",
            told ? " (*: told; of 20 that are told, one may be chance)" : "");
    if (told) {
        print_head(text);
        print_rows(text, 0, told);
    }
    if (told < diff->row_count) {
        fprintf(text->output, "\n  cannot tell: chance alone may have made these changes\n");
        print_head(text);
        print_rows(text, told, diff->row_count);
    }
    if (diff->recordings[DIFF_A] + diff->recordings[DIFF_B] == 2)
        fputs(
            "\n  One recording a side: what is told is beyond sampling's chance. How much two recordings of the same\n"
            "  program differ is not known; several a side say it (qut diff A1 A2 -- B1 B2).\n",
            text->output);
}

// ---- exact calls

static uint64_t mean_ns(const struct diff_calls *calls)
{
    return calls->told ? calls->total_ns / calls->told : 0;
}

static void print_call_row(const struct text *text, const struct diff_call_row *row)
{
    const struct diff_calls *a = &row->of[DIFF_A], *b = &row->of[DIFF_B];
    char percent[CELL_BYTES] = "-";
    FILE *output = text->output;
    if (mean_ns(a) && mean_ns(b))
        snprintf(percent, sizeof percent, "%+.1f %%", 100 * ((double)mean_ns(b) / (double)mean_ns(a) - 1));
    fprintf(output, " %11s %11s ", base_quantity_count(a->count).text, base_quantity_count(b->count).text);
    fprintf(output, " %9s %9s ", base_quantity_time(a->total_ns).text, base_quantity_time(b->total_ns).text);
    fprintf(output, " %9s %9s ", base_quantity_time(a->self_ns).text, base_quantity_time(b->self_ns).text);
    fprintf(output, " %9s %9s %9s%c ", base_quantity_time(mean_ns(a)).text, base_quantity_time(mean_ns(b)).text,
            percent, row->by_mean.verdict == JUDGE_CANNOT_TELL ? ' ' : '*');
    print_name(text, row->function, 98);
}

static void print_calls(const struct text *text)
{
    const struct diff *diff = text->diff;
    const bool is_judged = diff->recordings[DIFF_A] + diff->recordings[DIFF_B] > 2;
    fprintf(text->output, "\n  exact calls, of all recordings of a side%s\n",
            is_judged ? "; *: the mean changed by more than recordings differ"
                      : "; how much recordings differ is not known: record several");
    fprintf(text->output, "  %s%10s %11s  %9s %9s  %9s %9s  %9s %9s %9s   function%s\n", cli_style_head(text->output),
            "calls A", "B", "total A", "B", "self A", "B", "mean A", "B", "change", cli_style_end(text->output));
    for (size_t i = 0; i < diff->call_row_count && i < text->limit; i++)
        print_call_row(text, &diff->call_rows[i]);
    if (diff->call_row_count > text->limit)
        fprintf(text->output, "  and %zu more (--limit N)\n", diff->call_row_count - text->limit);
}

void diff_print_text(const struct diff *diff, size_t limit, unsigned columns, FILE *output)
{
    const struct text text = {.diff = diff, .limit = limit, .columns = columns, .output = output};
    print_side(&text, DIFF_A);
    print_side(&text, DIFF_B);
    if (diff_has_samples(diff))
        print_samples(&text);
    if (diff_has_calls(diff))
        print_calls(&text);
}

// SPDX-License-Identifier: Apache-2.0
// Two traces made by hand: which names are one function, what a stack counts for, and what stands in the rows.
#include <stdlib.h>
#include <string.h>

#include "tests/support/golden/build.h"
#include "tests/support/run_suite.h"
#include "tracer/diff/diff.h"

#define START_NS 1000000000u
#define TICK_NS  1000000u

static const struct {
    const char *name;
    const char *function;
} names[] = {
    {"f", "f"},
    {"f.cold", "f"},
    {"f.isra.0", "f"},
    {"f.part.12.cold", "f"},
    {"f.constprop.0.isra.0", "f"},
    {"f.lto_priv.3", "f"},
    {"f.llvm.17409381837", "f"},
    {"f(int) [clone .cold]", "f(int)"},
    {"f(int) [clone .isra.0] [clone .cold]", "f(int)"},
    {"f.0", "f.0"},
    {"f[abi:cxx11]", "f[abi:cxx11]"},
    {".cold", ".cold"},
    {"module.scold", "module.scold"},
    {"a.isra.b", "a.isra.b"},
    {"", ""},
    {"17", "17"},
};

START_TEST(what_compilers_add_is_no_name)
{
    const size_t length = diff_name_length(names[_i].name);
    ck_assert_msg(length == strlen(names[_i].function), "%s: %zu", names[_i].name, length);
    ck_assert(strncmp(names[_i].name, names[_i].function, length) == 0);
}
END_TEST

static void tick(struct build_trace *build, unsigned number, uint32_t count, uint32_t node)
{
    const uint64_t time_ns = START_NS + (uint64_t)number * TICK_NS;
    build_sample(
        build, (struct trace_sample){
                   .node = node, .count = count, .kind = QUT_TRACE_KIND_WALL, .first_ns = time_ns, .last_ns = time_ns});
}

// main > f > f.part.0 > g takes `in_g`, main > f `in_f`, main > h `in_h`.
static void make(struct trace *trace, uint32_t in_g, uint32_t in_f, uint32_t in_h)
{
    struct build_trace build;
    build_begin(&build, trace);
    const uint32_t main_ = build_label(&build, 0, "main"), f = build_label(&build, main_, "f"),
                   part = build_label(&build, f, "f.part.0"), g = build_label(&build, part, "g"),
                   h = build_label(&build, main_, "h");
    build_thread(&build, 1, "t", START_NS, START_NS + 10 * TICK_NS);
    tick(&build, 1, in_g, g);
    tick(&build, 2, in_f, f);
    tick(&build, 3, in_h, h);
    trace->start_ns = START_NS;
    trace->end_ns = START_NS + 10 * TICK_NS;
    build_end(&build);
}

static void add(struct diff *diff, enum diff_side side, const uint32_t counts[3])
{
    const struct diff_wanted wanted = {
        .part = {.kind = SELECTION_MAIN, .to_ns = UINT64_MAX}, .weight = MEASURE_SAMPLES, .by_amount = false};
    struct base_error error;
    struct selection selection;
    struct trace trace;
    make(&trace, counts[0], counts[1], counts[2]);
    struct names *of = names_of(&trace, NULL, &error);
    ck_assert_ptr_nonnull(of);
    ck_assert_int_eq(diff_select(&selection, &trace, diff, &wanted, &error), 0);
    ck_assert_int_eq(diff_add(diff, side, &selection, of, &wanted, &error), 0);
    analysis_selection_free(&selection);
    names_free(of);
    build_free(&trace);
}

static const struct diff_row *row(const struct diff *diff, const char *name)
{
    for (size_t i = 0; i < diff->row_count; i++) {
        const uint32_t text = diff->functions.items[diff->rows[i].function].name;
        if (strcmp(base_interner_text(&diff->strings, text), name) == 0)
            return &diff->rows[i];
    }
    ck_abort_msg("no %s", name);
}

static void expect(const struct diff *diff, const char *name, uint64_t self_a, uint64_t self_b, uint64_t total_a,
                   uint64_t total_b)
{
    const struct diff_row *found = row(diff, name);
    ck_assert_msg(found->self[DIFF_A] == self_a && found->self[DIFF_B] == self_b && found->total[DIFF_A] == total_a &&
                      found->total[DIFF_B] == total_b,
                  "%s: self %u %u total %u %u", name, (unsigned)found->self[DIFF_A], (unsigned)found->self[DIFF_B],
                  (unsigned)found->total[DIFF_A], (unsigned)found->total[DIFF_B]);
}

// Sides come in any order; f.part.0 below f is f, once.
START_TEST(sums_are_by_function)
{
    struct diff diff;
    struct base_error error;
    ck_assert_int_eq(diff_begin(&diff, (const size_t[]){2, 2}, &error), 0);
    add(&diff, DIFF_B, (const uint32_t[]){100, 500, 400});
    add(&diff, DIFF_B, (const uint32_t[]){100, 495, 405});
    add(&diff, DIFF_A, (const uint32_t[]){100, 100, 300});
    add(&diff, DIFF_A, (const uint32_t[]){100, 90, 310});
    ck_assert_int_eq(diff_finish(&diff, &error), 0);
    ck_assert_uint_eq(diff.row_count, 4);
    expect(&diff, "g", 200, 200, 200, 200);
    expect(&diff, "f", 190, 995, 390, 1195);
    expect(&diff, "h", 610, 805, 610, 805);
    expect(&diff, "main", 0, 0, 1000, 2000);
    ck_assert(row(&diff, "f")->by_self.verdict == JUDGE_MORE && row(&diff, "f")->by_total.verdict == JUDGE_MORE);
    ck_assert(row(&diff, "h")->by_self.verdict == JUDGE_LESS);
    ck_assert(row(&diff, "main")->by_total.verdict == JUDGE_CANNOT_TELL);
    ck_assert_ptr_eq(&diff.rows[0], row(&diff, "f"));
    // main > f > f > g, and main > h.
    ck_assert_uint_eq(diff.frames.count, 6);
    uint64_t sums[2] = {0, 0};
    for (size_t i = 0; i < diff.frames.count; i++) {
        ck_assert(i == 0 || diff.frames.items[i].parent < i);
        sums[0] += diff.frames.items[i].self[0];
        sums[1] += diff.frames.items[i].self[1];
    }
    ck_assert(sums[0] == 1000 && sums[1] == 2000);
    diff_free(&diff);
}
END_TEST

// Of what both sides have the same, nothing is told, however much there is of it.
START_TEST(equal_ones_are_equal)
{
    struct diff diff;
    struct base_error error;
    ck_assert_int_eq(diff_begin(&diff, (const size_t[]){1, 1}, &error), 0);
    add(&diff, DIFF_A, (const uint32_t[]){10000, 10000, 30000});
    add(&diff, DIFF_B, (const uint32_t[]){10000, 10000, 30000});
    ck_assert_int_eq(diff_finish(&diff, &error), 0);
    ck_assert_uint_eq(diff_count(&diff, JUDGE_MORE) + diff_count(&diff, JUDGE_LESS), 0);
    diff_free(&diff);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("compare");
    tcase_add_loop_test(tests, what_compilers_add_is_no_name, 0, sizeof names / sizeof *names);
    tcase_add_test(tests, sums_are_by_function);
    tcase_add_test(tests, equal_ones_are_equal);
    Suite *suite = suite_create("compare");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}

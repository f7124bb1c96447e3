// SPDX-License-Identifier: Apache-2.0
// Real OAT files of five Androids. Their methods' headers and code must say what their frame programs say, and must do
// so too when nothing but what is mapped is left of the file.
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libqut/runtime/table.h"
#include "qutc/input/inputs.h"
#include "qutc/qutc.h"
#include "tests/proof/oat/compare.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"

enum { DEX_COUNT_AT = 20 }; // in the OAT header

static struct input_image *open_copy(const struct input_image *original, bool as_mapped, bool without_tables)
{
    struct base_bytes elf = input_image_elf(original);
    struct build_buffer copy = {0};
    build_add(&copy, elf.data, elf.size);
    if (without_tables) {
        struct base_bytes data = input_image_at(original, original->oat.data.start);
        memset(copy.data + (data.data - elf.data) + DEX_COUNT_AT, 0, 4);
    }
    struct input_image_options options = {.as_mapped = as_mapped};
    struct input_image *image;
    struct base_error error = {0};
    int result =
        input_image_open_memory((struct base_bytes){copy.data, copy.size}, original->name, &options, &image, &error);
    ck_assert_msg(result == 0, "%s: %s", original->name, error.detail);
    free(copy.data);
    return image;
}

// Without section headers there are no symbols and no frame programs: the runtime's own tables have to name the
// methods. Without those too, the code is searched.
static void check_without(const struct input_image *image, const struct oat_rows *whole, bool without_tables)
{
    struct input_image *mapped = open_copy(image, true, without_tables);
    struct oat_rows rows;
    uint64_t pc;
    ck_assert(mapped->oat.present && mapped->frame_count == 0);
    oat_rows_of(mapped, &rows);
    ck_assert_uint_eq(rows.counts.symbols, 0);
    ck_assert(rows.counts.scanned == (without_tables || rows.counts.methods == 0));
    ck_assert_msg(rows.counts.methods == whole->counts.methods, "%s: %" PRIu64 " of %" PRIu64 " methods", image->name,
                  rows.counts.methods, whole->counts.methods);
    const struct cfi_row_list *where = whole->from_frames.count ? &whole->from_frames : &whole->from_headers;
    ck_assert_msg(oat_same_rows(whole, &rows, where, &pc), "%s: %#" PRIx64, image->name, pc);
    oat_rows_free(&rows);
    input_image_close(mapped);
}

// The table of a file of which only what is mapped is left.
static void check_table(const struct input_image *image, const struct oat_rows *whole)
{
    struct input_image *mapped = open_copy(image, true, false);
    uint8_t *bytes;
    size_t size;
    struct qut_table table;
    struct base_error error = {0};
    uint64_t fault;
    ck_assert_msg(qutc_compile(mapped, NULL, &bytes, &size, NULL, &error) == 0, "%s: %s", image->name, error.detail);
    ck_assert_int_eq(runtime_table_attach(&table, bytes, size, &fault), 0);
    ck_assert_uint_eq(table.header->flags & (QUT_TABLE_MANAGED | QUT_TABLE_FROM_OAT_HEADERS),
                      QUT_TABLE_MANAGED | QUT_TABLE_FROM_OAT_HEADERS);
    const struct cfi_row_list *list = &whole->from_headers;
    for (size_t i = 0; i + 1 < list->count; i++) {
        struct qut_rule rule;
        const struct qut_rule *expected = &whole->rules.rules[list->rows[i].rule_id];
        uint64_t pc = whole->text_start + list->rows[i].pc_rel;
        runtime_table_rule(&table, pc, &rule);
        bool is_thunk = rule.kind == QUT_RULE_HOLE && expected->cfa.offset_bytes == 0; // only symbols name those
        ck_assert_msg(memcmp(&rule, expected, sizeof rule) == 0 || is_thunk, "%s: %#" PRIx64, image->name, pc);
    }
    free(bytes);
    input_image_close(mapped);
}

// The file as it is: frame programs come first, headers fill what they leave.
static void check_whole_table(const struct input_image *image, const struct oat_rows *whole)
{
    uint8_t *bytes;
    size_t size;
    struct qut_table table;
    struct base_error error = {0};
    uint64_t fault;
    struct qutc_compile_stats stats;
    ck_assert_msg(qutc_compile(image, NULL, &bytes, &size, &stats, &error) == 0, "%s: %s", image->name, error.detail);
    ck_assert_int_eq(runtime_table_attach(&table, bytes, size, &fault), 0);
    ck_assert(table.header->flags & QUT_TABLE_MANAGED);
    ck_assert_uint_eq(stats.oat.methods, whole->counts.methods);
    const struct cfi_row_list *list = &whole->from_frames;
    for (size_t i = 0; i + 1 < list->count; i++) {
        struct qut_rule rule;
        uint64_t pc = whole->text_start + list->rows[i].pc_rel;
        if (list->rows[i].rule_id == CFI_RULE_HOLE_ID)
            continue;
        runtime_table_rule(&table, pc, &rule);
        ck_assert_msg(memcmp(&rule, &whole->rules.rules[list->rows[i].rule_id], sizeof rule) == 0, "%s: %#" PRIx64,
                      image->name, pc);
    }
    free(bytes);
}

static void print_line(const struct input_image *image, const struct oat_rows *rows, const struct oat_comparison *c)
{
    const char *name = strstr(image->name, "/oat/");
    double share = c->cfi_bytes ? 100.0 * (double)c->exact_bytes / (double)c->cfi_bytes : 0;
    printf("%s: OAT %03u: %" PRIu64 " methods, %" PRIu64 " exact; ", name ? name + 5 : image->name,
           (unsigned)image->oat.version, rows->counts.methods, rows->counts.certainty[CFI_OAT_EXACT]);
    if (c->cfi_bytes)
        printf("bodies as in frame programs %" PRIu64 ", others %" PRIu64 "; of %" PRIu64
               " bytes exact and equal %.3f%%, calls only %" PRIu64 ", refused %" PRIu64 ", none %" PRIu64
               ", frame program wrong %" PRIu64 ", mismatches %" PRIu64 "\n",
               c->bodies, c->bodies_other, c->cfi_bytes, share, c->body_bytes, c->refused_bytes, c->missing_bytes,
               c->frames_wrong_bytes, c->mismatches);
    else
        printf("no frame programs; described %" PRIu64 " bytes\n", c->additional_bytes);
    fflush(stdout);
}

static void check_file(const struct input *input)
{
    struct input_image *image;
    struct base_error error = {0};
    struct oat_rows rows;
    struct oat_comparison c;
    ck_assert_msg(input_open(input, NULL, &image, &error) == 0, "%s: %s", input->name, error.detail);
    ck_assert_msg(image->oat.present, "%s", input->name);
    oat_rows_of(image, &rows);
    oat_compare(image, &rows, &c);
    print_line(image, &rows, &c);
    ck_assert_msg(c.mismatches == 0, "%s: %#" PRIx64, input->name, c.first_mismatch);
    ck_assert_msg(c.missing_bytes == 0, "%s: %" PRIu64 " bytes without header rows", input->name, c.missing_bytes);
    // x86's @CriticalNative stub has no frame by its header, and pushes arguments.
    bool is_x86 = !image->arch->ra_in_register;
    ck_assert_msg(c.bodies_other == 0 || is_x86, "%s: %" PRIu64 " bodies", input->name, c.bodies_other);
    // Refused is data behind the code, and a few blocks before it.
    ck_assert_msg(c.refused_bytes + c.body_bytes <= c.cfi_bytes / 100, "%s", input->name);
    bool has_methods = !strstr(input->name, "trampolines-only");
    ck_assert(has_methods == (rows.counts.methods > 0));
    check_without(image, &rows, false);
    check_without(image, &rows, true);
    check_table(image, &rows);
    check_whole_table(image, &rows);
    oat_rows_free(&rows);
    input_image_close(image);
}

START_TEST(headers_say_what_frame_programs_say)
{
    struct input_inputs inputs;
    struct base_error error = {0};
    char *path = corpus_path("oat");
    if (!path)
        return;
    input_inputs_init(&inputs);
    ck_assert_int_eq(input_inputs_add_path(&inputs, path, &error), 0);
    ck_assert_uint_ge(inputs.count, 25);
    for (size_t i = 0; i < inputs.count; i++)
        check_file(&inputs.items[i]);
    input_inputs_free(&inputs);
    free(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oat_real");
    TCase *tcase = tcase_create("oat_real");
    tcase_set_timeout(tcase, 110);
    tcase_add_test(tcase, headers_say_what_frame_programs_say);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}

// SPDX-License-Identifier: Apache-2.0
#include "tests/support/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "qutc/table/rule_text.h"

static void must(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

static void print_row(FILE *out, const struct arch *arch, uint64_t start, uint64_t end, const struct qut_rule *rule)
{
    char text[TABLE_RULE_TEXT_BYTES];
    if (end > start && rule->kind != QUT_RULE_HOLE)
        fprintf(out, "%" PRIx64 "-%" PRIx64 " %s\n", start, end, table_rule_text(arch, rule, text));
}

char *rows_text(const struct qut_table *table)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    must(out != NULL, "no memory");
    const struct arch *arch = arch_by_id((enum qut_arch_id)table->header->arch);
    struct qut_rule rule, open = {0};
    uint64_t pc = table->text_start, end, open_start = pc;
    for (; runtime_table_next_row(table, &pc, &end, &rule); pc = end) {
        must(end > pc, "a row that ends before it begins");
        if (memcmp(&rule, &open, sizeof rule) == 0)
            continue;
        print_row(out, arch, open_start, pc, &open);
        open = rule;
        open_start = pc;
    }
    print_row(out, arch, open_start, pc, &open);
    fclose(out);
    return text;
}

static char *error_line(const struct base_error *error)
{
    char text[256];
    char *line = NULL;
    must(asprintf(&line, "error: %s\n", base_error_text(error, text, sizeof text)) > 0, "no memory");
    return line;
}

static char *compiled_rows(const struct frame_asm *a, bool small, struct qutc_compile_stats *stats)
{
    struct base_error error = {0};
    struct build_buffer file = frame_elf(a);
    struct input_image *image = build_open_bytes(&file, &error);
    free(file.data);
    if (!image)
        return error_line(&error);
    struct qutc_compile_options options = {.small = small};
    uint8_t *bytes = NULL;
    size_t size = 0;
    int result = qutc_compile(image, &options, &bytes, &size, stats, &error);
    input_image_close(image);
    if (result != 0)
        return error_line(&error);
    struct qut_table table;
    must(runtime_table_attach(&table, bytes, size, NULL) == QUT_TABLE_OK, "a table that its checker refuses");
    char *text = rows_text(&table);
    free(bytes);
    return text;
}

char *rows_of(const struct frame_asm *a, struct qutc_compile_stats *stats)
{
    return compiled_rows(a, false, stats);
}

char *small_rows_of(const struct frame_asm *a)
{
    return compiled_rows(a, true, NULL);
}

char *rows_of_program(const struct arch *arch, const uint8_t *program, size_t size)
{
    struct frame_asm a = frame_asm(arch, INPUT_FRAME_EH);
    struct frame_cie cie = {0};
    frame_add_cie(&a, &cie);
    frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .size = 0x40, .program = program, .program_size = size});
    char *text = rows_of(&a, NULL);
    frame_free(&a);
    return text;
}

int64_t rows_visit(const struct input_image *image, bool small, struct base_error *error)
{
    struct qutc_compile_options options = {.small = small};
    uint8_t *bytes = NULL;
    size_t size = 0;
    *error = (struct base_error){0};
    if (qutc_compile(image, &options, &bytes, &size, NULL, error) != 0) {
        must(error->reason != BASE_OK, "a failure without a reason");
        return -1;
    }
    struct qut_table table;
    must(runtime_table_attach(&table, bytes, size, NULL) == QUT_TABLE_OK, "a table that its checker refuses");
    int64_t rows = 0;
    uint64_t pc = table.text_start, end;
    struct qut_rule rule, found;
    for (; runtime_table_next_row(&table, &pc, &end, &rule); pc = end, rows++) {
        must(end > pc, "a row that ends before it begins");
        runtime_table_rule(&table, pc, &found);
        must(memcmp(&rule, &found, sizeof rule) == 0, "a row and a lookup that differ");
    }
    must(pc == table.text_start + table.header->text_size, "rows that end before the text does");
    runtime_table_rule(&table, table.text_start - 1, &found);
    must(found.kind == QUT_RULE_HOLE, "a rule before the text");
    runtime_table_rule(&table, pc, &found);
    must(found.kind == QUT_RULE_HOLE, "a rule after the text");
    free(bytes);
    return rows;
}

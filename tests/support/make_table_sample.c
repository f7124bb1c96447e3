// SPDX-License-Identifier: Apache-2.0
// Prints tests/support/table_sample_bytes.h: the sample table as bytes, and what it must answer.
#include <stdio.h>

#include "tests/support/table_sample.h"

static void print_bytes(const char *declaration, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    printf("%s = {", declaration);
    for (size_t i = 0; i < size; i++)
        printf("%s%u,", i % 24 ? " " : "\n    ", at[i]);
    printf("\n};\n\n");
}

int main(void)
{
    struct maker m;
    sample_fill(&m);
    struct made_table made = maker_table(&m, true);
    printf("// SPDX-License-Identifier: Apache-2.0\n"
           "// Made by tests/support/make_table_sample; tests/unit/qutc/table/sample_test says when it has to be made "
           "anew. A table of\n"
           "// aarch64 code, the rules in it (struct qut_rule), and its rows.\n"
           "#ifndef TESTS_RUNTIME_TABLE_SAMPLE_H\n#define TESTS_RUNTIME_TABLE_SAMPLE_H\n\n#include <stdint.h>\n\n"
           "// clang-format off\n"
           "enum { SAMPLE_TEXT = 0x%x, SAMPLE_TEXT_BYTES = %u };\n\n",
           (unsigned)MAKER_TEXT, (unsigned)m.text_size);
    print_bytes("static const _Alignas(64) uint8_t sample_table[]", made.bytes, made.size);
    print_bytes("static const _Alignas(8) uint8_t sample_rules[]", m.rules.rules,
                m.rules.count * sizeof *m.rules.rules);
    printf("static const struct {\n    uint16_t pc_rel;\n    uint8_t rule;\n} sample_rows[] = {");
    for (size_t i = 0; i < m.rows.count; i++)
        printf("%s{%u, %u},", i % 9 ? " " : "\n    ", m.rows.rows[i].pc_rel, m.rows.rows[i].rule_id);
    printf("\n};\n\n#endif\n");
    made_table_free(&made);
    maker_free(&m);
    return 0;
}

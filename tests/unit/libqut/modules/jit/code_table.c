// SPDX-License-Identifier: Apache-2.0
// Tables without libqutc, by its table writer alone.
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "qutc/table/table_writer.h"
#include "tests/unit/libqut/modules/jit/code.h"

static struct qut_rule rule_of(uint32_t frame_bytes, bool is_saved)
{
    struct qut_rule rule = {.kind = QUT_RULE_FRAME, .dex_pc_reg = QUT_NO_REGISTER};
    int32_t word_bytes = arch_native_arch.word_bytes;
    bool in_register = arch_native_arch.ra_in_register;
    rule.cfa.reg = arch_native_arch.sp_reg;
    rule.cfa.offset_bytes = (int32_t)frame_bytes + (in_register ? 0 : word_bytes);
    if (is_saved || !in_register)
        rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -word_bytes};
    return rule;
}

static int by_address(const void *a, const void *b)
{
    uint64_t first = ((const struct code_method *)a)->address, second = ((const struct code_method *)b)->address;
    return (first > second) - (first < second);
}

static void add_row(struct cfi_row_list *rows, uint32_t pc_rel, uint32_t rule_id)
{
    cfi_row_list_reserve(rows, 1, NULL);
    cfi_row_list_put(rows, pc_rel, rule_id);
}

static uint32_t add_rule(struct cfi_rule_set *rules, uint32_t frame_bytes, bool is_saved)
{
    struct qut_rule rule = rule_of(frame_bytes, is_saved);
    return cfi_rule_set_intern(rules, &rule);
}

int code_compile(void *context, const struct qut_compile_request *request, void **table, size_t *table_size,
                 char *reason, size_t reason_size)
{
    (void)context;
    const uint8_t *at = (const uint8_t *)request->memory + sizeof(ElfW(Ehdr));
    static struct code_method methods[CODE_METHODS_MAX];
    uint64_t count = 0;
    if (request->memory_size > sizeof(ElfW(Ehdr)) + 8)
        memcpy(&count, at, sizeof count);
    if (count == 0 || count > CODE_METHODS_MAX) {
        snprintf(reason, reason_size, "not a symbol file of this test");
        return -1;
    }
    memcpy(methods, at + 8, (size_t)count * sizeof *methods);
    qsort(methods, (size_t)count, sizeof *methods, by_address);

    struct cfi_rule_set rules;
    struct cfi_row_list rows = {0};
    cfi_rule_set_init(&rules, NULL);
    uint64_t start = methods[0].address, end = methods[count - 1].address + MACHINE_BYTES;
    struct qut_rule hole = {.kind = QUT_RULE_HOLE, .dex_pc_reg = QUT_NO_REGISTER};
    uint32_t hole_id = cfi_rule_set_intern(&rules, &hole);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t first = (uint32_t)(methods[i].address - start), frame_bytes = methods[i].frame_bytes;
        add_row(&rows, first, add_rule(&rules, 0, false));
        add_row(&rows, first + MACHINE_ENTER, add_rule(&rules, frame_bytes, false));
        add_row(&rows, first + MACHINE_SAVED, add_rule(&rules, frame_bytes, true));
        add_row(&rows, first + MACHINE_RESTORED, add_rule(&rules, frame_bytes, false));
        add_row(&rows, first + MACHINE_LEAVE, add_rule(&rules, 0, false));
        if (i + 1 < count)
            add_row(&rows, first + MACHINE_BYTES, hole_id);
    }
    struct table_draft draft;
    struct base_error error;
    uint8_t *bytes = NULL;
    static const struct qut_table_header header;
    int result = table_draft_init(&draft, &arch_native_arch, start, end, &rules, &rows, &error);
    if (result == 0) {
        result = table_write(&draft, &header, &bytes, table_size, &error);
        table_draft_free(&draft);
    }
    cfi_rule_set_free(&rules);
    cfi_row_list_free(&rows);
    *table = bytes;
    if (result != 0)
        snprintf(reason, reason_size, "no table could be written");
    return result == 0 ? 0 : -1;
}

// SPDX-License-Identifier: Apache-2.0
// A table that was made elsewhere, attached and asked on this machine.
#include <string.h>

#include "libqut/runtime/table.h"
#include "tests/support/table_sample_bytes.h"
#include "tests/support/tap.h"

enum { ROWS = sizeof sample_rows / sizeof *sample_rows };

static struct qut_rule expected(uint32_t pc_rel)
{
    struct qut_rule rule;
    size_t id = 0;
    for (size_t i = 0; i < ROWS && sample_rows[i].pc_rel <= pc_rel; i++)
        id = sample_rows[i].rule;
    memcpy(&rule, sample_rules + id * sizeof rule, sizeof rule);
    return rule;
}

static bool attach(struct qut_table *table)
{
    enum qut_table_fault fault = runtime_table_attach(table, sample_table, sizeof sample_table, NULL);
    return CHECK(fault == QUT_TABLE_OK, "%s", qut_table_fault_name(fault));
}

TEST(every_pc_has_its_rule)
{
    struct qut_table table;
    if (!attach(&table))
        return;
    for (uint32_t pc_rel = 0; pc_rel < SAMPLE_TEXT_BYTES; pc_rel++) {
        struct qut_rule rule, wanted = expected(pc_rel);
        runtime_table_rule(&table, SAMPLE_TEXT + (uint64_t)pc_rel, &rule);
        if (!CHECK(memcmp(&rule, &wanted, sizeof rule) == 0, "pc 0x%x", (unsigned)(SAMPLE_TEXT + pc_rel)))
            return;
    }
}

TEST(rows_follow_each_other)
{
    struct qut_table table;
    if (!attach(&table))
        return;
    uint64_t pc = table.text_start, end = 0;
    struct qut_rule rule;
    for (; runtime_table_next_row(&table, &pc, &end, &rule); pc = end) {
        if (!CHECK(end > pc, "row at 0x%llx ends at 0x%llx", (unsigned long long)pc, (unsigned long long)end))
            return;
        for (uint64_t at = pc; at < end; at++) {
            struct qut_rule wanted = expected((uint32_t)(at - SAMPLE_TEXT));
            if (!CHECK(memcmp(&rule, &wanted, sizeof rule) == 0, "pc 0x%llx", (unsigned long long)at))
                return;
        }
    }
    CHECK(pc == SAMPLE_TEXT + (uint64_t)SAMPLE_TEXT_BYTES, "rows end at 0x%llx", (unsigned long long)pc);
}

TEST(outside_is_a_hole)
{
    struct qut_table table;
    if (!attach(&table))
        return;
    const uint64_t outside[] = {0, SAMPLE_TEXT - 1, SAMPLE_TEXT + (uint64_t)SAMPLE_TEXT_BYTES,
                                SAMPLE_TEXT + ((uint64_t)1 << 32), UINT64_MAX};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        struct qut_rule rule;
        runtime_table_rule(&table, outside[i], &rule);
        CHECK(rule.kind == QUT_RULE_HOLE, "kind %d at 0x%llx", rule.kind, (unsigned long long)outside[i]);
    }
}

TEST(a_changed_byte_is_noticed)
{
    static _Alignas(64) uint8_t copy[sizeof sample_table];
    for (size_t i = 0; i < sizeof copy; i++) {
        struct qut_table table;
        memcpy(copy, sample_table, sizeof copy);
        copy[i] ^= 0x10;
        if (!CHECK(runtime_table_attach(&table, copy, sizeof copy, NULL) != QUT_TABLE_OK, "byte %d", (int)i))
            return;
    }
}

int main(void)
{
    RUN(every_pc_has_its_rule);
    RUN(rows_follow_each_other);
    RUN(outside_is_a_hole);
    RUN(a_changed_byte_is_noticed);
    return tap_finish();
}

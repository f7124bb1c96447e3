// SPDX-License-Identifier: Apache-2.0
// Tables that were damaged or forged: refused, or harmless. Reads beyond a table are for the sanitizers to see.
#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/run_suite.h"
#include "tests/support/table_sample.h"

enum { SUMMED_AT = offsetof(struct qut_table_header, checksum) + 8 };

static struct made_table sample(void)
{
    struct maker m;
    sample_fill(&m);
    struct made_table made = maker_table(&m, true);
    maker_free(&m);
    return made;
}

static void fix_checksum(struct made_table *made)
{
    uint64_t sum = qut_table_checksum(made->bytes + SUMMED_AT, made->size - SUMMED_AT);
    memcpy(made->bytes + offsetof(struct qut_table_header, checksum), &sum, sizeof sum);
}

static enum qut_table_fault attach(struct made_table *made, size_t size)
{
    return runtime_table_attach(&made->table, made->bytes, size, NULL);
}

// Whatever the table says, it ends, and its rules are rules.
static void visit(const struct qut_table *table)
{
    struct qut_rule rule;
    uint64_t pc = table->text_start, end;
    for (unsigned rows = 0; runtime_table_next_row(table, &pc, &end, &rule); pc = end, rows++) {
        ck_assert_uint_gt(end, pc);
        ck_assert_uint_lt(rows, 100000);
        ck_assert_uint_lt(rule.kind, QUT_RULE_KIND_END);
        runtime_table_rule(table, pc, &rule);
        runtime_table_rule(table, end - 1, &rule);
        runtime_table_row_start(table, end - 1);
    }
}

START_TEST(every_bit_flipped)
{
    struct made_table made = sample();
    for (size_t i = 0; i < made.size * 8; i++) {
        made.bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        ck_assert_msg(attach(&made, made.size) != QUT_TABLE_OK, "bit %zu", i);
        made.bytes[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    made_table_free(&made);
}
END_TEST

START_TEST(every_bit_flipped_with_a_matching_checksum)
{
    struct made_table made = sample();
    unsigned accepted = 0, refused = 0;
    for (size_t i = SUMMED_AT * 8; i < made.size * 8; i++) {
        made.bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        fix_checksum(&made);
        if (attach(&made, made.size) == QUT_TABLE_OK) {
            visit(&made.table);
            accepted++;
        } else {
            refused++;
        }
        made.bytes[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    // Many a bit only changes an offset in a rule; many another would lead astray.
    ck_assert_uint_gt(accepted, 1000);
    ck_assert_uint_gt(refused, 1000);
    made_table_free(&made);
}
END_TEST

START_TEST(two_bytes_at_random_with_a_matching_checksum)
{
    struct made_table made = sample();
    struct maker m;
    maker_init(&m, &arch_aarch64, 99);
    for (int i = 0; i < 5000; i++) {
        size_t at[2];
        uint8_t old[2];
        for (int k = 0; k < 2; k++) {
            at[k] = SUMMED_AT + maker_random(&m, (uint32_t)(made.size - SUMMED_AT));
            old[k] = made.bytes[at[k]];
            made.bytes[at[k]] = (uint8_t)maker_random(&m, 256);
        }
        fix_checksum(&made);
        if (attach(&made, made.size) == QUT_TABLE_OK)
            visit(&made.table);
        for (int k = 1; k >= 0; k--)
            made.bytes[at[k]] = old[k];
    }
    maker_free(&m);
    made_table_free(&made);
}
END_TEST

START_TEST(cut_at_every_length)
{
    struct made_table made = sample();
    for (size_t size = 0; size < made.size; size++) {
        struct made_table cut = {.bytes = aligned_alloc(8, (size + 7) & ~(size_t)7), .size = size};
        if (size)
            memcpy(cut.bytes, made.bytes, size);
        enum qut_table_fault fault = attach(&cut, size);
        ck_assert_int_eq(fault, size < sizeof(struct qut_table_header) ? QUT_TABLE_TOO_SHORT : QUT_TABLE_BAD_SIZE);
        // The same, of a file whose header admits it.
        if (size >= sizeof(struct qut_table_header)) {
            uint32_t stated = (uint32_t)size;
            memcpy(cut.bytes + offsetof(struct qut_table_header, file_size), &stated, sizeof stated);
            fix_checksum(&cut);
            if (attach(&cut, size) == QUT_TABLE_OK)
                visit(&cut.table);
        }
        made_table_free(&cut);
    }
    made_table_free(&made);
}
END_TEST

START_TEST(more_than_a_table)
{
    struct made_table made = sample();
    uint8_t *longer = aligned_alloc(64, (made.size + 127) & ~(size_t)63);
    memcpy(longer, made.bytes, made.size);
    memset(longer + made.size, 0, 32);
    struct qut_table table;
    ck_assert_int_eq(runtime_table_attach(&table, longer, made.size + 32, NULL), QUT_TABLE_BAD_SIZE);
    free(longer);
    made_table_free(&made);
}
END_TEST

// The fault of the sample with one byte of its header set, and the checksum made to match.
static enum qut_table_fault with_header_byte(size_t at, uint8_t value)
{
    struct made_table made = sample();
    made.bytes[at] = value;
    fix_checksum(&made);
    enum qut_table_fault fault = attach(&made, made.size);
    made_table_free(&made);
    return fault;
}

#define AT(FIELD) offsetof(struct qut_table_header, FIELD)

START_TEST(foreign_headers)
{
    ck_assert_int_eq(with_header_byte(AT(magic), 'q'), QUT_TABLE_BAD_MAGIC);
    ck_assert_int_eq(with_header_byte(AT(magic) + 7, 2), QUT_TABLE_BAD_MAGIC);
    ck_assert_int_eq(with_header_byte(AT(version), 3), QUT_TABLE_NEWER);
    // Without the fields that version 2 has added it would be one of version 1.
    ck_assert_int_eq(with_header_byte(AT(version), 1), QUT_TABLE_BAD_HEADER);
    ck_assert_int_eq(with_header_byte(AT(version), 0), QUT_TABLE_OLDER);
    ck_assert_int_eq(with_header_byte(AT(arch), QUT_ARCH_NONE), QUT_TABLE_BAD_HEADER);
    ck_assert_int_eq(with_header_byte(AT(arch), QUT_ARCH_END), QUT_TABLE_BAD_HEADER);
    ck_assert_int_eq(with_header_byte(AT(arch), 255), QUT_TABLE_BAD_HEADER);
    ck_assert_int_eq(with_header_byte(AT(pc_shift), 3), QUT_TABLE_BAD_HEADER);
    ck_assert_int_eq(with_header_byte(AT(identity_size), 33), QUT_TABLE_BAD_HEADER);
    ck_assert_int_eq(with_header_byte(AT(text_start), 1), QUT_TABLE_BAD_HEADER);
    ck_assert_int_eq(with_header_byte(AT(leads.short_rules), 0), QUT_TABLE_BAD_HEADER);
    ck_assert_int_eq(with_header_byte(AT(leads.long_rule_leads), 255), QUT_TABLE_BAD_HEADER);
    ck_assert_int_eq(with_header_byte(AT(leads.standard_count) + 1, 255), QUT_TABLE_NEWER);
    ck_assert_int_eq(with_header_byte(AT(groups), 1), QUT_TABLE_BAD_SECTION);
    ck_assert_int_eq(with_header_byte(AT(groups), 32), QUT_TABLE_BAD_SECTION); // inside the header
    ck_assert_int_eq(with_header_byte(AT(cells) + 3, 0x80), QUT_TABLE_BAD_SECTION);
}
END_TEST

// A row's cell lies behind the own cells, or behind the standard ones that the table says it knows.
START_TEST(cells_that_are_none)
{
    struct maker m;
    maker_init(&m, &arch_x86_64, 1);
    struct qut_rule rule = maker_plain_rule(&m, 4096 * 8 - 8);
    maker_row(&m, 0, maker_rule(&m, &rule));
    m.text_size = 64;
    struct made_table made = maker_table(&m, false);
    maker_free(&m);
    struct qut_table_header *h = (void *)made.bytes;
    ck_assert_uint_eq(h->cells.size, sizeof(union qut_table_cell)); // the hole is a standard one
    ck_assert_uint_eq(h->leads.standard_count, 1);
    ck_assert_uint_eq(h->leads.short_rules, 2);
    h->cells.size = 0;
    fix_checksum(&made);
    ck_assert_int_eq(attach(&made, made.size), QUT_TABLE_BAD_CODE);
    h->cells.size = sizeof(union qut_table_cell);
    h->leads.short_own = 0; // the rule's lead names the hole, and the hole's the rule
    fix_checksum(&made);
    ck_assert_int_eq(attach(&made, made.size), QUT_TABLE_BAD_BLOCK);
    h->leads.short_own = 2; // the hole's lead names an own cell that is not there
    fix_checksum(&made);
    ck_assert_int_eq(attach(&made, made.size), QUT_TABLE_BAD_BLOCK);
    made_table_free(&made);
}
END_TEST

// A table with one long rule, a byte of it set: is it refused?
static bool long_rule_is_refused(size_t offset, uint8_t value)
{
    struct maker m;
    maker_init(&m, &arch_x86_64, 1);
    struct qut_rule rule = maker_plain_rule(&m, 8);
    rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_SHADOW, .reg = 46, .offset_bytes = -16};
    maker_row(&m, 0, maker_rule(&m, &rule));
    m.text_size = 64;
    struct made_table made = maker_table(&m, false);
    maker_free(&m);
    size_t found = 0;
    for (size_t at = made.table.header->cells.offset; at + sizeof rule <= made.size; at += 16)
        if (memcmp(made.bytes + at, &rule, sizeof rule) == 0)
            found = at;
    ck_assert_uint_ne(found, 0);
    made.bytes[found + offset] = value;
    fix_checksum(&made);
    bool refused = attach(&made, made.size) == QUT_TABLE_BAD_CELL;
    made_table_free(&made);
    return refused;
}

static bool shadow_is_refused(uint8_t log2)
{
    return long_rule_is_refused(offsetof(struct qut_rule, ra) + offsetof(struct qut_reg_rule, reg), log2);
}

START_TEST(shadows_that_are_none)
{
    ck_assert(!shadow_is_refused(46));
    ck_assert(!shadow_is_refused(QUT_SHADOW_LOG2_MIN));
    ck_assert(!shadow_is_refused(QUT_SHADOW_LOG2_MAX));
    ck_assert(shadow_is_refused(QUT_SHADOW_LOG2_MIN - 1));
    ck_assert(shadow_is_refused(QUT_SHADOW_LOG2_MAX + 1));
    ck_assert(shadow_is_refused(255));
}
END_TEST

START_TEST(origins_that_are_none)
{
    ck_assert(!long_rule_is_refused(offsetof(struct qut_rule, origin), QUT_RULE_FROM_CODE));
    ck_assert(!long_rule_is_refused(offsetof(struct qut_rule, origin), 63)); // a later one
    ck_assert(long_rule_is_refused(offsetof(struct qut_rule, origin), 64));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spoiled tables");
    TCase *tests = tcase_create("spoiled");
    tcase_set_timeout(tests, 200);
    tcase_add_test(tests, every_bit_flipped);
    tcase_add_test(tests, every_bit_flipped_with_a_matching_checksum);
    tcase_add_test(tests, two_bytes_at_random_with_a_matching_checksum);
    tcase_add_test(tests, cut_at_every_length);
    tcase_add_test(tests, more_than_a_table);
    tcase_add_test(tests, foreign_headers);
    tcase_add_test(tests, cells_that_are_none);
    tcase_add_test(tests, shadows_that_are_none);
    tcase_add_test(tests, origins_that_are_none);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}

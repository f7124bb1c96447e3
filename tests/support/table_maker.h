// SPDX-License-Identifier: Apache-2.0
// Tables from lists of rows, made by hand or at random, and what they should answer.
#ifndef TESTS_SUPPORT_TABLE_MAKER_H
#define TESTS_SUPPORT_TABLE_MAKER_H

#include "libqut/runtime/table.h"
#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"
#include "qutc/table/table_writer.h"

enum { MAKER_TEXT = 0x40000 };

struct maker {
    const struct arch *arch;
    struct cfi_rule_set rules;
    struct cfi_row_list rows; // any order is a mistake of the test
    uint32_t text_size;
    uint64_t random;
};

struct made_table {
    uint8_t *bytes; // exactly size bytes, so that a sanitizer sees every step beyond
    size_t size;
    struct qut_table table;
};

void maker_init(struct maker *m, const struct arch *arch, uint64_t seed);
void maker_free(struct maker *m);

// Like a reader of frame programs: from pc_rel on, the rule holds. Unlike it, an equal neighbour stays.
void maker_row(struct maker *m, uint32_t pc_rel, uint32_t rule_id);
uint32_t maker_rule(struct maker *m, const struct qut_rule *rule);

uint32_t maker_random(struct maker *m, uint32_t below);

// cfa = sp + cfa_bytes, the return address where calls put it.
struct qut_rule maker_plain_rule(const struct maker *m, int32_t cfa_bytes);
// Any rule that a reader could state: holes, refusals, short and long ones.
struct qut_rule maker_random_rule(struct maker *m);

// Compiles the rows (which stay with the maker) and attaches; aborts where that fails.
struct made_table maker_table(const struct maker *m, bool small);
void made_table_free(struct made_table *made);

// Every pc, and some around the text, answered as by the list; false with a message on stdout where one is not.
bool maker_agrees(const struct maker *m, const struct qut_table *table);

#endif

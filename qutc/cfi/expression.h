// SPDX-License-Identifier: Apache-2.0
// DWARF expressions of frame programs, reduced to the closed set of forms that a rule can say.
#ifndef QUTC_CFI_EXPRESSION_H
#define QUTC_CFI_EXPRESSION_H

#include "base/cursor_inline.h"
#include "libqut/arch/arch.h"

// DW_CFA_def_cfa_expression. Returns QUT_REFUSED_NOT with *cfa filled, or why not.
enum qut_refusal cfi_expression_cfa(const struct arch *arch, struct base_bytes ops, struct qut_cfa *cfa);

// DW_CFA_expression (the register is saved at the expression) or, with is_value, DW_CFA_val_expression.
enum qut_refusal cfi_expression_register(const struct arch *arch, struct base_bytes ops, bool is_value,
                                         struct qut_reg_rule *rule);

// What is saved at cfa + offset_bytes lies in a shadow of the stack, a power of two below it. False: it does not, and
// *rule is what it was.
bool cfi_expression_shadow(const struct arch *arch, int64_t offset_bytes, struct qut_reg_rule *rule);

// ART marks the register that holds the dex pc of an interpreter frame by a val_expression that no debugger would
// evaluate: const4u "DEX1"; drop; breg* reg, 0. Returns the register, or QUT_NO_REGISTER where it is anything else.
uint8_t cfi_expression_dex_pc(const struct arch *arch, struct base_bytes ops);

#endif

// SPDX-License-Identifier: Apache-2.0
// Rules as text. "[X]" is the word at address X.
#ifndef QUTC_TABLE_RULE_TEXT_H
#define QUTC_TABLE_RULE_TEXT_H

#include "libqut/arch/arch.h"

enum { TABLE_RULE_TEXT_BYTES = 512 };

// "cfa=rsp+16 ra=[cfa-8] fp=[cfa-16] rbx=[cfa-24] signal": cfa, ra and fp (the architecture's frame pointer) always,
// other tracked registers where they are not the same; "refused: REASON"; "hole". Returns text.
const char *table_rule_text(const struct arch *arch, const struct qut_rule *rule, char text[TABLE_RULE_TEXT_BYTES]);

#endif

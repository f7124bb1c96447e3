// SPDX-License-Identifier: Apache-2.0
// Rules as text. "[X]" is the word at address X.
#ifndef QUTC_CLI_RULE_TEXT_H
#define QUTC_CLI_RULE_TEXT_H

#include "libqut/arch/arch.h"

enum { CLI_RULE_TEXT_BYTES = 512 };

// "cfa=rsp+16 ra=[cfa-8] fp=[cfa-16] rbx=[cfa-24] signal": cfa, ra and fp (the architecture's frame pointer) always,
// other tracked registers where they are not the same; "refused: REASON"; "hole". Returns text.
const char *cli_rule_text(const struct qut_arch *arch, const struct qut_rule *rule, char text[CLI_RULE_TEXT_BYTES]);

// "CANTUNWIND", "CFA_EXPRESSION", ...: the enumerators' names.
const char *cli_refusal_name(unsigned reason);

#endif

// SPDX-License-Identifier: Apache-2.0
// The unwinding instructions of the Arm EHABI ("Frame unwinding instructions") -> one rule.
#ifndef QUTC_CFI_EHABI_H
#define QUTC_CFI_EHABI_H

#include "base/cursor_inline.h"
#include "libqut/arch/arch.h"

enum {
    // Three bytes in the word that carries the count of further words, and a count of one byte.
    CFI_EHABI_OPCODES_MAX = 3 + 255 * 4,
};

// The rule that these instructions amount to, in the order of their execution: FRAME, or REFUSED with the reason. The
// list's end is an implicit `finish`. At most CFI_EHABI_OPCODES_MAX bytes are looked at.
struct qut_rule cfi_ehabi_rule(const struct arch *arch, struct base_bytes opcodes);

#endif

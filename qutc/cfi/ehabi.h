// SPDX-License-Identifier: Apache-2.0
// The unwinding instructions of the Arm EHABI ("Frame unwinding instructions") -> one rule.
#ifndef QUTC_CFI_EHABI_H
#define QUTC_CFI_EHABI_H

#include "libqut/arch/arch.h"
#include "qutc/base/cursor.h"

enum {
    // Three bytes in the word that carries the count of further words, and a count of one byte.
    QUTC_EHABI_OPCODES_MAX = 3 + 255 * 4,
};

// The rule that these instructions amount to, in the order of their execution: FRAME, or REFUSED with the reason. The
// list's end is an implicit `finish`. At most QUTC_EHABI_OPCODES_MAX bytes are looked at.
struct qut_rule qutc_ehabi_rule(const struct qut_arch *arch, struct qutc_bytes opcodes);

#endif

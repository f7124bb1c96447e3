// SPDX-License-Identifier: Apache-2.0
// What the unwind information of Android's runtime, libart, leaves out or cannot say, and its symbols tell.
#ifndef QUTC_CFI_ART_H
#define QUTC_CFI_ART_H

#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"
#include "qutc/input/image.h"

// Changes the finished rows of a libart; of any other image, none:
// - Android 7.0 to 8.1: the interpreter's frames get the register that holds the dex pc. Later versions mark it.
// - up to Android 13: return addresses that method tracing put in place of the true ones are refused, so that a walk
//   ends there with the reason.
int qutc_art_rows(const struct qutc_image *image, uint64_t text_start, uint64_t text_end, struct qutc_rule_set *rules,
                  struct qutc_row_list *rows, struct qutc_error *error);

// Whether symbols alone can say that a register holds the dex pc at this address, for who compares with what the unwind
// information says. Reads all symbols of a libart.
bool qutc_art_has_dex_pc(const struct qutc_image *image, uint64_t vaddr, uint8_t reg);

#endif

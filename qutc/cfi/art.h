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
int cfi_art_rows(const struct input_image *image, uint64_t text_start, uint64_t text_end, struct cfi_rule_set *rules,
                 struct cfi_row_list *rows, struct base_error *error);

// Whether symbols alone can say that a register holds the dex pc at this address, for comparing with what the unwind
// information says. Reads all symbols of a libart.
bool cfi_art_has_dex_pc(const struct input_image *image, uint64_t vaddr, uint8_t reg);

#endif

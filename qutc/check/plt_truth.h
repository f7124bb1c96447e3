// SPDX-License-Identifier: Apache-2.0
// What is true in a .plt without unwind information, read from its code: stubs change neither sp nor the link
// register, the header before them pushes first.
#ifndef QUTC_CHECK_PLT_TRUTH_H
#define QUTC_CHECK_PLT_TRUTH_H

#include "formats/qut_rule.h"
#include "qutc/input/image.h"

// Whether a rule holds at a pc of a .plt section. False outside of them and where calls push the return address.
bool check_true_of_plt(const struct input_image *image, uint64_t pc, const struct qut_rule *rule);

#endif

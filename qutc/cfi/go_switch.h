// SPDX-License-Identifier: Apache-2.0
// Functions of Go's runtime whose frames are not left as others are: by name, and by the instructions that keep sp.
#ifndef QUTC_CFI_GO_SWITCH_H
#define QUTC_CFI_GO_SWITCH_H

#include "formats/qut_rule.h"
#include "qutc/input/go_functions.h"
#include "qutc/input/image.h"

enum cfi_go_manner {
    CFI_GO_CALLED = 0,  // as any other
    CFI_GO_INTERRUPTED, // its caller did not call it: it was interrupted where the return address says
    CFI_GO_ON_SIGNAL,   // marked as outermost for Go's own walks; the kernel's signal frame lies behind it
    CFI_GO_SWITCHES,    // `which` counts
};

struct cfi_go_special {
    enum cfi_go_manner manner;
    enum qut_stack_switch which; // UNKNOWN: the function writes sp, and nothing more is known
    // SAVED: from kept_start to kept_end a register keeps what sp was; before and behind sp is what it was.
    uint64_t kept_start, kept_end;
    uint8_t kept_reg; // DWARF number
};

void cfi_go_special(const struct input_image *image, const struct input_go_functions *functions,
                    const struct input_go_function *function, struct cfi_go_special *special);

#endif

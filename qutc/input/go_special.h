// SPDX-License-Identifier: Apache-2.0
// Functions of Go's runtime whose frames are not left as others are: by name, and by the instructions that keep sp.
#ifndef QUTC_INPUT_GO_SPECIAL_H
#define QUTC_INPUT_GO_SPECIAL_H

#include "formats/qut_rule.h"
#include "qutc/input/go_functions.h"
#include "qutc/input/image.h"

enum input_go_manner {
    INPUT_GO_CALLED = 0,  // as any other
    INPUT_GO_INTERRUPTED, // its caller did not call it: it was interrupted where the return address says
    INPUT_GO_ON_SIGNAL,   // marked as outermost for Go's own walks; the kernel's signal frame lies behind it
    INPUT_GO_SWITCHES,    // `which` counts
};

struct input_go_special {
    enum input_go_manner manner;
    enum qut_stack_switch which; // UNKNOWN: the function writes sp, and nothing more is known
    // SAVED: from kept_start to kept_end a register keeps what sp was; before and behind sp is what it was.
    uint64_t kept_start, kept_end;
    uint8_t kept_reg; // DWARF number
};

void input_go_special(const struct input_image *image, const struct input_go_functions *functions,
                      const struct input_go_function *function, struct input_go_special *special);

#endif

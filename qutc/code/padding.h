// SPDX-License-Identifier: Apache-2.0
// What fills up between functions, so that the next one is aligned: nothing runs there.
#ifndef QUTC_CODE_PADDING_H
#define QUTC_CODE_PADDING_H

#include "qutc/input/image.h"

// How many bytes from `start` on do nothing but fill up, at most to `end` (less than 4 GiB behind). Of arm those that
// its first instruction set knows.
uint64_t code_padding_bytes(const struct input_image *image, uint64_t start, uint64_t end);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "qutc/code/op.h"

// An architecture without a decoder has nothing here.
static const struct code_arch archs[QUT_ARCH_END];

const struct code_arch *code_arch(const struct arch *arch)
{
    return &archs[arch->id];
}

// SPDX-License-Identifier: Apache-2.0
#include <assert.h>

#include "bytecode/machine.h"
#include "bytecode/x86_64/translate.h"

static_assert((int)X86_64_ALIGNMENT == (int)BYTECODE_MACHINE_ALIGNMENT, "the same");
static_assert((int)X86_64_BYTES_MAX == (int)BYTECODE_MACHINE_BYTES_MAX, "the same");

const struct bytecode_machine bytecode_machine = {x86_64_translate, x86_64_enter};

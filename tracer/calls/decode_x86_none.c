// SPDX-License-Identifier: Apache-2.0
// Without Zydis.
#include <elf.h>

#include "tracer/calls/inside.h"

const struct calls_decoder calls_decoder_x86_64 = {.elf_machine = EM_X86_64};

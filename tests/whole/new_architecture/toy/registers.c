// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/toy/definition.h"

const char *const arch_toy_register_names[] = {"g0", "g1", "g2",  "g3",  "g4",  "g5", "g6", "g7",
                                               "g8", "g9", "g10", "g11", "g12", "fp", "sp", "lr"};

const struct arch arch_toy = QUT_ARCH_TOY_DEFINITION;

// g0 ... lr pc.
#define OFFSETS(start)                                                                                                 \
    {                                                                                                                  \
        (start), (start) + 8, (start) + 16, (start) + 24, (start) + 32, (start) + 40, (start) + 48, (start) + 56,      \
            (start) + 64, (start) + 72, (start) + 80, (start) + 88, (start) + 96, (start) + 104, (start) + 112,        \
            (start) + 120, [16 ... ARCH_REGISTERS_MAX - 1] = ARCH_NOT_KEPT                                             \
    }

const struct arch_register_layout arch_toy_core_registers = {
    .size_bytes = 17 * 8, .word_bytes = 8, .pc_offset = 16 * 8, .reg_offset = OFFSETS(0)};

enum { REGISTERS = 176 }; // behind uc_flags, uc_link, uc_stack, uc_sigmask

const struct arch_register_layout arch_toy_ucontext_registers = {.size_bytes = REGISTERS + 17 * 8,
                                                                 .word_bytes = 8,
                                                                 .pc_offset = REGISTERS + 16 * 8,
                                                                 .reg_offset = OFFSETS(REGISTERS)};

// SPDX-License-Identifier: Apache-2.0
// What differs between architectures, as data. One folder per architecture fills one struct qut_arch; everything
// else asks here.
#ifndef QUT_ARCH_ARCH_H
#define QUT_ARCH_ARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/qut_rule.h"

struct qut_arch {
    enum qut_arch_id id;
    const char *name;       // as in docs and on the command line
    uint16_t elf_machine;   // EM_*
    uint8_t word_bytes;     // 4 or 8
    uint8_t pc_shift;       // log2 of the smallest distance between two instruction starts
    uint8_t register_count; // DWARF core registers are 0 .. register_count-1
    uint8_t sp_reg;         // DWARF numbers
    uint8_t ra_reg;         // the usual return-address column
    bool ra_in_register;    // at a function's first instruction ra is in ra_reg (else on the stack)
    uint8_t tracked_count;
    uint8_t tracked[QUT_TRACKED_MAX];  // DWARF numbers by slot
    const char *const *register_names; // register_count names
};

// NULL where unknown. Signal-safe, no allocation.
const struct qut_arch *qut_arch_by_id(enum qut_arch_id id);
const struct qut_arch *qut_arch_by_elf_machine(uint16_t elf_machine);

// Slot of a DWARF register in arch->tracked, or -1.
static inline int qut_arch_slot(const struct qut_arch *arch, uint64_t dwarf_reg)
{
    for (int i = 0; i < arch->tracked_count; i++)
        if (arch->tracked[i] == dwarf_reg)
            return i;
    return -1;
}

extern const struct qut_arch qut_arch_x86_64, qut_arch_aarch64, qut_arch_arm, qut_arch_x86, qut_arch_riscv64;

#endif

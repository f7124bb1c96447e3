// SPDX-License-Identifier: Apache-2.0
// The emulated program: its registers and its memory.
#ifndef TESTS_PROOF_ORACLE_GUEST_H
#define TESTS_PROOF_ORACLE_GUEST_H

#include <stddef.h>

#include "libqut/arch/arch.h"

struct guest {
    const struct arch *arch;
    uint64_t word_mask;
    const uint8_t *reg_at[ARCH_REGISTERS_MAX]; // in the emulator's register file, by DWARF number; NULL: not there
    void *cpu;
};

// By the name of qemu-NAME. NULL: not one that we know.
const struct arch *guest_arch(const char *target_name);

// Finds the registers. In a callback of the first CPU. Returns NULL, or what is wrong.
const char *guest_open(struct guest *guest, const struct arch *arch);

// All registers as they are before the instruction at pc.
void guest_registers(const struct guest *guest, uint64_t pc, struct arch_frame_regs *regs);

// arm: whether the CPU executes Thumb code now.
bool guest_is_thumb(const struct guest *guest);

// `context` is a struct guest. They fit struct runtime_walk_ops.
bool guest_read_word(void *context, uint64_t address, uint64_t *value);
size_t guest_read_bytes(void *context, uint64_t address, void *bytes, size_t size);
uint64_t guest_strip(void *context, uint64_t pc);

#endif

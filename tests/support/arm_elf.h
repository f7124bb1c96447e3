// SPDX-License-Identifier: Apache-2.0
// Small linked ELF32 Arm images, made in memory around a given exception index.
#ifndef TESTS_SUPPORT_ARM_ELF_H
#define TESTS_SUPPORT_ARM_ELF_H

#include "qutc/input/image.h"

enum {
    ARM_ELF_WORDS_MAX = 512,
    ARM_ELF_CANTUNWIND = 1,
};

struct arm_elf {
    struct input_range text[2]; // executable segments; the second may be empty
    uint32_t exidx_vaddr;
    uint32_t exidx[ARM_ELF_WORDS_MAX];
    size_t exidx_words;
    uint32_t extab_vaddr;
    uint32_t extab[ARM_ELF_WORDS_MAX];
    size_t extab_words;
};

// An image with one executable segment, and the index and its table where they do not touch it.
struct arm_elf arm_elf(uint32_t text_start, uint32_t text_end);

// Adds an index entry for the function at pc: its second word as given, or pointing at extab[extab_index].
void arm_elf_inline_entry(struct arm_elf *elf, uint32_t pc, uint32_t data);
void arm_elf_table_entry(struct arm_elf *elf, uint32_t pc, size_t extab_index);

// Adds a word to .ARM.extab; returns its index. A routine's word is relative to its own place.
size_t arm_elf_extab_word(struct arm_elf *elf, uint32_t word);
size_t arm_elf_extab_routine(struct arm_elf *elf, uint32_t routine);

// The image, opened; the test fails where that fails. Close with input_image_close.
struct input_image *arm_elf_open(const struct arm_elf *elf);

const struct input_frame_section *arm_elf_index(const struct input_image *image);

#endif

// SPDX-License-Identifier: Apache-2.0
// Where the names of an image's functions are: the symbol tables of the file, of its separate debug file, of
// .gnu_debugdata, and, where there are no section headers, the dynamic one that the loader knows.
#ifndef QUTC_INPUT_SYMBOL_SECTIONS_H
#define QUTC_INPUT_SYMBOL_SECTIONS_H

#include "qutc/input/image.h"

enum { INPUT_SYMBOL_SECTIONS_MAX = 3 };

struct input_symbol_section {
    const struct input_elf *elf; // that has it: its sections are what the symbols' indexes mean
    struct base_bytes symbols;   // Elf32_Sym or Elf64_Sym, by image->is_64
    struct base_bytes names;
};

// Returns how many. What lies outside its file, or cannot be unpacked, is left out: whether for want of memory,
// input_image_check_memory says. The bytes live as long as the image. load_bias: of an image of memory,
// where a loader may have replaced the addresses that the dynamic section gives by those in memory; else 0.
unsigned input_image_symbol_sections(const struct input_image *image, uint64_t load_bias,
                                     struct input_symbol_section *sections);

// The dynamic symbols alone, by section header or as the loader finds them. False where there are none.
bool input_image_dynamic_symbols(const struct input_image *image, struct input_symbol_section *section);

#endif

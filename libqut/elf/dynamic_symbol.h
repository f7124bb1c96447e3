// SPDX-License-Identifier: Apache-2.0
// A symbol that a loaded image exports, found in memory, as the dynamic loader finds it.
#ifndef QUT_ELF_DYNAMIC_SYMBOL_H
#define QUT_ELF_DYNAMIC_SYMBOL_H

#include "libqut/elf/image_memory.h"

// Its address, or 0. dynamic_address is that of the image's PT_DYNAMIC segment. Pointers in it may be relocated (glibc
// does so) or not (bionic, and where a file stands for memory).
uint64_t elf_art_find_symbol(const struct elf_art_memory *memory, uint64_t load_bias, uint64_t dynamic_address,
                             const char *name);
// The same, and how many bytes it has.
uint64_t elf_art_find_sized_symbol(const struct elf_art_memory *memory, uint64_t load_bias, uint64_t dynamic_address,
                                   const char *name, uint64_t *size_bytes);
// Several of one image, whose tables are looked at once. addresses[i]: that of names[i], or 0. sizes_bytes, of as many:
// the same as above, or NULL.
void elf_art_find_symbols(const struct elf_art_memory *memory, uint64_t load_bias, uint64_t dynamic_address,
                          const char *const *names, size_t count, uint64_t *addresses, uint64_t *sizes_bytes);

#endif

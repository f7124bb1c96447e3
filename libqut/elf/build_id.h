// SPDX-License-Identifier: Apache-2.0
// The build-id among the notes of an ELF image, wherever their bytes come from.
#ifndef QUT_ELF_BUILD_ID_H
#define QUT_ELF_BUILD_ID_H

#include <stddef.h>
#include <stdint.h>

enum { ELF_BUILD_ID_MAX = 64 };

// Returns its size, at most ELF_BUILD_ID_MAX, and sets *at to where it begins; 0 where there is none, or only a longer
// one. `alignment` is what the segment or the section states; anything but 8 is 4. Never looks outside the size bytes.
uint32_t elf_find_build_id(const uint8_t *notes, size_t size, uint64_t alignment, size_t *at);

#endif

// SPDX-License-Identifier: Apache-2.0
// Where functions begin and end by the unwind information, for code that no symbol covers: FDEs, entries of .ARM.exidx,
// headers of OAT methods. Nothing of them is evaluated that need not be.
#ifndef TRACER_NAMES_STARTS_H
#define TRACER_NAMES_STARTS_H

#include "base/vector.h"
#include "qutc/input/image.h"

struct names_starts_range {
    uint64_t start, end;
    uint64_t greatest_end; // of this and all earlier ones
};

struct names_starts {
    BASE_VECTOR(struct names_starts_range); // by start
};

// All functions of an image (NULL: of none) are added. What cannot be read, or finds no memory, is left out.
void names_starts_add(struct names_starts *starts, const struct input_image *image);
// Before anything is asked; without memory nothing is known.
void names_starts_sort(struct names_starts *starts);
void names_starts_free(struct names_starts *starts);

// Where the function that an address is in begins. Of several, the one that begins last. False in a hole between them.
bool names_starts_find(const struct names_starts *starts, uint64_t vaddr, uint64_t *start);

// Whether some function begins in (after, vaddr].
bool names_starts_between(const struct names_starts *starts, uint64_t after, uint64_t vaddr);

#endif

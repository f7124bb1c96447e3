// SPDX-License-Identifier: Apache-2.0
// Entries of procedure linkage tables: which function each jumps to. An entry loads a slot's address; a relocation says
// whose the slot is.
#ifndef TRACER_NAMES_PLT_NAMES_H
#define TRACER_NAMES_PLT_NAMES_H

#include "base/vector.h"
#include "qutc/input/image.h"

struct names_plt_slot {
    uint64_t vaddr;
    struct base_bytes name; // in the file's strings, and what follows it
};

struct names_plt {
    BASE_VECTOR(struct names_plt_slot); // by vaddr
};

// The slots of an image, which has to live as long. What cannot be read, or finds no memory, is left out.
void names_plt_read(struct names_plt *plt, const struct input_image *image);
void names_plt_free(struct names_plt *plt);

bool names_plt_is(const struct input_image *image, uint64_t vaddr);
// Name of the function that the entry at an address jumps to. Size 0: it is none, or not known.
struct base_bytes names_plt_find(const struct names_plt *plt, const struct input_image *image, uint64_t vaddr);

#endif

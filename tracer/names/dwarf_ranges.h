// SPDX-License-Identifier: Apache-2.0
// Addresses of things in debug information: which of them contain one.
#ifndef TRACER_NAMES_DWARF_RANGES_H
#define TRACER_NAMES_DWARF_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "tracer/names/dw_late.h"

struct names_range {
    uint64_t start; // first: ranges are sorted by it
    uint64_t end;
    uint64_t greatest_end; // of this and all earlier ones, once they are sorted
    uint32_t item;         // in the caller's array
    uint32_t depth;        // of things that stand inside each other
};

struct names_ranges {
    BASE_VECTOR(struct names_range);
};

// Adds what a DIE says of its addresses. False without memory, or where there are more than are ever needed.
bool names_ranges_add(struct names_ranges *ranges, Dwarf_Die *die, uint32_t item, uint32_t depth);
bool names_ranges_sort(struct names_ranges *ranges);

// Of those that contain an address and begin last the deepest; NULL: none does.
const struct names_range *names_ranges_find(const struct names_ranges *ranges, uint64_t vaddr);

void names_ranges_free(struct names_ranges *ranges);

#endif

// SPDX-License-Identifier: Apache-2.0
// One compilation unit of debug information: its functions, and what is inlined in one of them. Debug information comes
// from untrusted files: it is gone through forwards only, and no further than the unit is long.
#ifndef TRACER_NAMES_DWARF_UNIT_H
#define TRACER_NAMES_DWARF_UNIT_H

#include "tracer/names/dwarf_ranges.h"
#include "tracer/names/dwarf_scopes.h"
#include "tracer/names/inlines.h"

struct names_inlined {
    Dwarf_Die die;
    uint32_t parent; // index; itself: the function
};

struct names_unit {
    Dwarf_Die lines; // the DIE that has the line table
    Dwarf_Die die;   // the DIE that has the functions: another one where they are in a file of their own
    uint64_t length_bytes;
    uint64_t budget;               // DIEs that may still be looked at
    struct names_ranges functions; // items: offsets in function_dies
    BASE_VECTOR(Dwarf_Die) function_dies;
    struct names_scopes scopes;
    // Of the function that was asked for last.
    uint32_t function;
    struct names_ranges blocks;
    BASE_VECTOR(struct names_inlined) inlined; // [0] is the function
};

// False without memory; the unit is to be closed all the same.
bool names_unit_open(struct names_unit *unit, const Dwarf_Die *lines, const Dwarf_Die *die);
void names_unit_close(struct names_unit *unit);

// As names_inlines_at.
size_t names_unit_at(struct names_unit *unit, uint64_t vaddr,
                     struct names_inline_function functions[NAMES_INLINE_DEPTH_MAX]);

// The function that begins at an address. It lives until the next question, as what it leads to does.
bool names_unit_function(struct names_unit *unit, uint64_t vaddr, Dwarf_Die *die);
bool names_inlines_function(struct names_inlines *inlines, uint64_t vaddr, Dwarf_Die *die);

// The innermost function, or inlined copy of one, whose code is at an address. False: there is none.
struct names_block {
    Dwarf_Off die;
    uint64_t entry; // where its code begins
};
bool names_unit_block(struct names_unit *unit, uint64_t vaddr, struct names_block *block);

// The units of a file: how many; the DIE that has the line table; all of one, until another is asked about. NULL: it
// cannot be read.
uint32_t names_inlines_units(const struct names_inlines *inlines);
bool names_inlines_unit_die(struct names_inlines *inlines, uint32_t unit, Dwarf_Die *die);
struct names_unit *names_inlines_enter(struct names_inlines *inlines, uint32_t unit);

#endif

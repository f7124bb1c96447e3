// SPDX-License-Identifier: Apache-2.0
// Whether a class of C++ is handed over as its bytes, or by the address of a copy: Itanium's C++ ABI, 3.1.1. clang
// writes it down. Of gcc's it follows from what the class declares; where that says nothing for certain, nothing is
// said.
#include <string.h>

#include "tracer/prototypes/inside.h"

static enum prototypes_copied both(enum prototypes_copied a, enum prototypes_copied b)
{
    return a > b ? a : b;
}

// The class' own name stands before its template's arguments, or where a constructor's has none.
static bool is_named_as(const char *name, const char *of)
{
    const size_t length = strcspn(of, "<");
    return strncmp(name, of, length) == 0 && (name[length] == 0 || name[length] == '<');
}

// A constructor that copies, or moves: its only real argument is a reference to the class.
static bool is_copying(Dwarf_Die *method, const Dwarf_Die *class)
{
    Dwarf_Die die, type, copy = *class;
    if (names_dw.child(method, &die) != 0)
        return false;
    do {
        if (names_dw.tag(&die) != DW_TAG_formal_parameter || names_dw.hasattr(&die, DW_AT_artificial))
            continue;
        if (!prototypes_type_of(&die, &type) || !prototypes_is_reference(&type) || !prototypes_type_of(&type, &type) ||
            !prototypes_peel(&type))
            return false;
        return names_dw.dieoffset(&type) == names_dw.dieoffset(&copy);
    } while (prototypes_next(&die));
    return false;
}

static enum prototypes_copied by_method(Dwarf_Die *method, const Dwarf_Die *class, const char *class_name)
{
    const char *name = names_dw.diename(method);
    Dwarf_Die copy = *class;
    Dwarf_Half version = 0;
    Dwarf_Word virtuality = 0;
    prototypes_number(method, DW_AT_virtuality, &virtuality);
    if (virtuality)
        return PROTOTYPES_BY_ADDRESS;
    if (!name || !class_name || !(*name == '~' || (is_named_as(name, class_name) && is_copying(method, class))))
        return PROTOTYPES_BY_BYTES;
    // Before DWARF 5 what a compiler made on request may look as what somebody wrote.
    const bool says_all = names_dw.cu_info(copy.cu, &version, NULL, NULL, NULL, NULL, NULL, NULL) == 0 && version >= 5;
    return !says_all || names_dw.hasattr(method, DW_AT_artificial) || names_dw.hasattr(method, DW_AT_defaulted) ||
                   names_dw.hasattr(method, DW_AT_deleted)
               ? PROTOTYPES_COPIED_UNKNOWN
               : PROTOTYPES_BY_ADDRESS;
}

static enum prototypes_copied by_part(Dwarf_Die *part, unsigned *budget, unsigned depth)
{
    Dwarf_Die type;
    Dwarf_Word virtuality = 0;
    prototypes_number(part, DW_AT_virtuality, &virtuality);
    if (virtuality)
        return PROTOTYPES_BY_ADDRESS;
    if (!prototypes_type_of(part, &type) || !prototypes_peel(&type))
        return PROTOTYPES_COPIED_UNKNOWN;
    for (unsigned links = 0; names_dw.tag(&type) == DW_TAG_array_type; links++)
        if (links == PROTOTYPES_LINKS_MAX || !prototypes_type_of(&type, &type) || !prototypes_peel(&type))
            return PROTOTYPES_COPIED_UNKNOWN;
    return prototypes_is_struct(&type) ? prototypes_how_copied(&type, budget, depth + 1) : PROTOTYPES_BY_BYTES;
}

enum prototypes_copied prototypes_how_copied(Dwarf_Die *class, unsigned *budget, unsigned depth)
{
    enum prototypes_copied copied = PROTOTYPES_BY_BYTES;
    Dwarf_Word convention = 0;
    Dwarf_Die die;
    prototypes_number(class, DW_AT_calling_convention, &convention);
    if (convention == DW_CC_pass_by_reference || convention == DW_CC_pass_by_value)
        return convention == DW_CC_pass_by_value ? PROTOTYPES_BY_BYTES : PROTOTYPES_BY_ADDRESS;
    if (names_dw.hasattr(class, DW_AT_declaration) || depth > PROTOTYPES_NEST_MAX)
        return PROTOTYPES_COPIED_UNKNOWN;
    if (names_dw.child(class, &die) != 0)
        return copied;
    do {
        const int tag = names_dw.tag(&die);
        if ((*budget)-- == 0) {
            *budget = 0;
            return PROTOTYPES_COPIED_UNKNOWN;
        }
        if (tag == DW_TAG_subprogram)
            copied = both(copied, by_method(&die, class, names_dw.diename(class)));
        else if (tag == DW_TAG_inheritance || (tag == DW_TAG_member && !names_dw.hasattr(&die, DW_AT_external)))
            copied = both(copied, by_part(&die, budget, depth));
    } while (copied != PROTOTYPES_BY_ADDRESS && prototypes_next(&die));
    return copied;
}

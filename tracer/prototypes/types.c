// SPDX-License-Identifier: Apache-2.0
// Types of debug information. libdw's own helpers for them go round in types that lead to themselves: none is used.
#include <string.h>

#include "tracer/prototypes/inside.h"

bool prototypes_type_of(Dwarf_Die *die, Dwarf_Die *type)
{
    Dwarf_Attribute attribute;
    return names_dw.formref_die(names_dw.attr_integrate(die, DW_AT_type, &attribute), type) != NULL;
}

// Where a type has a unit of its own, others have its signature.
void prototypes_to_unit(Dwarf_Die *type)
{
    Dwarf_Attribute attribute;
    Dwarf_Die whole;
    if (names_dw.formref_die(names_dw.attr(type, DW_AT_signature, &attribute), &whole))
        *type = whole;
}

bool prototypes_peel(Dwarf_Die *type)
{
    for (unsigned links = 0; links < PROTOTYPES_LINKS_MAX; links++) {
        Dwarf_Die next;
        switch (names_dw.tag(type)) {
        case DW_TAG_typedef:
        case DW_TAG_const_type:
        case DW_TAG_volatile_type:
        case DW_TAG_restrict_type:
        case DW_TAG_atomic_type:
            if (!prototypes_type_of(type, &next))
                return false;
            *type = next;
            break;
        default: prototypes_to_unit(type); return true;
        }
    }
    return false;
}

bool prototypes_number(Dwarf_Die *die, unsigned attribute, Dwarf_Word *value)
{
    Dwarf_Attribute found;
    return names_dw.formudata(names_dw.attr_integrate(die, attribute, &found), value) == 0;
}

// Siblings stand behind each other in the file: one that does not would lead in circles.
bool prototypes_next(Dwarf_Die *die)
{
    Dwarf_Die next;
    if (names_dw.siblingof(die, &next) != 0 || names_dw.dieoffset(&next) <= names_dw.dieoffset(die))
        return false;
    *die = next;
    return true;
}

bool prototypes_is_reference(Dwarf_Die *type)
{
    const int tag = names_dw.tag(type);
    return tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
}

bool prototypes_is_struct(Dwarf_Die *type)
{
    const int tag = names_dw.tag(type);
    return tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_class_type;
}

// ---- sizes

bool prototypes_dimension(const Dwarf_Die *array, unsigned at, Dwarf_Word *count)
{
    Dwarf_Die die, copy = *array;
    unsigned number = 0;
    bool found = false;
    *count = 1;
    if (names_dw.child(&copy, &die) != 0)
        return false;
    do {
        Dwarf_Word own = 0, upper;
        if (names_dw.tag(&die) != DW_TAG_subrange_type || number++ < at)
            continue;
        found = true;
        if (!prototypes_number(&die, DW_AT_count, &own) && prototypes_number(&die, DW_AT_upper_bound, &upper))
            own = upper + 1;
        if (__builtin_mul_overflow(*count, own, count) || *count > PROTOTYPES_BYTES_MAX)
            *count = 0;
    } while (number < PROTOTYPES_LINKS_MAX && prototypes_next(&die));
    return found;
}

bool prototypes_bytes(const Dwarf_Die *type, Dwarf_Word *bytes)
{
    Dwarf_Die die = *type, element;
    Dwarf_Word factor = 1, count;
    for (unsigned links = 0; links < PROTOTYPES_LINKS_MAX && prototypes_peel(&die); links++) {
        const int tag = names_dw.tag(&die);
        if (tag == DW_TAG_pointer_type || prototypes_is_reference(&die))
            *bytes = 8;
        else if (!prototypes_number(&die, DW_AT_byte_size, bytes)) {
            if (tag != DW_TAG_array_type || !prototypes_dimension(&die, 0, &count) ||
                !prototypes_type_of(&die, &element) || __builtin_mul_overflow(factor, count, &factor))
                return false;
            die = element;
            continue;
        }
        return !__builtin_mul_overflow(*bytes, factor, bytes) && *bytes <= PROTOTYPES_BYTES_MAX;
    }
    return false;
}

// ---- members

bool prototypes_place(Dwarf_Die *die, struct prototypes_member *member)
{
    Dwarf_Word at = 0, bit, storage;
    Dwarf_Die type;
    member->die = *die;
    member->bits = 0;
    if (names_dw.hasattr(die, DW_AT_data_member_location) &&
        (!prototypes_number(die, DW_AT_data_member_location, &at) || at > PROTOTYPES_BYTES_MAX))
        return false;
    member->offset_bits = at * 8;
    if (!prototypes_number(die, DW_AT_bit_size, &member->bits))
        return true;
    if (member->bits == 0 || member->bits > 64)
        return false;
    if (prototypes_number(die, DW_AT_data_bit_offset, &bit)) {
        member->offset_bits += bit;
    } else if (prototypes_number(die, DW_AT_bit_offset, &bit)) { // counted from the other end
        if (!prototypes_number(die, DW_AT_byte_size, &storage) &&
            (!prototypes_type_of(die, &type) || !prototypes_bytes(&type, &storage)))
            return false;
        if (storage > 16 || bit + member->bits > storage * 8)
            return false;
        member->offset_bits += storage * 8 - bit - member->bits;
    }
    return member->offset_bits / 8 <= PROTOTYPES_BYTES_MAX;
}

struct search {
    const struct probe_step *step;
    struct probe_unresolved *why;
    unsigned budget;
};

static bool is_named(const char *name, const struct probe_step *step)
{
    return strlen(name) == step->name_length && memcmp(name, step->name, step->name_length) == 0;
}

// Of what a member without a name has, and a base class. Those of the type itself come first.
static bool find(struct search *search, const Dwarf_Die *type, struct prototypes_member *member, unsigned depth)
{
    Dwarf_Die first, die, inner, copy = *type;
    struct prototypes_member outer;
    if (depth > PROTOTYPES_NEST_MAX || !prototypes_peel(&copy) || !prototypes_is_struct(&copy) ||
        names_dw.child(&copy, &first) != 0)
        return false;
    die = first;
    do {
        const char *name = names_dw.tag(&die) == DW_TAG_member ? names_dw.diename(&die) : NULL;
        if (name && !names_dw.hasattr(&die, DW_AT_external)) {
            if (is_named(name, search->step))
                return prototypes_place(&die, member);
            if (search->why->word_count < PROBE_WORDS_MAX)
                search->why->words[search->why->word_count++] = name;
        }
    } while (search->budget && search->budget-- && prototypes_next(&die));
    die = first;
    do {
        const int tag = names_dw.tag(&die);
        if (!(tag == DW_TAG_inheritance || (tag == DW_TAG_member && !names_dw.diename(&die))) ||
            !prototypes_place(&die, &outer) || !prototypes_type_of(&die, &inner) ||
            !find(search, &inner, member, depth + 1))
            continue;
        member->offset_bits += outer.offset_bits;
        return true;
    } while (search->budget && search->budget-- && prototypes_next(&die));
    return false;
}

bool prototypes_find_member(const Dwarf_Die *type, const struct probe_step *step, struct prototypes_member *member,
                            struct probe_unresolved *why)
{
    struct search search = {step, why, PROTOTYPES_DIES_MAX};
    why->word_count = 0;
    if (!find(&search, type, member, 0))
        return false;
    why->word_count = 0;
    return true;
}

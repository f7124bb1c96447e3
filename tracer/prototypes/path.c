// SPDX-License-Identifier: Apache-2.0
// From an argument, or what is returned, along a path to a number: what has to be read on the way.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "formats/qut_probe.h"
#include "tracer/prototypes/inside.h"

struct walk {
    struct probe_unresolved *why;
    struct probe_recipe *recipe;
    Dwarf_Die type; // peeled
    bool is_void;
    unsigned dimension; // of an array's, how many an index was given for
    // Where it is: so many bytes behind what the recipe has so far, or in registers.
    bool is_in_registers;
    int16_t fields[2]; // of eight bytes each; -1: not in one that is known
    int64_t offset_bytes;
    unsigned bit; // of a bit-field; counted from there
    Dwarf_Word bits;
};

static bool refuse(struct walk *walk, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(struct walk *walk, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(walk->why->text, sizeof walk->why->text, format, values);
    va_end(values);
    return false;
}

// Types are shown as they are declared, without what was peeled off.
static bool refuse_type(struct walk *walk, const char *what)
{
    char text[80];
    prototypes_type_text(walk->is_void ? NULL : &walk->type, NULL, text, sizeof text);
    return refuse(walk, "%s: %s", text, what);
}

static bool set_type(struct walk *walk, Dwarf_Die *of)
{
    walk->dimension = 0;
    walk->is_void = !prototypes_type_of(of, &walk->type);
    return walk->is_void || prototypes_peel(&walk->type) || ((walk->is_void = true));
}

static bool set_field(struct walk *walk, int64_t *within)
{
    const int64_t word = walk->offset_bytes / 8;
    if (walk->offset_bytes < 0 || word > 1 || walk->fields[word] < 0)
        return refuse(walk, "this part of it is in no register that probes see");
    walk->recipe->field = (uint8_t)walk->fields[word];
    *within = walk->offset_bytes % 8;
    return true;
}

static bool add_load(struct walk *walk)
{
    struct probe_recipe *recipe = walk->recipe;
    if (walk->offset_bytes != (int32_t)walk->offset_bytes)
        return refuse(walk, "this is too far away");
    if (recipe->load_count == sizeof recipe->offsets / sizeof *recipe->offsets)
        return refuse(walk, "too many addresses are read on the way");
    recipe->offsets[recipe->load_count++] = (int32_t)walk->offset_bytes;
    return true;
}

// Behind the pointer, or the reference, that this is.
static bool follow(struct walk *walk)
{
    int64_t within = 0;
    Dwarf_Die pointer = walk->type;
    if (walk->is_in_registers) {
        if (!set_field(walk, &within))
            return false;
        if (within)
            return refuse(walk, "an address that is not aligned");
    } else if (!add_load(walk)) {
        return false;
    }
    walk->is_in_registers = false;
    walk->offset_bytes = 0;
    return set_type(walk, &pointer);
}

static bool follow_references(struct walk *walk)
{
    for (unsigned links = 0; !walk->is_void && prototypes_is_reference(&walk->type); links++)
        if (links == PROTOTYPES_LINKS_MAX || !follow(walk))
            return false;
    return true;
}

static bool is_pointer(struct walk *walk)
{
    return !walk->is_void && names_dw.tag(&walk->type) == DW_TAG_pointer_type;
}

static bool enter_member(struct walk *walk, const struct probe_step *step)
{
    struct prototypes_member member;
    if (!prototypes_is_struct(&walk->type))
        return refuse_type(walk, "this has no members");
    if (names_dw.hasattr(&walk->type, DW_AT_declaration))
        return refuse_type(walk, "only declared in this debug information");
    if (!prototypes_find_member(&walk->type, step, &member, walk->why)) {
        char text[64];
        prototypes_type_text(&walk->type, NULL, text, sizeof text);
        return refuse(walk, "%s has no member of this name", text);
    }
    const uint64_t bits = member.offset_bits;
    walk->offset_bytes += (int64_t)(bits / 8);
    walk->bit = (unsigned)(bits % 8);
    walk->bits = member.bits;
    return set_type(walk, &member.die);
}

static bool enter_index(struct walk *walk, int32_t index)
{
    Dwarf_Word count, each;
    Dwarf_Die array = walk->type, element;
    if (is_pointer(walk)) {
        if (!follow(walk))
            return false;
        if (walk->is_void || !prototypes_bytes(&walk->type, &each) || each == 0)
            return refuse(walk, "how large its elements are is not known");
        walk->offset_bytes += (int64_t)each * index;
        return true;
    }
    if (walk->is_void || names_dw.tag(&array) != DW_TAG_array_type || names_dw.hasattr(&array, DW_AT_GNU_vector))
        return refuse_type(walk, "this is no array, and no pointer");
    if (!prototypes_type_of(&array, &element) || !prototypes_bytes(&element, &each) || each == 0)
        return refuse(walk, "how large its elements are is not known");
    Dwarf_Word all = 0;
    prototypes_dimension(&array, walk->dimension, &all);
    count = 1;
    const bool has_more = prototypes_dimension(&array, walk->dimension + 1, &count);
    if (has_more && count == 0)
        return refuse(walk, "how large its elements are is not known");
    if (index < 0 || (all && (Dwarf_Word)index >= all / count))
        return refuse(walk, "this array has %llu elements", (unsigned long long)(all / count));
    walk->offset_bytes += (int64_t)(each * count) * index;
    if (has_more)
        walk->dimension++;
    else
        set_type(walk, &array);
    return true;
}

static bool take_step(struct walk *walk, const struct probe_step *step)
{
    if (walk->bits)
        return refuse(walk, "a bit-field leads nowhere");
    if (!follow_references(walk))
        return false;
    if (step->kind == PROBE_STEP_INDEX)
        return enter_index(walk, step->index);
    if (is_pointer(walk) != (step->kind == PROBE_STEP_POINTED))
        return is_pointer(walk)                    ? refuse_type(walk, "a pointer: its members follow \"->\"")
               : walk->is_void                     ? refuse_type(walk, "this has no members")
               : prototypes_is_struct(&walk->type) ? refuse_type(walk, "no pointer: its members follow \".\"")
                                                   : refuse_type(walk, "this has no members");
    if (step->kind == PROBE_STEP_POINTED && !follow(walk))
        return false;
    if (walk->is_void)
        return refuse_type(walk, "this has no members");
    return enter_member(walk, step);
}

// ---- what it ends at

static bool end_at_address(struct walk *walk)
{
    Dwarf_Die element;
    Dwarf_Word bytes;
    if (walk->is_in_registers)
        return refuse_type(walk, "in registers, so it has no address");
    if (walk->offset_bytes != (int32_t)walk->offset_bytes)
        return refuse(walk, "this is too far away");
    walk->recipe->bits = 64;
    walk->recipe->last_bytes = 8;
    walk->recipe->added = (int32_t)walk->offset_bytes;
    if (prototypes_type_of(&walk->type, &element) && prototypes_bytes(&element, &bytes) && bytes == 1 &&
        prototypes_dimension(&walk->type, walk->dimension, &bytes))
        walk->recipe->array_bytes = (uint32_t)bytes;
    return true;
}

static bool is_number(struct walk *walk, bool *is_signed)
{
    Dwarf_Word encoding = 0;
    Dwarf_Die under;
    *is_signed = false;
    switch (names_dw.tag(&walk->type)) {
    case DW_TAG_pointer_type:
    case DW_TAG_ptr_to_member_type: return true;
    case DW_TAG_enumeration_type:
        if (prototypes_type_of(&walk->type, &under) && prototypes_peel(&under))
            prototypes_number(&under, DW_AT_encoding, &encoding);
        else
            prototypes_number(&walk->type, DW_AT_encoding, &encoding);
        break;
    case DW_TAG_base_type: prototypes_number(&walk->type, DW_AT_encoding, &encoding); break;
    default: return refuse_type(walk, "this is no number");
    }
    *is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
    if (encoding == DW_ATE_float || encoding == DW_ATE_complex_float)
        return refuse_type(walk, "floating point, which probes do not compute with");
    return true;
}

static bool end_at_number(struct walk *walk)
{
    struct probe_recipe *recipe = walk->recipe;
    Dwarf_Word bytes = 8, bits;
    int64_t within = 0;
    if (walk->is_void)
        return refuse_type(walk, "this is no number");
    if (prototypes_is_struct(&walk->type))
        return refuse_type(walk, "which of its members?");
    if (names_dw.tag(&walk->type) == DW_TAG_array_type)
        return end_at_address(walk);
    if (!is_number(walk, &recipe->is_signed))
        return false;
    if ((!prototypes_bytes(&walk->type, &bytes) && !is_pointer(walk)) || bytes == 0 || bytes > 8)
        return refuse_type(walk, "not of 1 to 8 bytes");
    bits = walk->bits ? walk->bits : bytes * 8;
    if (walk->bits == 0)
        walk->bit = 0;
    if (walk->is_in_registers) {
        if (!set_field(walk, &within))
            return false;
        walk->bit += (unsigned)within * 8;
        recipe->last_bytes = 8;
    } else {
        if (!add_load(walk))
            return false;
        recipe->last_bytes = (uint8_t)((walk->bit + bits + 7) / 8);
    }
    if (walk->bit + bits > 64)
        return refuse(walk, "this lies across eight bytes");
    recipe->shift_bits = (uint8_t)walk->bit;
    recipe->bits = (uint8_t)bits;
    return true;
}

// ---- what it begins with

static bool begin(struct walk *walk, const struct prototypes_passed *passed, uint8_t first, uint8_t last)
{
    if (passed->where == PROTOTYPES_NOWHERE)
        return refuse(walk, "%s", passed->why);
    walk->is_in_registers = true;
    for (unsigned i = 0; i < 2; i++)
        walk->fields[i] = passed->registers[i] < 0 || passed->registers[i] > last - first
                              ? (int16_t)-1
                              : (int16_t)(first + passed->registers[i]);
    if (passed->where == PROTOTYPES_REGISTERS)
        return true;
    walk->is_in_registers = false;
    walk->recipe->field = first + (uint8_t)passed->registers[0];
    return true;
}

static bool begin_at_argument(struct walk *walk, struct prototypes_function *function, const struct probe_step *step)
{
    walk->why->word_count = 0;
    for (uint32_t i = 0; i < function->count; i++) {
        struct prototypes_parameter *parameter = &function->parameters[i];
        const char *name = names_dw.diename(&parameter->die);
        if (!name)
            continue;
        if (strlen(name) == step->name_length && memcmp(name, step->name, step->name_length) == 0) {
            walk->why->word_count = 0;
            return set_type(walk, &parameter->die) && begin(walk, &parameter->passed, QUT_PROBE_ARG0, QUT_PROBE_ARG5);
        }
        walk->why->words[walk->why->word_count++] = name;
    }
    return refuse(walk, function->count ? "it has no argument of this name" : "it has no arguments");
}

int prototypes_follow(struct prototypes_function *function, const struct probe_path *path, struct probe_recipe *recipe,
                      struct probe_unresolved *why)
{
    struct walk walk = {.why = why, .recipe = recipe};
    uint32_t step = 0;
    bool is_good;
    *recipe = (struct probe_recipe){.load_count = 0};
    if (path->is_result)
        is_good =
            set_type(&walk, &function->die) && begin(&walk, &function->result, QUT_PROBE_RETVAL, QUT_PROBE_RETVAL);
    else
        is_good = begin_at_argument(&walk, function, &path->steps[step++]);
    why->step = 0;
    while (is_good && step < path->count) {
        why->step = step;
        is_good = take_step(&walk, &path->steps[step++]);
    }
    return is_good && follow_references(&walk) && end_at_number(&walk) ? 0 : -1;
}

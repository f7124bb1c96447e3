// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/dwarf_unit.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 256, NO_FUNCTION = UINT32_MAX };

// Siblings stand behind each other in the file: one that does not would lead in circles.
static bool next_sibling(struct names_unit *unit, Dwarf_Die *die)
{
    Dwarf_Die next;
    if (unit->budget == 0 || names_dw.siblingof(die, &next) != 0 ||
        names_dw.dieoffset(&next) <= names_dw.dieoffset(die))
        return false;
    unit->budget--;
    *die = next;
    return true;
}

static bool first_child(struct names_unit *unit, Dwarf_Die *die, Dwarf_Die *child)
{
    if (unit->budget == 0 || names_dw.child(die, child) != 0)
        return false;
    unit->budget--;
    return true;
}

static bool add_function(struct names_unit *unit, Dwarf_Die *die)
{
    size_t before = unit->functions.count;
    if (!names_ranges_add(&unit->functions, die, (uint32_t)unit->function_dies.count, 0))
        return false;
    if (unit->functions.count == before)
        return true;
    Dwarf_Die *place = BASE_ADD(&unit->function_dies);
    if (place)
        *place = *die;
    return place;
}

// What functions are declared in. Functions inside of functions are left out: their bodies are long, and most have
// none.
static bool holds_functions(int tag)
{
    switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_interface_type: return true;
    default: return false;
    }
}

static bool find_functions(struct names_unit *unit, Dwarf_Die *parent, uint32_t scope, unsigned depth)
{
    Dwarf_Die die;
    if (depth > DEPTH_MAX || !first_child(unit, parent, &die))
        return true;
    do {
        int tag = names_dw.tag(&die);
        if (tag == DW_TAG_subprogram) {
            names_scopes_add(&unit->scopes, scope, &die);
            if (!add_function(unit, &die))
                return false;
        } else if (holds_functions(tag) &&
                   !find_functions(unit, &die, names_scopes_enter(&unit->scopes, scope, &die), depth + 1)) {
            return false;
        }
    } while (next_sibling(unit, &die));
    return true;
}

// Each DIE takes a byte at least.
static uint64_t length_of(const Dwarf_Die *die)
{
    Dwarf_Die copy = *die;
    Dwarf_Off offset = names_dw.cuoffset(&copy), start = names_dw.dieoffset(&copy) - offset, next;
    size_t header_bytes;
    bool found = names_dw.next_unit(names_dw.cu_getdwarf(copy.cu), start, &next, &header_bytes, NULL, NULL, NULL, NULL,
                                    NULL, NULL) == 0;
    return found && next > start ? next - start : 1 << 20;
}

bool names_unit_open(struct names_unit *unit, const Dwarf_Die *lines, const Dwarf_Die *die)
{
    *unit = (struct names_unit){.lines = *lines, .die = *die, .function = NO_FUNCTION};
    unit->budget = unit->length_bytes = length_of(die);
    return find_functions(unit, &unit->die, NAMES_SCOPE_NONE, 0) && names_ranges_sort(&unit->functions);
}

void names_unit_close(struct names_unit *unit)
{
    names_ranges_free(&unit->functions);
    names_ranges_free(&unit->blocks);
    names_scopes_free(&unit->scopes);
    base_vector_free(&unit->function_dies.vector);
    base_vector_free(&unit->inlined.vector);
    *unit = (struct names_unit){.function = NO_FUNCTION};
}

static bool add_inlined(struct names_unit *unit, const Dwarf_Die *die, uint32_t parent)
{
    struct names_inlined *inlined = BASE_ADD(&unit->inlined);
    if (inlined)
        *inlined = (struct names_inlined){*die, parent};
    return inlined;
}

static bool find_inlined(struct names_unit *unit, Dwarf_Die *parent_die, uint32_t parent, unsigned depth)
{
    Dwarf_Die die;
    if (depth > DEPTH_MAX || !first_child(unit, parent_die, &die))
        return true;
    do {
        uint32_t own = (uint32_t)unit->inlined.count;
        switch (names_dw.tag(&die)) {
        case DW_TAG_inlined_subroutine:
            if (!add_inlined(unit, &die, parent) || !names_ranges_add(&unit->blocks, &die, own, depth) ||
                !find_inlined(unit, &die, own, depth + 1))
                return false;
            break;
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
        case DW_TAG_with_stmt:
        case DW_TAG_common_block:
            if (!find_inlined(unit, &die, parent, depth + 1))
                return false;
            break;
        default: break;
        }
    } while (next_sibling(unit, &die));
    return true;
}

static bool enter(struct names_unit *unit, uint32_t function)
{
    if (unit->function == function)
        return true;
    unit->function = NO_FUNCTION;
    unit->blocks.count = unit->inlined.count = 0;
    unit->budget = unit->length_bytes;
    Dwarf_Die *die = &unit->function_dies.items[function];
    if (!add_inlined(unit, die, 0) || !find_inlined(unit, die, 0, 0) || !names_ranges_sort(&unit->blocks))
        return false;
    unit->function = function;
    return true;
}

static const char *text_of(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute found;
    const char *text = names_dw.formstring(names_dw.attr_integrate(die, attribute, &found));
    return text && *text ? text : NULL;
}

static const char *name_of(struct names_unit *unit, Dwarf_Die *die)
{
    const char *name = text_of(die, DW_AT_linkage_name);
    name = name ? name : text_of(die, DW_AT_MIPS_linkage_name);
    if (name)
        return name;
    name = text_of(die, DW_AT_name);
    return name ? names_scopes_qualify(&unit->scopes, die, name) : NULL;
}

static bool number_of(Dwarf_Die *die, unsigned attribute, Dwarf_Word *value)
{
    Dwarf_Attribute found;
    return names_dw.formudata(names_dw.attr(die, attribute, &found), value) == 0;
}

// Where the function that one is inlined into calls it.
static void set_call(struct names_unit *unit, Dwarf_Die *die, struct names_inline_function *caller)
{
    Dwarf_Files *files;
    size_t count;
    Dwarf_Word file, line;
    if (number_of(die, DW_AT_call_line, &line) && line <= UINT32_MAX)
        caller->line = (uint32_t)line;
    // File 0 is one from DWARF 5 on. Before, it stands for none, and libdw calls it "???".
    if (number_of(die, DW_AT_call_file, &file) && names_dw.getsrcfiles(&unit->die, &files, &count) == 0 && file < count)
        caller->file = names_dw.filesrc(files, file, NULL, NULL);
    if (caller->file && strcmp(caller->file, "???") == 0)
        caller->file = NULL;
}

static void set_line(struct names_unit *unit, uint64_t vaddr, struct names_inline_function *function)
{
    Dwarf_Line *line = names_dw.getsrc_die(&unit->lines, vaddr);
    int number;
    if (!line)
        return;
    function->file = names_dw.linesrc(line, NULL, NULL);
    if (names_dw.lineno(line, &number) == 0 && number > 0)
        function->line = (uint32_t)number;
}

bool names_unit_function(struct names_unit *unit, uint64_t vaddr, Dwarf_Die *die)
{
    const struct names_range *function = names_ranges_find(&unit->functions, vaddr);
    if (!function || function->start != vaddr)
        return false;
    *die = unit->function_dies.items[function->item];
    return true;
}

bool names_unit_block(struct names_unit *unit, uint64_t vaddr, struct names_block *block)
{
    const struct names_range *function = names_ranges_find(&unit->functions, vaddr);
    if (!function || !enter(unit, function->item))
        return false;
    const struct names_range *inner = names_ranges_find(&unit->blocks, vaddr);
    Dwarf_Die *die = &unit->inlined.items[inner ? inner->item : 0].die;
    Dwarf_Addr entry;
    block->die = names_dw.dieoffset(die);
    block->entry = names_dw.entrypc(die, &entry) == 0 ? entry : 0;
    return true;
}

size_t names_unit_at(struct names_unit *unit, uint64_t vaddr,
                     struct names_inline_function functions[NAMES_INLINE_DEPTH_MAX])
{
    struct names_inline_function place = {0};
    set_line(unit, vaddr, &place);
    const struct names_range *function = names_ranges_find(&unit->functions, vaddr);
    if (!function || !enter(unit, function->item)) {
        functions[0] = place;
        return place.line || place.file ? 1 : 0;
    }
    const struct names_range *block = names_ranges_find(&unit->blocks, vaddr);
    uint32_t at = block ? block->item : 0;
    for (size_t count = 0;; at = unit->inlined.items[at].parent) {
        if (count == NAMES_INLINE_DEPTH_MAX) {
            memmove(functions, functions + 1, --count * sizeof *functions);
        }
        Dwarf_Die *die = &unit->inlined.items[at].die;
        place.name = name_of(unit, die);
        functions[count++] = place;
        if (at == 0)
            return count;
        place = (struct names_inline_function){0};
        set_call(unit, die, &place);
    }
}

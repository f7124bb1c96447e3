// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/dwarf_scopes.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINKS_MAX = 8, DEPTH_MAX = 64, TEXT_MAX = 2048 };

uint32_t names_scopes_enter(struct names_scopes *scopes, uint32_t parent, Dwarf_Die *die)
{
    struct names_scope *scope = scopes->count < UINT32_MAX / 2 ? BASE_ADD(scopes) : NULL;
    if (!scope)
        return NAMES_SCOPE_NONE;
    const char *name = names_dw.diename(die);
    if (!name)
        name = names_dw.tag(die) == DW_TAG_namespace ? "(anonymous namespace)" : "(anonymous class)";
    *scope = (struct names_scope){parent, name};
    return (uint32_t)scopes->count;
}

void names_scopes_add(struct names_scopes *scopes, uint32_t scope, Dwarf_Die *function)
{
    if (scope == NAMES_SCOPE_NONE)
        return;
    struct names_declared *place = BASE_ADD(&scopes->functions);
    if (place)
        *place = (struct names_declared){names_dw.dieoffset(function), scope};
}

static uint32_t scope_of(const struct names_scopes *scopes, Dwarf_Off offset)
{
    size_t low = 0, high = scopes->functions.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (scopes->functions.items[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < scopes->functions.count && scopes->functions.items[low].offset == offset
               ? scopes->functions.items[low].scope
               : NAMES_SCOPE_NONE;
}

// From an inlined copy to the function, from that to its declaration.
static bool follow(Dwarf_Die *die)
{
    static const unsigned links[] = {DW_AT_abstract_origin, DW_AT_specification};
    for (size_t i = 0; i < 2; i++) {
        Dwarf_Attribute attribute;
        Dwarf_Die next;
        if (names_dw.formref_die(names_dw.attr(die, links[i], &attribute), &next)) {
            *die = next;
            return true;
        }
    }
    return false;
}

const char *names_scopes_qualify(struct names_scopes *scopes, Dwarf_Die *die, const char *name)
{
    Dwarf_Die at = *die;
    uint32_t scope = scope_of(scopes, names_dw.dieoffset(&at));
    for (unsigned i = 0; scope == NAMES_SCOPE_NONE && i < LINKS_MAX && follow(&at); i++)
        scope = scope_of(scopes, names_dw.dieoffset(&at));
    const char *parts[DEPTH_MAX];
    size_t count = 0, used = 0;
    if (scope == NAMES_SCOPE_NONE)
        return name;
    for (; scope != NAMES_SCOPE_NONE && count < DEPTH_MAX; scope = scopes->items[scope - 1].parent)
        parts[count++] = scopes->items[scope - 1].name;
    char text[TEXT_MAX];
    while (count-- > 0 && used < sizeof text)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s::", parts[count]);
    if (used < sizeof text)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", name);
    uint32_t made = used < sizeof text ? base_interner_add_part(&scopes->made, text, used) : 0;
    return made ? base_interner_text(&scopes->made, made) : name;
}

void names_scopes_free(struct names_scopes *scopes)
{
    base_vector_free(&scopes->vector);
    base_vector_free(&scopes->functions.vector);
    base_interner_free(&scopes->made);
    *scopes = (struct names_scopes){0};
}

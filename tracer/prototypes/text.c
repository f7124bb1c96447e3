// SPDX-License-Identifier: Apache-2.0
// Types and functions as C declares them: what is around a name is written inside out.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/prototypes/inside.h"

enum { TEXT_BYTES = 512, DEPTH_MAX = 12 };

struct text {
    char characters[TEXT_BYTES];
};

static void write_type(const Dwarf_Die *die, const char *inner, struct text *text, unsigned depth);

static const char *qualifier(int tag)
{
    switch (tag) {
    case DW_TAG_const_type: return "const";
    case DW_TAG_volatile_type: return "volatile";
    case DW_TAG_restrict_type: return "restrict";
    case DW_TAG_atomic_type: return "_Atomic";
    default: return NULL;
    }
}

static const char *kind_of(int tag)
{
    switch (tag) {
    case DW_TAG_structure_type: return "struct ";
    case DW_TAG_class_type: return "class ";
    case DW_TAG_union_type: return "union ";
    case DW_TAG_enumeration_type: return "enum ";
    default: return "";
    }
}

// What is cut is cut: a type of more characters is not read by anybody.
static void join(struct text *text, const char *a, const char *b, const char *c)
{
    size_t used = 0;
    const char *const parts[] = {a, b, c};
    for (unsigned i = 0; i < 3; i++) {
        const size_t length = strlen(parts[i]), room = TEXT_BYTES - 1 - used;
        memcpy(text->characters + used, parts[i], length < room ? length : room);
        used += length < room ? length : room;
    }
    text->characters[used] = 0;
}

// gcc has other words for what clang, and people, call so.
static const char *usual_name(const char *name)
{
    static const char *const pairs[][2] = {{"long int", "long"},
                                           {"long long int", "long long"},
                                           {"long unsigned int", "unsigned long"},
                                           {"long long unsigned int", "unsigned long long"},
                                           {"short int", "short"},
                                           {"short unsigned int", "unsigned short"},
                                           {"_Bool", "bool"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(name, pairs[i][0]) == 0)
            return pairs[i][1];
    return name;
}

static void write_base(Dwarf_Die *die, const char *inner, struct text *text)
{
    struct text name;
    const char *own = names_dw.diename(die);
    join(&name, kind_of(names_dw.tag(die)), own ? usual_name(own) : "{...}", "");
    // "char *x", but "char x"
    join(text, name.characters, *inner ? " " : "", inner);
}

// In front of what is pointed to a star; in parentheses, where that is an array or a function.
static void write_pointer(Dwarf_Die *die, const char *star, const char *inner, struct text *text, unsigned depth)
{
    Dwarf_Die target;
    struct text own, closed;
    join(&own, star, inner, "");
    if (!prototypes_type_of(die, &target)) {
        join(text, "void ", own.characters, "");
        return;
    }
    const int tag = names_dw.tag(&target);
    if (tag == DW_TAG_array_type || tag == DW_TAG_subroutine_type) {
        join(&closed, "(", own.characters, ")");
        own = closed;
    }
    write_type(&target, own.characters, text, depth);
}

static void write_function(Dwarf_Die *die, const char *inner, struct text *text, unsigned depth)
{
    struct text own, list = {""}, one, before;
    Dwarf_Die child, type;
    unsigned count = 0;
    if (names_dw.child(die, &child) == 0)
        do {
            const int tag = names_dw.tag(&child);
            if (tag != DW_TAG_formal_parameter && tag != DW_TAG_unspecified_parameters)
                continue;
            if (tag == DW_TAG_unspecified_parameters)
                join(&one, "...", "", "");
            else
                write_type(prototypes_type_of(&child, &type) ? &type : NULL, "", &one, depth);
            before = list;
            join(&list, before.characters, count ? ", " : "", one.characters);
        } while (++count < DEPTH_MAX && prototypes_next(&child));
    join(&before, "(", list.characters, ")");
    join(&own, inner, before.characters, "");
    write_type(prototypes_type_of(die, &type) ? &type : NULL, own.characters, text, depth);
}

static void write_array(Dwarf_Die *die, const char *inner, struct text *text, unsigned depth)
{
    struct text own, before;
    Dwarf_Die element;
    Dwarf_Word all, behind;
    join(&own, inner, "", "");
    for (unsigned at = 0; at < DEPTH_MAX && prototypes_dimension(die, at, &all); at++) {
        char number[32];
        const bool has_more = prototypes_dimension(die, at + 1, &behind);
        const Dwarf_Word count = has_more ? (behind ? all / behind : 0) : all;
        snprintf(number, sizeof number, count ? "[%llu]" : "[]", (unsigned long long)count);
        before = own;
        join(&own, before.characters, number, "");
    }
    write_type(prototypes_type_of(die, &element) ? &element : NULL, own.characters, text, depth);
}

static void write_qualified(Dwarf_Die *die, const char *word, const char *inner, struct text *text, unsigned depth)
{
    Dwarf_Die type;
    struct text own;
    const bool has_type = prototypes_type_of(die, &type);
    const int tag = has_type ? names_dw.tag(&type) : DW_TAG_invalid;
    if (tag == DW_TAG_pointer_type) { // behind its star
        join(&own, word, *inner ? " " : "", inner);
        write_type(&type, own.characters, text, depth);
        return;
    }
    write_type(has_type ? &type : NULL, inner, &own, depth);
    join(text, word, " ", own.characters);
}

static void write_type(const Dwarf_Die *die, const char *inner, struct text *text, unsigned depth)
{
    Dwarf_Die copy;
    if (!die || depth > DEPTH_MAX) {
        join(text, die ? "..." : "void", *inner ? " " : "", inner);
        return;
    }
    copy = *die;
    prototypes_to_unit(&copy);
    const int tag = names_dw.tag(&copy);
    const char *word = qualifier(tag);
    if (word)
        write_qualified(&copy, word, inner, text, depth + 1);
    else if (tag == DW_TAG_pointer_type)
        write_pointer(&copy, "*", inner, text, depth + 1);
    else if (tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type)
        write_pointer(&copy, tag == DW_TAG_reference_type ? "&" : "&&", inner, text, depth + 1);
    else if (tag == DW_TAG_array_type)
        write_array(&copy, inner, text, depth + 1);
    else if (tag == DW_TAG_subroutine_type)
        write_function(&copy, inner, text, depth + 1);
    else
        write_base(&copy, inner, text);
}

void prototypes_type_text(const Dwarf_Die *type, const char *name, char *text, size_t size)
{
    struct text written;
    write_type(type, name ? name : "", &written, 0);
    snprintf(text, size, "%s", written.characters);
}

char *prototypes_function_text(struct prototypes_function *function, const char *name)
{
    char *shown = NULL, one[TEXT_BYTES];
    size_t size;
    Dwarf_Die type;
    FILE *out = open_memstream(&shown, &size);
    if (!out)
        return NULL;
    const char *own = name ? name : names_dw.diename(&function->die);
    fprintf(out, "%s(", own ? own : "?");
    for (uint32_t i = 0; i < function->count; i++) {
        Dwarf_Die *parameter = &function->parameters[i].die;
        prototypes_type_text(prototypes_type_of(parameter, &type) ? &type : NULL, names_dw.diename(parameter), one,
                             sizeof one);
        fprintf(out, "%s%s", i ? ", " : "", one);
    }
    if (function->has_more || function->is_cut)
        fprintf(out, "%s...", function->count ? ", " : "");
    prototypes_type_text(prototypes_type_of(&function->die, &type) ? &type : NULL, NULL, one, sizeof one);
    fprintf(out, ") -> %s", one);
    if (fclose(out) == 0)
        return shown;
    free(shown);
    return NULL;
}

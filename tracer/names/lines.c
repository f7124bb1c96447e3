// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/lines.h"

#include <string.h>

#include "tracer/names/dwarf_unit.h"

struct candidate {
    uint64_t vaddr;
    struct names_block block;
};

struct finding {
    struct names_inlines *inlines;
    const char *file;
    uint32_t line;
    struct names_lines *lines;
    BASE_VECTOR(struct candidate); // of one unit
};

static bool is_called_so(const char *path, const char *file)
{
    const size_t path_length = path ? strlen(path) : 0, length = strlen(file);
    return path_length >= length && strcmp(path + path_length - length, file) == 0 &&
           (path_length == length || path[path_length - length - 1] == '/');
}

static bool has_file(Dwarf_Die *unit, const char *file)
{
    Dwarf_Files *files;
    size_t count;
    if (names_dw.getsrcfiles(unit, &files, &count) != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (is_called_so(names_dw.filesrc(files, i, NULL, NULL), file))
            return true;
    return false;
}

// A function begins at its entry. What lies before that is a part that is seldom run, which compilers put elsewhere.
static bool is_better(const struct candidate *a, const struct candidate *b)
{
    const bool a_is_behind = a->vaddr >= a->block.entry, b_is_behind = b->vaddr >= b->block.entry;
    return a_is_behind != b_is_behind ? a_is_behind : a->vaddr < b->vaddr;
}

static bool add(struct finding *found, struct names_unit *unit, uint64_t vaddr)
{
    struct candidate candidate = {.vaddr = vaddr};
    const bool is_in_block = names_unit_block(unit, vaddr, &candidate.block);
    for (size_t i = 0; i < found->count; i++) {
        struct candidate *other = &found->items[i];
        const bool is_same = is_in_block ? other->block.die == candidate.block.die : other->vaddr == vaddr;
        if (!is_same)
            continue;
        if (is_better(&candidate, other))
            *other = candidate;
        return true;
    }
    struct candidate *place = BASE_ADD(found);
    if (place)
        *place = candidate;
    return place;
}

static void note_near(struct names_lines *lines, uint32_t wanted, uint32_t line)
{
    if (line < wanted && line > lines->before)
        lines->before = line;
    if (line > wanted && (lines->after == 0 || line < lines->after))
        lines->after = line;
}

static bool look_at_row(struct finding *found, struct names_unit *unit, Dwarf_Line *row)
{
    bool is_end = true, is_statement = false;
    int number;
    Dwarf_Addr vaddr;
    if (names_dw.lineendsequence(row, &is_end) != 0 || is_end || names_dw.linebeginstatement(row, &is_statement) != 0 ||
        !is_statement || names_dw.lineno(row, &number) != 0 || number <= 0 || names_dw.lineaddr(row, &vaddr) != 0 ||
        !is_called_so(names_dw.linesrc(row, NULL, NULL), found->file))
        return true;
    found->lines->has_file = true;
    if ((uint32_t)number == found->line)
        return add(found, unit, vaddr);
    note_near(found->lines, found->line, (uint32_t)number);
    return true;
}

static bool look_at_unit(struct finding *found, uint32_t index)
{
    Dwarf_Die die;
    Dwarf_Lines *rows;
    size_t count;
    if (!names_inlines_unit_die(found->inlines, index, &die) || !has_file(&die, found->file))
        return true;
    struct names_unit *unit = names_inlines_enter(found->inlines, index);
    if (!unit || names_dw.getsrclines(&unit->lines, &rows, &count) != 0)
        return true;
    found->count = 0;
    for (size_t i = 0; i < count; i++)
        if (!look_at_row(found, unit, names_dw.onesrcline(rows, i)))
            return false;
    for (size_t i = 0; i < found->count; i++) {
        uint64_t *vaddr = BASE_ADD(found->lines);
        if (!vaddr)
            return false;
        *vaddr = found->items[i].vaddr;
    }
    return true;
}

bool names_lines_find(struct names_inlines *inlines, const char *file, uint32_t line, struct names_lines *lines)
{
    struct finding found = {.inlines = inlines, .file = file, .line = line, .lines = lines};
    bool has_memory = true;
    for (uint32_t i = 0; has_memory && i < names_inlines_units(inlines); i++)
        has_memory = look_at_unit(&found, i);
    base_vector_free(&found.vector);
    return has_memory;
}

void names_lines_free(struct names_lines *lines)
{
    base_vector_free(&lines->vector);
}

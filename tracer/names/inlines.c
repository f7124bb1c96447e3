// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/inlines.h"

#include <dwarf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "qutc/input/image_store.h"
#include "tracer/names/dwarf_unit.h"

// libdw keeps all that it ever read of a file. After so many bytes of units, about, it is closed and opened again.
static const uint64_t kept_max_bytes = (uint64_t)64 << 20;

struct names_inlines {
    int fd;                  // of the file, or -1:
    struct base_bytes bytes; // it is in these
    Elf *elf;
    Dwarf *dwarf;
    struct names_ranges units;           // items: offsets in unit_offsets
    BASE_VECTOR(Dwarf_Off) unit_offsets; // of the DIE of each
    uint32_t open_unit;                  // NO_UNIT: none
    struct names_unit unit;
    uint64_t kept_bytes;
};

enum { NO_UNIT = UINT32_MAX };

bool names_inlines_built(void)
{
    return true;
}

static void close_dwarf(struct names_inlines *inlines)
{
    names_unit_close(&inlines->unit);
    inlines->open_unit = NO_UNIT;
    inlines->kept_bytes = 0;
    if (inlines->dwarf)
        names_dw.end(inlines->dwarf);
    if (inlines->elf)
        names_dw.elf_end(inlines->elf);
    inlines->dwarf = NULL;
    inlines->elf = NULL;
}

static bool open_dwarf(struct names_inlines *inlines)
{
    if (!names_dw_load())
        return false;
    names_dw.elf_version(EV_CURRENT);
    // elf_memory writes nothing: the bytes are const for us only.
    inlines->elf = inlines->fd >= 0 ? names_dw.elf_begin(inlines->fd, ELF_C_READ_MMAP, NULL)
                                    : names_dw.elf_memory((char *)(uintptr_t)inlines->bytes.data, inlines->bytes.size);
    inlines->dwarf = inlines->elf ? names_dw.begin_elf(inlines->elf, DWARF_C_READ, NULL) : NULL;
    return inlines->dwarf != NULL;
}

static bool add_unit(struct names_inlines *inlines, Dwarf_Die *die)
{
    size_t before = inlines->units.count;
    if (!names_ranges_add(&inlines->units, die, (uint32_t)inlines->unit_offsets.count, 0))
        return false;
    if (inlines->units.count == before)
        return true;
    Dwarf_Off *offset = BASE_ADD(&inlines->unit_offsets);
    if (offset)
        *offset = names_dw.dieoffset(die);
    return offset;
}

// Not by .debug_aranges: clang writes none, and of what linkers merge it is not always complete.
static bool find_units(struct names_inlines *inlines)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    uint8_t type;
    while (names_dw.get_units(inlines->dwarf, unit, &unit, NULL, &type, &die, NULL) == 0)
        if ((type == DW_UT_compile || type == DW_UT_skeleton) && !add_unit(inlines, &die))
            return false;
    return names_ranges_sort(&inlines->units);
}

static bool has_debug_info(const struct input_elf *elf)
{
    const struct input_elf_section *section = input_elf_find(elf, ".debug_info");
    section = section ? section : input_elf_find(elf, ".zdebug_info");
    return section && section->type != SHT_NOBITS && section->size_bytes > 0;
}

// The file that is open already: a path could lead to another one by now.
static int reopen(const struct input_file_map *file)
{
    char path[64];
    if (!file->present || file->offset_bytes != 0)
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

struct names_inlines *names_inlines_open(const struct input_image *image)
{
    const struct input_image_store *store = image->store;
    bool is_own = has_debug_info(&store->elf);
    if (!is_own && !(store->debug_elf.arch == image->arch && has_debug_info(&store->debug_elf)))
        return NULL;
    struct names_inlines *inlines = calloc(1, sizeof *inlines);
    if (!inlines)
        return NULL;
    inlines->open_unit = NO_UNIT;
    inlines->fd = reopen(is_own ? &store->file : &store->debug_file);
    if (inlines->fd < 0 && is_own)
        inlines->bytes = input_image_elf(image);
    if ((inlines->fd >= 0 || inlines->bytes.size) && open_dwarf(inlines) && find_units(inlines))
        return inlines;
    names_inlines_close(inlines);
    return NULL;
}

void names_inlines_close(struct names_inlines *inlines)
{
    if (!inlines)
        return;
    close_dwarf(inlines);
    names_ranges_free(&inlines->units);
    base_vector_free(&inlines->unit_offsets.vector);
    if (inlines->fd >= 0)
        close(inlines->fd);
    free(inlines);
}

uint32_t names_inlines_units(const struct names_inlines *inlines)
{
    return (uint32_t)inlines->unit_offsets.count;
}

bool names_inlines_unit_die(struct names_inlines *inlines, uint32_t unit, Dwarf_Die *die)
{
    return (inlines->dwarf || open_dwarf(inlines)) &&
           names_dw.offdie(inlines->dwarf, inlines->unit_offsets.items[unit], die);
}

static bool enter(struct names_inlines *inlines, uint32_t unit)
{
    if (inlines->open_unit == unit)
        return true;
    names_unit_close(&inlines->unit);
    inlines->open_unit = NO_UNIT;
    if (inlines->kept_bytes > kept_max_bytes)
        close_dwarf(inlines);
    Dwarf_Die lines, die, split;
    if (!names_inlines_unit_die(inlines, unit, &lines))
        return false;
    // Of a skeleton the functions are in a file of their own.
    die = lines;
    uint8_t type;
    if (names_dw.cu_info(lines.cu, NULL, &type, NULL, &split, NULL, NULL, NULL) == 0 && type == DW_UT_skeleton &&
        split.addr)
        die = split;
    if (!names_unit_open(&inlines->unit, &lines, &die))
        return false;
    inlines->kept_bytes += inlines->unit.length_bytes;
    inlines->open_unit = unit;
    return true;
}

struct names_unit *names_inlines_enter(struct names_inlines *inlines, uint32_t unit)
{
    return enter(inlines, unit) ? &inlines->unit : NULL;
}

size_t names_inlines_at(struct names_inlines *inlines, uint64_t vaddr,
                        struct names_inline_function functions[NAMES_INLINE_DEPTH_MAX])
{
    const struct names_range *unit = names_ranges_find(&inlines->units, vaddr);
    return unit && enter(inlines, unit->item) ? names_unit_at(&inlines->unit, vaddr, functions) : 0;
}

bool names_inlines_function(struct names_inlines *inlines, uint64_t vaddr, Dwarf_Die *die)
{
    const struct names_range *unit = names_ranges_find(&inlines->units, vaddr);
    return unit && enter(inlines, unit->item) && names_unit_function(&inlines->unit, vaddr, die);
}

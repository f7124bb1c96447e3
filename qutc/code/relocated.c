// SPDX-License-Identifier: Apache-2.0
// Code whose address the loader is told to make: what tables of functions and global offset tables hold. Labels inside
// of functions are reached by distances; where one is among these, it ends what is taken for a table too early.
#include <stdlib.h>

#include "formats/elf_wide_inline.h"
#include "qutc/code/inside.h"

struct relocations {
    uint64_t vaddr, bytes;
    uint64_t relative_count; // so many are first
    bool has_addend;
};

enum { RELA, REL, CALLS, KINDS }; // CALLS: of the slots that calls go through

struct loading { // what the loader does to the image
    struct relocations of[KINDS];
    bool changes_code;
};

static void read_dynamic(const struct code_follower *f, struct base_bytes dynamic, struct loading *loading)
{
    struct relocations *found = loading->of;
    unsigned word = f->arch->word_bytes;
    struct base_cursor c = base_cursor(dynamic);
    while (base_cursor_left(&c) >= 2 * word) {
        uint64_t tag = base_read_uint(&c, word), value = base_read_uint(&c, word);
        switch (tag) {
        case DT_NULL: return;
        case DT_RELA: found[RELA].vaddr = value; break;
        case DT_RELASZ: found[RELA].bytes = value; break;
        case DT_REL: found[REL].vaddr = value; break;
        case DT_RELSZ: found[REL].bytes = value; break;
        case DT_RELACOUNT: found[RELA].relative_count = value; break;
        case DT_RELCOUNT: found[REL].relative_count = value; break;
        case DT_JMPREL: found[CALLS].vaddr = value; break;
        case DT_PLTRELSZ: found[CALLS].bytes = value; break;
        case DT_PLTREL: found[CALLS].has_addend = value == DT_RELA; break;
        case DT_TEXTREL: loading->changes_code = true; break;
        case DT_FLAGS: loading->changes_code |= value & DF_TEXTREL; break;
        default: break;
        }
    }
}

// False: there is no file to read.
static bool read_segments(const struct code_follower *f, struct loading *loading)
{
    struct base_bytes elf = input_image_elf(f->image);
    bool is_64 = f->image->is_64;
    *loading = (struct loading){.of[RELA].has_addend = true};
    if (elf.size < elf_header_bytes(is_64))
        return false;
    const Elf64_Ehdr header = elf_wide_header(elf.data, is_64);
    struct base_cursor c = base_cursor(elf);
    base_cursor_skip(&c, header.e_phoff);
    for (unsigned i = 0; i < header.e_phnum && base_cursor_left(&c) >= elf_segment_bytes(is_64); i++) {
        const Elf64_Phdr segment = elf_wide_segment(base_read_bytes(&c, elf_segment_bytes(is_64)).data, is_64);
        loading->changes_code |= segment.p_type == PT_LOAD && segment.p_flags & PF_X && segment.p_flags & PF_W;
        if (segment.p_type == PT_DYNAMIC)
            read_dynamic(f, input_image_some(f->image, segment.p_vaddr, segment.p_filesz), loading);
    }
    return true;
}

bool code_stays_as_filed(const struct code_follower *f)
{
    struct loading loading;
    return read_segments(f, &loading) && !loading.changes_code;
}

static uint64_t type_of(const struct code_follower *f, uint64_t info)
{
    return f->image->is_64 ? (uint32_t)info : (uint32_t)info & UINT8_MAX;
}

// The address that is made of the image's own base and a number alone; others are of symbols.
static bool is_relative(const struct code_follower *f, uint64_t info)
{
    return type_of(f, info) == f->code->relative_relocation;
}

// The address of a function, in a word that calls go through.
static bool is_slot(const struct code_follower *f, uint64_t info)
{
    return type_of(f, info) == f->arch->jump_slot_relocation || type_of(f, info) == f->arch->glob_dat_relocation;
}

static bool note(struct code_follower *f, uint64_t vaddr)
{
    if (f->arch->has_thumb)
        vaddr &= ~(uint64_t)1;
    if (vaddr < f->text_start || vaddr - f->text_start >= f->text_size ||
        !code_is_executable(f, (uint32_t)(vaddr - f->text_start)))
        return true;
    uint32_t *place = BASE_ADD(&f->relocated);
    if (place)
        *place = (uint32_t)(vaddr - f->text_start);
    return place;
}

// calls_only: what is relative is not looked at, nor which of the file's own functions are called through slots.
static bool read_all(struct code_follower *f, const struct relocations *of, const struct input_symbol_section *symbols,
                     bool calls_only, bool is_call)
{
    unsigned word = f->arch->word_bytes, bytes = (of->has_addend ? 3 : 2) * word;
    struct base_cursor c = base_cursor(input_image_some(f->image, of->vaddr, of->bytes));
    if (calls_only && of->relative_count <= base_cursor_left(&c) / bytes)
        base_cursor_skip(&c, of->relative_count * bytes);
    while (base_cursor_left(&c) >= bytes) {
        uint64_t at = base_read_uint(&c, word), info = base_read_uint(&c, word), number = 0;
        bool is_number = is_relative(f, info);
        if (of->has_addend) {
            number = base_read_uint(&c, word);
        } else if (is_number && !calls_only) {
            struct base_cursor there = base_cursor(input_image_some(f->image, at, word));
            number = base_read_uint(&there, word);
        }
        uint64_t symbol = f->image->is_64 ? info >> 32 : info >> 8;
        if ((is_number && !calls_only && !note(f, number)) ||
            (is_slot(f, info) && !code_note_slot(f, symbols, symbol, at, is_call && !calls_only)))
            return false;
    }
    return true;
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

bool code_find_relocated(struct code_follower *f, bool calls_only)
{
    struct loading loading;
    if (!read_segments(f, &loading))
        return true;
    struct input_symbol_section symbols = {0};
    input_image_dynamic_symbols(f->image, &symbols);
    for (unsigned i = 0; i < KINDS; i++)
        if (!read_all(f, &loading.of[i], &symbols, calls_only, i == CALLS))
            return false;
    code_sort_slots(f);
    if (f->relocated.count)
        qsort(f->relocated.items, f->relocated.count, sizeof *f->relocated.items, ascending);
    return true;
}

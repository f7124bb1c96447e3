// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/plt_names.h"

#include <stdlib.h>

#include "formats/elf_wide_inline.h"
#include "qutc/input/image_store.h"
#include "tracer/symbols/sort.h"

enum {
    SLOTS_MAX = 1 << 22,
    SECTIONS_MAX = 8, // of relocations; real files have two or three
    NAME_MAX_BYTES = 65535,
};

// Up to the end of the strings, or as long as a name may be: only few are ever asked for.
static struct base_bytes symbol_name(const struct input_image *image, struct base_bytes symbols,
                                     struct base_bytes strings, uint64_t index)
{
    struct base_cursor c = base_cursor(symbols);
    size_t symbol_bytes = elf_symbol_bytes(image->is_64);
    if (index == 0 || index >= symbols.size / symbol_bytes)
        return (struct base_bytes){0};
    base_cursor_seek(&c, index * symbol_bytes);
    uint32_t offset = base_read_u32(&c); // st_name is the first in both
    c = base_cursor(strings);
    base_cursor_seek(&c, offset);
    size_t left = base_cursor_left(&c);
    return base_read_bytes(&c, left < NAME_MAX_BYTES ? left : NAME_MAX_BYTES);
}

static bool add(struct names_plt *plt, const struct names_plt_slot *slot)
{
    struct names_plt_slot *place = plt->count < SLOTS_MAX ? BASE_ADD(plt) : NULL;
    if (place)
        *place = *slot;
    return place;
}

// False: it is no such section.
static bool read_section(struct names_plt *plt, const struct input_image *image,
                         const struct input_elf_section *section)
{
    const struct input_elf *elf = &image->store->elf;
    if ((section->type != SHT_RELA && section->type != SHT_REL) || section->link == 0 ||
        section->link > elf->section_count)
        return false;
    const struct input_elf_section *table = &elf->sections[section->link - 1];
    if (table->type != SHT_DYNSYM || table->link == 0 || table->link > elf->section_count)
        return false;
    struct base_bytes bytes, symbols, strings;
    if (input_elf_section_bytes(elf, section, &bytes, NULL) != 0 ||
        input_elf_section_bytes(elf, table, &symbols, NULL) != 0 ||
        input_elf_section_bytes(elf, &elf->sections[table->link - 1], &strings, NULL) != 0)
        return true;
    unsigned word_bytes = image->is_64 ? 8 : 4;
    struct base_cursor c = base_cursor(bytes);
    while (base_cursor_left(&c) >= 2 * word_bytes) {
        struct names_plt_slot slot = {.vaddr = base_read_uint(&c, word_bytes)};
        uint64_t info = base_read_uint(&c, word_bytes);
        uint32_t type = image->is_64 ? (uint32_t)info : (uint32_t)info & 0xff;
        if (section->type == SHT_RELA)
            base_cursor_skip(&c, word_bytes);
        if (type != image->arch->jump_slot_relocation && type != image->arch->glob_dat_relocation)
            continue;
        slot.name = symbol_name(image, symbols, strings, image->is_64 ? info >> 32 : info >> 8);
        if (slot.name.size && !add(plt, &slot))
            break;
    }
    return true;
}

void names_plt_read(struct names_plt *plt, const struct input_image *image)
{
    const struct input_elf *elf = image ? &image->store->elf : NULL;
    for (size_t i = 0, count = 0; elf && i < elf->section_count && count < SECTIONS_MAX; i++)
        count += read_section(plt, image, &elf->sections[i]);
    if (symbols_sort_by_first_u64(plt->items, plt->count, sizeof *plt->items) != 0)
        plt->count = 0;
}

void names_plt_free(struct names_plt *plt)
{
    base_vector_free(&plt->vector);
}

static uint32_t word_at(const struct input_image *image, uint64_t vaddr)
{
    struct base_cursor c = base_cursor(input_image_some(image, vaddr, 4));
    return base_read_u32(&c);
}

static uint64_t sign_extend(uint64_t value, unsigned bits)
{
    uint64_t sign = (uint64_t)1 << (bits - 1);
    return (value ^ sign) - sign;
}

// [endbr] [bnd] jmp *slot: "ff 25", on i386 in position-independent code "ff a3". In .plt and .plt.sec each 16 bytes,
// in .plt.got each 8 or 16.
static bool slot_x86(const struct input_image *image, uint64_t start, uint64_t vaddr, uint64_t *slot)
{
    static const uint8_t places[] = {8, 0, 1, 4, 5};
    bool is_64 = image->arch->word_bytes == 8;
    uint64_t entry = start + ((vaddr - start) & ~(uint64_t)15);
    struct base_bytes code = input_image_some(image, entry, 16);
    for (size_t i = 0; i < sizeof places; i++) {
        size_t at = places[i];
        if (at + 6 > code.size || code.data[at] != 0xff || (at == 8 && (vaddr - entry < 8 || code.data[0] != 0xff)))
            continue;
        struct base_cursor c = base_cursor(code);
        base_cursor_seek(&c, at + 2);
        uint32_t displacement = base_read_u32(&c);
        if (code.data[at + 1] == 0x25) {
            *slot = is_64 ? entry + at + 6 + sign_extend(displacement, 32) : displacement;
            return true;
        }
        const struct input_elf_section *got = input_elf_find(&image->store->elf, ".got.plt");
        got = got ? got : input_elf_find(&image->store->elf, ".got");
        if (code.data[at + 1] == 0xa3 && !is_64 && got) {
            *slot = (uint32_t)(got->vaddr + displacement);
            return true;
        }
    }
    return false;
}

// adrp x16, page; ldr x17, [x16, #low]
static bool slot_aarch64(const struct input_image *image, uint64_t at, uint64_t *slot)
{
    uint32_t page = word_at(image, at), load = word_at(image, at + 4);
    if ((page & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211)
        return false;
    uint64_t pages = sign_extend((uint64_t)(page >> 5 & 0x7ffff) << 2 | (page >> 29 & 3), 21);
    *slot = (at & ~(uint64_t)4095) + (pages << 12) + (load >> 10 & 0xfff) * 8;
    return true;
}

// auipc t3, high; ld t3, low(t3)
static bool slot_riscv64(const struct input_image *image, uint64_t at, uint64_t *slot)
{
    uint32_t high = word_at(image, at), load = word_at(image, at + 4);
    if ((high & 0xfff) != 0xe17 || (load & 0xfffff) != 0xe3e03)
        return false;
    *slot = at + sign_extend(high & 0xfffff000, 32) + sign_extend(load >> 20, 12);
    return true;
}

static uint32_t arm_immediate(uint32_t instruction)
{
    unsigned rotation = 2 * (instruction >> 8 & 15);
    uint32_t value = instruction & 0xff;
    return rotation ? value >> rotation | value << (32 - rotation) : value;
}

// add ip, pc, #a; add ip, ip, #b, once or twice; ldr pc, [ip, #c]!
static bool slot_arm(const struct input_image *image, uint64_t at, uint64_t *slot)
{
    uint32_t word = word_at(image, at);
    if ((word & 0xfffff000) != 0xe28fc000)
        return false;
    uint32_t sum = (uint32_t)at + 8 + arm_immediate(word);
    for (unsigned i = 1; i <= 3; i++) {
        word = word_at(image, at + 4 * i);
        if ((word & 0xfffff000) == 0xe28cc000) {
            sum += arm_immediate(word);
        } else if ((word & 0xfffff000) == 0xe5bcf000) {
            *slot = sum + (word & 0xfff);
            return true;
        } else {
            return false;
        }
    }
    return false;
}

static bool slot_at(const struct input_image *image, uint64_t at, uint64_t *slot)
{
    switch (image->arch->id) {
    case QUT_ARCH_AARCH64: return slot_aarch64(image, at, slot);
    case QUT_ARCH_RISCV64: return slot_riscv64(image, at, slot);
    case QUT_ARCH_ARM: return slot_arm(image, at, slot);
    default: return false;
    }
}

// Whichever of the entry's instructions the address is in; before what loads the slot there may be a landing pad, or a
// change to Arm code.
static bool slot_of(const struct input_image *image, uint64_t start, uint64_t vaddr, uint64_t *slot)
{
    enum { BTI_C = 0xd503245f, BX_PC = 0x4778, BACK_MAX = 3 };
    if (image->arch->id == QUT_ARCH_X86_64 || image->arch->id == QUT_ARCH_X86)
        return slot_x86(image, start, vaddr, slot);
    uint64_t at = vaddr & ~(uint64_t)3;
    uint32_t word = word_at(image, at);
    if (word == BTI_C || (word & 0xffff) == BX_PC)
        return slot_at(image, at + 4, slot);
    for (unsigned i = 0; i <= BACK_MAX && at - 4 * i >= start && at - 4 * i <= at; i++)
        if (slot_at(image, at - 4 * i, slot))
            return true;
    return false;
}

static const struct input_range *range_of(const struct input_image *image, uint64_t vaddr)
{
    for (unsigned i = 0; image && i < image->plt_count; i++)
        if (vaddr >= image->plt[i].start && vaddr < image->plt[i].end)
            return &image->plt[i];
    return NULL;
}

bool names_plt_is(const struct input_image *image, uint64_t vaddr)
{
    return range_of(image, vaddr) != NULL;
}

struct base_bytes names_plt_find(const struct names_plt *plt, const struct input_image *image, uint64_t vaddr)
{
    const struct input_range *range = range_of(image, vaddr);
    uint64_t slot;
    if (!range || !slot_of(image, range->start, vaddr, &slot))
        return (struct base_bytes){0};
    size_t low = 0, high = plt->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (plt->items[middle].vaddr < slot)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == plt->count || plt->items[low].vaddr != slot)
        return (struct base_bytes){0};
    struct base_bytes name = plt->items[low].name;
    name.size = strnlen((const char *)name.data, name.size);
    return name;
}

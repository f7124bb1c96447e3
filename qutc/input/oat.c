// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/oat.h"

#include <stdlib.h>

#include "formats/elf_wide_inline.h"
#include "qutc/input/image_store.h"
#include "qutc/input/symbol_sections.h"

enum {
    DYNAMIC_SYMBOLS_MAX = 64, // an OAT file has about ten; others' tables are not searched
    MAGIC_BYTES = 8,
    HEADER_FIELDS_AT = 12, // behind magic, version and checksum
    EXECUTABLE_FIELD_MIN = 3,
    EXECUTABLE_FIELD_MAX = 8,
    TRAMPOLINES = 7, // at most, behind the offset of the code
};

static bool next_symbol(struct base_cursor *c, bool is_64, Elf64_Sym *symbol)
{
    if (base_cursor_left(c) < elf_symbol_bytes(is_64))
        return false;
    *symbol = elf_wide_symbol(base_read_bytes(c, elf_symbol_bytes(is_64)).data, is_64);
    return true;
}

static bool is_named(const struct input_symbol_section *section, const Elf64_Sym *symbol, const char *name)
{
    struct base_cursor c = base_cursor(section->names);
    base_cursor_seek(&c, symbol->st_name);
    size_t length = strlen(name) + 1;
    struct base_bytes bytes = base_read_bytes(&c, length);
    return bytes.size == length && memcmp(bytes.data, name, length) == 0;
}

// Three digits and a zero byte.
static uint32_t read_version(const uint8_t *text)
{
    uint32_t version = 0;
    for (unsigned i = 0; i < 3; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        version = version * 10 + text[i] - '0';
    }
    return text[3] == 0 ? version : 0;
}

void input_image_find_oat(struct input_image *image)
{
    struct input_symbol_section section;
    struct input_oat oat = {0};
    Elf64_Sym symbol;
    uint64_t data_bytes = 0;
    for (size_t i = 0; i < image->store->elf.section_count; i++)
        if (image->store->elf.sections[i].type == SHT_DYNSYM &&
            image->store->elf.sections[i].size_bytes > DYNAMIC_SYMBOLS_MAX * sizeof(Elf64_Sym))
            return;
    if (!input_image_dynamic_symbols(image, &section) || section.symbols.size > DYNAMIC_SYMBOLS_MAX * sizeof(Elf64_Sym))
        return;
    struct base_cursor c = base_cursor(section.symbols);
    while (next_symbol(&c, image->is_64, &symbol)) {
        if (is_named(&section, &symbol, "oatdata")) {
            oat.data.start = symbol.st_value;
            data_bytes = symbol.st_size;
        } else if (is_named(&section, &symbol, "oatexec")) {
            oat.code.start = symbol.st_value;
        } else if (is_named(&section, &symbol, "oatlastword")) {
            oat.code.end = symbol.st_value + 4;
        }
    }
    if (!oat.data.start || !oat.code.start || !oat.code.end)
        return;
    oat.present = true;
    c = base_cursor(input_image_some(image, oat.data.start, MAGIC_BYTES));
    struct base_bytes magic = base_read_bytes(&c, MAGIC_BYTES);
    if (magic.size && memcmp(magic.data, "oat\n", 4) == 0)
        oat.version = read_version(magic.data + 4);
    // The data ends where the code begins, at the latest.
    oat.data.end = oat.data.start + data_bytes;
    if (oat.code.start > oat.data.start && (oat.data.end > oat.code.start || oat.data.end <= oat.data.start))
        oat.data.end = oat.code.start;
    if (oat.data.end < oat.data.start)
        oat.data.end = oat.data.start; // its symbol wraps
    if (oat.code.end <= oat.code.start || oat.code.start < oat.data.end)
        oat.code = (struct input_range){0}; // one without code, or a broken one
    image->oat = oat;
}

static struct base_bytes range_bytes(const struct input_image *image, struct input_range range)
{
    if (range.end <= range.start)
        return (struct base_bytes){(const uint8_t *)"", 0};
    return input_image_some(image, range.start, range.end - range.start);
}

struct base_bytes input_oat_data(const struct input_image *image)
{
    return range_bytes(image, image->oat.data);
}

struct base_bytes input_oat_code(const struct input_image *image)
{
    return range_bytes(image, image->oat.code);
}

// The fields before the offset of the code, and with them its place, differ by version; its value is known.
unsigned input_oat_find_trampolines(const struct input_image *image, uint64_t *vaddrs, unsigned max)
{
    struct base_cursor c = base_cursor(input_oat_data(image));
    uint64_t code_at = image->oat.code.start - image->oat.data.start;
    uint64_t thumb = image->arch->has_thumb ? 1 : 0;
    unsigned count = 0, field = EXECUTABLE_FIELD_MIN;
    if (image->oat.code.end == 0)
        return 0;
    base_cursor_seek(&c, HEADER_FIELDS_AT + EXECUTABLE_FIELD_MIN * 4);
    while (field <= EXECUTABLE_FIELD_MAX && base_read_u32(&c) != code_at)
        field++;
    for (unsigned i = 0; field <= EXECUTABLE_FIELD_MAX && i < TRAMPOLINES && count < max; i++) {
        uint64_t vaddr = image->oat.data.start + (base_read_u32(&c) & ~thumb);
        if (vaddr >= image->oat.code.start && vaddr < image->oat.code.end)
            vaddrs[count++] = vaddr;
    }
    return count;
}

int input_oat_add_start(const struct input_image *image, struct input_oat_starts *starts, uint64_t vaddr,
                        uint32_t size_bytes, struct base_error *error)
{
    starts->named++;
    if (image->arch->has_thumb)
        vaddr &= ~UINT64_C(1);
    if (vaddr < image->oat.code.start || vaddr >= image->oat.code.end)
        return 0;
    struct input_oat_start *start = BASE_ADD(starts);
    if (!start)
        return base_fail(error, BASE_ERR_NO_MEMORY, "oatdata", 0, "%zu starts of methods", starts->count);
    *start = (struct input_oat_start){vaddr, size_bytes};
    return 0;
}

int input_oat_add_symbols(const struct input_image *image, const struct input_elf *elf, struct input_oat_starts *starts,
                          struct base_error *error)
{
    for (size_t i = 0; i < elf->section_count; i++) {
        struct base_bytes bytes;
        Elf64_Sym symbol;
        if (elf->sections[i].type != SHT_SYMTAB || input_elf_section_bytes(elf, &elf->sections[i], &bytes, NULL) != 0)
            continue;
        struct base_cursor c = base_cursor(bytes);
        while (next_symbol(&c, image->is_64, &symbol)) {
            if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0 || symbol.st_size > UINT32_MAX)
                continue;
            if (input_oat_add_start(image, starts, symbol.st_value, (uint32_t)symbol.st_size, error) != 0)
                return -1;
        }
        break; // there is one
    }
    return 0;
}

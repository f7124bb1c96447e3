// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/oat.h"

#include <elf.h>
#include <stdlib.h>

#include "qutc/base/array.h"
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

struct symbol {
    uint32_t name;
    uint8_t info;
    uint64_t value, size_bytes;
};

static bool next_symbol(struct qutc_cursor *c, bool is_64, struct symbol *symbol)
{
    if (qutc_cursor_left(c) < (is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym)))
        return false;
    symbol->name = qutc_read_u32(c);
    if (is_64) {
        symbol->info = qutc_read_u8(c);
        qutc_cursor_skip(c, 3);
        symbol->value = qutc_read_u64(c);
        symbol->size_bytes = qutc_read_u64(c);
    } else {
        symbol->value = qutc_read_u32(c);
        symbol->size_bytes = qutc_read_u32(c);
        symbol->info = qutc_read_u8(c);
        qutc_cursor_skip(c, 3);
    }
    return true;
}

static bool is_named(const struct qutc_symbol_section *section, const struct symbol *symbol, const char *name)
{
    struct qutc_cursor c = qutc_cursor(section->names);
    qutc_cursor_seek(&c, symbol->name);
    size_t length = strlen(name) + 1;
    struct qutc_bytes bytes = qutc_read_bytes(&c, length);
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

void qutc_image_find_oat(struct qutc_image *image)
{
    struct qutc_symbol_section section;
    struct qutc_oat oat = {0};
    struct symbol symbol;
    uint64_t data_bytes = 0;
    for (size_t i = 0; i < image->store->elf.section_count; i++)
        if (image->store->elf.sections[i].type == SHT_DYNSYM &&
            image->store->elf.sections[i].size_bytes > DYNAMIC_SYMBOLS_MAX * sizeof(Elf64_Sym))
            return;
    if (!qutc_image_dynamic_symbols(image, &section) || section.symbols.size > DYNAMIC_SYMBOLS_MAX * sizeof(Elf64_Sym))
        return;
    struct qutc_cursor c = qutc_cursor(section.symbols);
    while (next_symbol(&c, image->is_64, &symbol)) {
        if (is_named(&section, &symbol, "oatdata")) {
            oat.data.start = symbol.value;
            data_bytes = symbol.size_bytes;
        } else if (is_named(&section, &symbol, "oatexec")) {
            oat.code.start = symbol.value;
        } else if (is_named(&section, &symbol, "oatlastword")) {
            oat.code.end = symbol.value + 4;
        }
    }
    if (!oat.data.start || !oat.code.start || !oat.code.end)
        return;
    oat.present = true;
    c = qutc_cursor(qutc_image_some(image, oat.data.start, MAGIC_BYTES));
    struct qutc_bytes magic = qutc_read_bytes(&c, MAGIC_BYTES);
    if (magic.size && memcmp(magic.data, "oat\n", 4) == 0)
        oat.version = read_version(magic.data + 4);
    // The data ends where the code begins, at the latest.
    oat.data.end = oat.data.start + data_bytes;
    if (oat.code.start > oat.data.start && (oat.data.end > oat.code.start || oat.data.end <= oat.data.start))
        oat.data.end = oat.code.start;
    if (oat.code.end <= oat.code.start || oat.code.start < oat.data.end)
        oat.code = (struct qutc_range){0}; // one without code, or a broken one
    image->oat = oat;
}

static struct qutc_bytes range_bytes(const struct qutc_image *image, struct qutc_range range)
{
    if (range.end <= range.start)
        return (struct qutc_bytes){(const uint8_t *)"", 0};
    return qutc_image_some(image, range.start, range.end - range.start);
}

struct qutc_bytes qutc_oat_data(const struct qutc_image *image)
{
    return range_bytes(image, image->oat.data);
}

struct qutc_bytes qutc_oat_code(const struct qutc_image *image)
{
    return range_bytes(image, image->oat.code);
}

// The fields before the offset of the code, and with them its place, differ by version; its value is known.
unsigned qutc_oat_find_trampolines(const struct qutc_image *image, uint64_t *vaddrs, unsigned max)
{
    struct qutc_cursor c = qutc_cursor(qutc_oat_data(image));
    uint64_t code_at = image->oat.code.start - image->oat.data.start;
    uint64_t thumb = image->arch->has_thumb ? 1 : 0;
    unsigned count = 0, field = EXECUTABLE_FIELD_MIN;
    if (image->oat.code.end == 0)
        return 0;
    qutc_cursor_seek(&c, HEADER_FIELDS_AT + EXECUTABLE_FIELD_MIN * 4);
    while (field <= EXECUTABLE_FIELD_MAX && qutc_read_u32(&c) != code_at)
        field++;
    for (unsigned i = 0; field <= EXECUTABLE_FIELD_MAX && i < TRAMPOLINES && count < max; i++) {
        uint64_t vaddr = image->oat.data.start + (qutc_read_u32(&c) & ~thumb);
        if (vaddr >= image->oat.code.start && vaddr < image->oat.code.end)
            vaddrs[count++] = vaddr;
    }
    return count;
}

int qutc_oat_add_start(const struct qutc_image *image, struct qutc_oat_starts *starts, uint64_t vaddr,
                       uint32_t size_bytes, struct qutc_error *error)
{
    starts->named++;
    if (image->arch->has_thumb)
        vaddr &= ~UINT64_C(1);
    if (vaddr < image->oat.code.start || vaddr >= image->oat.code.end)
        return 0;
    if (starts->count == starts->capacity) {
        size_t capacity = starts->capacity ? starts->capacity * 2 : 256;
        struct qutc_oat_start *grown = qutc_array_of(starts->starts, capacity, sizeof *grown);
        if (!grown)
            return qutc_fail(error, QUTC_ERR_NO_MEMORY, "oatdata", 0, "%zu starts of methods", capacity);
        starts->starts = grown;
        starts->capacity = capacity;
    }
    starts->starts[starts->count++] = (struct qutc_oat_start){vaddr, size_bytes};
    return 0;
}

static int add_symbols(const struct qutc_image *image, const struct qutc_elf *elf, struct qutc_oat_starts *starts,
                       struct qutc_error *error)
{
    for (size_t i = 0; i < elf->section_count; i++) {
        struct qutc_bytes bytes;
        struct symbol symbol;
        if (elf->sections[i].type != SHT_SYMTAB || qutc_elf_section_bytes(elf, &elf->sections[i], &bytes, NULL) != 0)
            continue;
        struct qutc_cursor c = qutc_cursor(bytes);
        while (next_symbol(&c, image->is_64, &symbol)) {
            if ((symbol.info & 15) != STT_FUNC || symbol.size_bytes == 0 || symbol.size_bytes > UINT32_MAX)
                continue;
            if (qutc_oat_add_start(image, starts, symbol.value, (uint32_t)symbol.size_bytes, error) != 0)
                return -1;
        }
        break; // there is one
    }
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct qutc_oat_start *x = a, *y = b;
    return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

// Newer files have them in order already.
static void sort(struct qutc_oat_starts *starts)
{
    size_t i = 1, kept = 0;
    while (i < starts->count && starts->starts[i - 1].vaddr <= starts->starts[i].vaddr)
        i++;
    if (i < starts->count)
        qsort(starts->starts, starts->count, sizeof *starts->starts, by_place);
    for (i = 0; i < starts->count; i++)
        if (kept == 0 || starts->starts[kept - 1].vaddr != starts->starts[i].vaddr)
            starts->starts[kept++] = starts->starts[i];
    starts->count = kept;
}

int qutc_oat_find_starts(const struct qutc_image *image, enum qutc_oat_naming naming, struct qutc_oat_starts *starts,
                         struct qutc_error *error)
{
    const struct qutc_image_store *store = image->store;
    int result;
    *starts = (struct qutc_oat_starts){0};
    if (naming == QUTC_OAT_BY_TABLES) {
        result = qutc_oat_add_classes(image, starts, error);
    } else {
        result = add_symbols(image, &store->elf, starts, error);
        if (result == 0 && store->debugdata_elf.arch == image->arch)
            result = add_symbols(image, &store->debugdata_elf, starts, error);
    }
    if (result != 0)
        qutc_oat_starts_free(starts);
    sort(starts);
    return result;
}

void qutc_oat_starts_free(struct qutc_oat_starts *starts)
{
    free(starts->starts);
    *starts = (struct qutc_oat_starts){0};
}

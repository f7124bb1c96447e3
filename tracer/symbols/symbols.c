// SPDX-License-Identifier: Apache-2.0
#include "tracer/symbols/symbols.h"

#include <stdlib.h>

#include "formats/elf_wide_inline.h"
#include "qutc/input/elf_file.h"
#include "qutc/input/go_functions.h"
#include "qutc/input/image_store.h"
#include "qutc/input/symbol_sections.h"
#include "tracer/symbols/sort.h"

enum {
    NAME_MAX_BYTES = 65535, // longer names are cut
    LOOK_BACK_MAX = 256,    // symbols that begin between one and an address it contains
};

struct entry {
    uint64_t start;
    uint64_t end;          // start: no size is given
    uint64_t greatest_end; // of this and all earlier ones
    uint32_t name;         // offset in the names of its table
    uint32_t section;      // index in its file, for those without a size
    uint8_t table;
    bool is_local;
    bool is_resolver;
};

struct symbols {
    struct input_image *image;
    struct input_symbol_section tables[INPUT_SYMBOL_SECTIONS_MAX + 1]; // and Go's, of which only the names are there
    unsigned table_count;
    struct entry *entries; // by start, then the best last
    size_t count;
};

typedef bool (*names_fn)(const struct symbols *symbols, unsigned table, const Elf64_Sym *symbol);

static Elf64_Sym read_symbol(const struct symbols *symbols, unsigned table, size_t index)
{
    bool is_64 = symbols->image->is_64;
    return elf_wide_symbol(symbols->tables[table].symbols.data + index * elf_symbol_bytes(is_64), is_64);
}

static const struct input_elf_section *section_of(const struct input_elf *elf, unsigned index)
{
    return index > 0 && index <= elf->section_count ? &elf->sections[index - 1] : NULL;
}

// Functions, and what assembly forgot to call one. "$t", "$x" and the like mark kinds of code on arm, arm64 and
// riscv64.
static bool names_code(const struct symbols *symbols, unsigned table, const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    struct base_bytes names = symbols->tables[table].names;
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_name == 0 || symbol->st_name >= names.size)
        return false;
    if (type == STT_FUNC || type == STT_GNU_IFUNC)
        return true;
    const struct input_elf_section *section = section_of(symbols->tables[table].elf, symbol->st_shndx);
    char first = (char)names.data[symbol->st_name];
    return type == STT_NOTYPE && section && (section->flags & SHF_EXECINSTR) && first != '$' && first != '.';
}

// What has no size is a mark in a section ("__bss_start", "_edata"), not an object.
static bool names_data(const struct symbols *symbols, unsigned table, const Elf64_Sym *symbol)
{
    return symbol->st_shndx != SHN_UNDEF && symbol->st_name != 0 &&
           symbol->st_name < symbols->tables[table].names.size && symbol->st_size &&
           ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT;
}

static size_t symbol_count(const struct symbols *symbols, unsigned table)
{
    return symbols->tables[table].symbols.size / elf_symbol_bytes(symbols->image->is_64);
}

static void add_table(struct symbols *symbols, unsigned table, names_fn is_wanted)
{
    bool has_thumb = is_wanted == names_code && symbols->image->arch->has_thumb;
    for (size_t i = 1; i < symbol_count(symbols, table); i++) {
        Elf64_Sym symbol = read_symbol(symbols, table, i);
        if (!is_wanted(symbols, table, &symbol))
            continue;
        uint64_t start = has_thumb ? symbol.st_value & ~(uint64_t)1 : symbol.st_value;
        const struct input_elf *elf = symbols->tables[table].elf;
        const struct input_elf_section *section = elf->is_relocatable ? section_of(elf, symbol.st_shndx) : NULL;
        start += section ? section->vaddr : 0;
        uint64_t end = start + symbol.st_size;
        symbols->entries[symbols->count++] = (struct entry){
            .start = start,
            .end = end < start ? UINT64_MAX : end,
            .name = symbol.st_name,
            .section = symbol.st_shndx,
            .table = (uint8_t)table,
            .is_local = ELF64_ST_BIND(symbol.st_info) == STB_LOCAL,
            .is_resolver = ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC,
        };
    }
}

bool symbols_has_go_functions(const struct input_image *image)
{
    struct input_go_functions functions;
    return input_go_find(image, &functions);
}

static void add_go(struct symbols *symbols, const struct input_go_functions *functions)
{
    unsigned table = symbols->table_count++;
    symbols->tables[table] =
        (struct input_symbol_section){.elf = &symbols->image->store->elf, .names = functions->names};
    for (uint64_t i = 0; i < functions->count; i++) {
        struct input_go_function function;
        if (input_go_at(functions, i, &function))
            symbols->entries[symbols->count++] = (struct entry){.start = function.start,
                                                                .end = function.end,
                                                                .name = function.name_offset,
                                                                .table = (uint8_t)table,
                                                                .is_local = true};
    }
}

static void set_greatest_ends(struct symbols *symbols)
{
    uint64_t greatest = 0;
    for (size_t i = 0; i < symbols->count; i++) {
        greatest = symbols->entries[i].end > greatest ? symbols->entries[i].end : greatest;
        symbols->entries[i].greatest_end = greatest;
    }
}

static struct symbols *read_wanted(struct input_image *image, uint64_t load_bias, names_fn is_wanted,
                                   struct base_error *error)
{
    struct symbols *symbols = calloc(1, sizeof *symbols);
    if (!symbols) {
        input_image_close(image);
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "symbols");
        return NULL;
    }
    symbols->image = image;
    symbols->table_count = input_image_symbol_sections(image, load_bias, symbols->tables);
    if (input_image_check_memory(image, error) != 0) {
        symbols_free(symbols);
        return NULL;
    }
    size_t most = 0;
    for (unsigned i = 0; i < symbols->table_count; i++)
        most += symbol_count(symbols, i);
    struct input_go_functions go = {.count = 0};
    if (is_wanted != names_code || !input_go_find(image, &go))
        go.count = 0;
    most += go.count;
    symbols->entries = malloc((most + 1) * sizeof *symbols->entries);
    for (unsigned i = 0; i < symbols->table_count && symbols->entries; i++)
        add_table(symbols, i, is_wanted);
    if (go.count && symbols->entries)
        add_go(symbols, &go);
    if (!symbols->entries ||
        symbols_sort_by_first_u64(symbols->entries, symbols->count, sizeof *symbols->entries) != 0) {
        symbols_free(symbols);
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "%zu symbols", most);
        return NULL;
    }
    set_greatest_ends(symbols);
    return symbols;
}

struct symbols *symbols_read(struct input_image *image, uint64_t load_bias, struct base_error *error)
{
    return read_wanted(image, load_bias, names_code, error);
}

struct symbols *symbols_read_data(struct input_image *image, uint64_t load_bias, struct base_error *error)
{
    return read_wanted(image, load_bias, names_data, error);
}

void symbols_free(struct symbols *symbols)
{
    if (!symbols)
        return;
    input_image_close(symbols->image);
    free(symbols->entries);
    free(symbols);
}

const struct input_image *symbols_image(const struct symbols *symbols)
{
    return symbols->image;
}

size_t symbols_count(const struct symbols *symbols)
{
    return symbols->count;
}

// Up to its NUL, the end of its table, or the version that follows an '@'.
static void get_name(const struct symbols *symbols, const struct entry *entry, struct symbol *symbol)
{
    struct base_bytes names = symbols->tables[entry->table].names;
    size_t left = names.size - entry->name;
    symbol->name = (const char *)names.data + entry->name;
    symbol->name_length = strnlen(symbol->name, left < NAME_MAX_BYTES ? left : NAME_MAX_BYTES);
    const char *version = memchr(symbol->name, '@', symbol->name_length);
    if (version && version != symbol->name)
        symbol->name_length = (size_t)(version - symbol->name);
    symbol->start_vaddr = entry->start;
    symbol->end_vaddr = entry->end;
    symbol->has_size = entry->end > entry->start;
    symbol->is_resolver = entry->is_resolver;
    symbol->is_local = entry->is_local;
}

void symbols_at(const struct symbols *symbols, size_t index, struct symbol *symbol)
{
    get_name(symbols, &symbols->entries[index], symbol);
}

static unsigned underscores(const struct symbols *symbols, const struct entry *entry)
{
    struct symbol symbol;
    get_name(symbols, entry, &symbol);
    unsigned count = 0;
    while (count < symbol.name_length && symbol.name[count] == '_')
        count++;
    return count;
}

static bool is_better(const struct symbols *symbols, const struct entry *one, const struct entry *other)
{
    if (one->is_local != other->is_local)
        return other->is_local;
    unsigned own = underscores(symbols, one), others = underscores(symbols, other);
    return own != others ? own < others : one->name < other->name;
}

// How far one without a size reaches.
static uint64_t reach(const struct symbols *symbols, size_t index)
{
    const struct entry *entry = &symbols->entries[index];
    const struct input_elf_section *section = section_of(symbols->tables[entry->table].elf, entry->section);
    uint64_t end = section ? section->vaddr + section->size_bytes : UINT64_MAX;
    for (size_t i = index + 1; i < symbols->count && i <= index + LOOK_BACK_MAX; i++)
        if (symbols->entries[i].start > entry->start)
            return symbols->entries[i].start < end ? symbols->entries[i].start : end;
    return end;
}

static const struct entry *containing(const struct symbols *symbols, size_t before, uint64_t vaddr, bool sized)
{
    const struct entry *best = NULL;
    for (size_t i = before, steps = 0; i-- > 0 && steps < LOOK_BACK_MAX; steps++) {
        const struct entry *entry = &symbols->entries[i];
        if (best && entry->start != best->start)
            break;
        if (sized && entry->greatest_end <= vaddr)
            break;
        if (sized != (entry->end > entry->start) || vaddr >= (sized ? entry->end : reach(symbols, i)))
            continue;
        if (!best || is_better(symbols, entry, best))
            best = entry;
    }
    return best;
}

bool symbols_find(const struct symbols *symbols, uint64_t vaddr, struct symbol *symbol)
{
    size_t low = 0, high = symbols->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (symbols->entries[middle].start <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    const struct entry *entry = containing(symbols, low, vaddr, true);
    if (!entry)
        entry = containing(symbols, low, vaddr, false);
    if (!entry)
        return false;
    get_name(symbols, entry, symbol);
    return true;
}

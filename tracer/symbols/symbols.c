// SPDX-License-Identifier: Apache-2.0
#include "tracer/symbols/symbols.h"

#include <elf.h>
#include <stdlib.h>

#include "qutc/input/elf_file.h"
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
};

struct qut_symbols {
    struct qutc_image *image;
    struct qutc_symbol_section tables[QUTC_SYMBOL_SECTIONS_MAX];
    unsigned table_count;
    struct entry *entries; // by start, then the best last
    size_t count;
};

static Elf64_Sym read_symbol(const struct qut_symbols *symbols, unsigned table, size_t index)
{
    const uint8_t *data = symbols->tables[table].symbols.data;
    Elf64_Sym symbol;
    if (symbols->image->is_64) {
        memcpy(&symbol, data + index * sizeof symbol, sizeof symbol);
        return symbol;
    }
    Elf32_Sym raw;
    memcpy(&raw, data + index * sizeof raw, sizeof raw);
    return (Elf64_Sym){.st_name = raw.st_name,
                       .st_info = raw.st_info,
                       .st_other = raw.st_other,
                       .st_shndx = raw.st_shndx,
                       .st_value = raw.st_value,
                       .st_size = raw.st_size};
}

static const struct qutc_elf_section *section_of(const struct qutc_elf *elf, unsigned index)
{
    return index > 0 && index <= elf->section_count ? &elf->sections[index - 1] : NULL;
}

// Functions, and what assembly forgot to call one. "$t", "$x" and the like mark kinds of code on arm, arm64 and
// riscv64.
static bool names_code(const struct qut_symbols *symbols, unsigned table, const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    struct qutc_bytes names = symbols->tables[table].names;
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_name == 0 || symbol->st_name >= names.size)
        return false;
    if (type == STT_FUNC || type == STT_GNU_IFUNC)
        return true;
    const struct qutc_elf_section *section = section_of(symbols->tables[table].elf, symbol->st_shndx);
    char first = (char)names.data[symbol->st_name];
    return type == STT_NOTYPE && section && (section->flags & SHF_EXECINSTR) && first != '$' && first != '.';
}

static size_t symbol_count(const struct qut_symbols *symbols, unsigned table)
{
    return symbols->tables[table].symbols.size / (symbols->image->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
}

static void add_table(struct qut_symbols *symbols, unsigned table)
{
    bool is_arm = symbols->image->arch->id == QUT_ARCH_ARM;
    for (size_t i = 1; i < symbol_count(symbols, table); i++) {
        Elf64_Sym symbol = read_symbol(symbols, table, i);
        if (!names_code(symbols, table, &symbol))
            continue;
        uint64_t start = is_arm ? symbol.st_value & ~(uint64_t)1 : symbol.st_value;
        const struct qutc_elf *elf = symbols->tables[table].elf;
        const struct qutc_elf_section *section = elf->is_relocatable ? section_of(elf, symbol.st_shndx) : NULL;
        start += section ? section->vaddr : 0;
        uint64_t end = start + symbol.st_size;
        symbols->entries[symbols->count++] = (struct entry){
            .start = start,
            .end = end < start ? UINT64_MAX : end,
            .name = symbol.st_name,
            .section = symbol.st_shndx,
            .table = (uint8_t)table,
            .is_local = ELF64_ST_BIND(symbol.st_info) == STB_LOCAL,
        };
    }
}

static void set_greatest_ends(struct qut_symbols *symbols)
{
    uint64_t greatest = 0;
    for (size_t i = 0; i < symbols->count; i++) {
        greatest = symbols->entries[i].end > greatest ? symbols->entries[i].end : greatest;
        symbols->entries[i].greatest_end = greatest;
    }
}

struct qut_symbols *qut_symbols_read(struct qutc_image *image, uint64_t load_bias, struct qutc_error *error)
{
    struct qut_symbols *symbols = calloc(1, sizeof *symbols);
    if (!symbols) {
        qutc_image_close(image);
        qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "symbols");
        return NULL;
    }
    symbols->image = image;
    symbols->table_count = qutc_image_symbol_sections(image, load_bias, symbols->tables);
    size_t most = 0;
    for (unsigned i = 0; i < symbols->table_count; i++)
        most += symbol_count(symbols, i);
    symbols->entries = malloc((most + 1) * sizeof *symbols->entries);
    for (unsigned i = 0; i < symbols->table_count && symbols->entries; i++)
        add_table(symbols, i);
    if (!symbols->entries || qut_sort_by_first_u64(symbols->entries, symbols->count, sizeof *symbols->entries) != 0) {
        qut_symbols_free(symbols);
        qutc_fail(error, QUTC_ERR_NO_MEMORY, "symbols", 0, "%zu of them", most);
        return NULL;
    }
    set_greatest_ends(symbols);
    return symbols;
}

void qut_symbols_free(struct qut_symbols *symbols)
{
    if (!symbols)
        return;
    qutc_image_close(symbols->image);
    free(symbols->entries);
    free(symbols);
}

size_t qut_symbols_count(const struct qut_symbols *symbols)
{
    return symbols->count;
}

// Up to its NUL, the end of its table, or the version that follows an '@'.
static void get_name(const struct qut_symbols *symbols, const struct entry *entry, struct qut_symbol *symbol)
{
    struct qutc_bytes names = symbols->tables[entry->table].names;
    size_t left = names.size - entry->name;
    symbol->name = (const char *)names.data + entry->name;
    symbol->name_length = strnlen(symbol->name, left < NAME_MAX_BYTES ? left : NAME_MAX_BYTES);
    const char *version = memchr(symbol->name, '@', symbol->name_length);
    if (version && version != symbol->name)
        symbol->name_length = (size_t)(version - symbol->name);
    symbol->start_vaddr = entry->start;
    symbol->has_size = entry->end > entry->start;
}

static unsigned underscores(const struct qut_symbols *symbols, const struct entry *entry)
{
    struct qut_symbol symbol;
    get_name(symbols, entry, &symbol);
    unsigned count = 0;
    while (count < symbol.name_length && symbol.name[count] == '_')
        count++;
    return count;
}

static bool is_better(const struct qut_symbols *symbols, const struct entry *one, const struct entry *other)
{
    if (one->is_local != other->is_local)
        return other->is_local;
    unsigned own = underscores(symbols, one), others = underscores(symbols, other);
    return own != others ? own < others : one->name < other->name;
}

// How far one without a size reaches.
static uint64_t reach(const struct qut_symbols *symbols, size_t index)
{
    const struct entry *entry = &symbols->entries[index];
    const struct qutc_elf_section *section = section_of(symbols->tables[entry->table].elf, entry->section);
    uint64_t end = section ? section->vaddr + section->size_bytes : UINT64_MAX;
    for (size_t i = index + 1; i < symbols->count && i <= index + LOOK_BACK_MAX; i++)
        if (symbols->entries[i].start > entry->start)
            return symbols->entries[i].start < end ? symbols->entries[i].start : end;
    return end;
}

static const struct entry *containing(const struct qut_symbols *symbols, size_t before, uint64_t vaddr, bool sized)
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

bool qut_symbols_find(const struct qut_symbols *symbols, uint64_t vaddr, struct qut_symbol *symbol)
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

// SPDX-License-Identifier: Apache-2.0
// A relocatable ELF file of 64 bits: its sections and symbols, of which everything is looked at once.
#include <stdarg.h>
#include <stdio.h>

#include "tracer/probe/object_inside.h"

enum { SECTIONS_MAX = 4096, SYMBOLS_MAX = 65536 };

bool probe_object_fail(struct probe_object *object, const char *format, ...)
{
    va_list arguments;
    if (object->fault->text[0])
        return false;
    va_start(arguments, format);
    vsnprintf(object->fault->text, sizeof object->fault->text, format, arguments);
    va_end(arguments);
    for (char *at = object->fault->text; *at; at++) // names are the file's
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
    return false;
}

bool probe_object_no_memory(struct probe_object *object)
{
    object->fault->is_no_memory = object->fault->is_no_memory || !object->fault->text[0];
    return probe_object_fail(object, "no memory");
}

bool probe_object_is(const void *bytes, size_t size_bytes)
{
    return size_bytes >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0;
}

struct head { // what of it is needed
    uint64_t sections_at;
    uint16_t section_count, names;
};

static bool read_head(struct probe_object *object, struct head *head)
{
    struct base_cursor c = base_cursor(object->file);
    const struct base_bytes ident = base_read_bytes(&c, EI_NIDENT);
    const uint16_t type = base_read_u16(&c), machine = base_read_u16(&c);
    base_cursor_skip(&c, 4 + 8 + 8); // version, entry, program headers
    head->sections_at = base_read_u64(&c);
    base_cursor_skip(&c, 4 + 2 + 2 + 2); // flags, sizes of headers, and how many
    const uint16_t section_bytes = base_read_u16(&c);
    head->section_count = base_read_u16(&c);
    head->names = base_read_u16(&c);
    if (c.failed)
        return probe_object_fail(object, "cut off: its header is not whole");
    if (ident.data[EI_CLASS] != ELFCLASS64 || ident.data[EI_DATA] != ELFDATA2LSB || machine != EM_BPF)
        return probe_object_fail(object, "no object of \"clang -target bpf\": its machine is another one");
    if (type != ET_REL || section_bytes != sizeof(Elf64_Shdr))
        return probe_object_fail(object, "no object as \"clang -c\" makes it: it was linked, or is of another form");
    return head->section_count > 0 ||
           probe_object_fail(object, "it has no sections, or more than an object of probes may have");
}

// NULL: it does not end within the table.
static const char *text_at(struct base_bytes table, uint64_t at)
{
    struct base_cursor c = base_cursor(table);
    base_cursor_seek(&c, at);
    return base_read_string(&c);
}

static bool read_section(struct probe_object *object, struct base_cursor *c, uint32_t *name)
{
    struct base_cursor file = base_cursor(object->file);
    struct probe_section *section = BASE_ADD(&object->sections);
    if (!section)
        return probe_object_no_memory(object);
    *name = base_read_u32(c);
    section->name = "";
    section->type = base_read_u32(c);
    section->is_code = (base_read_u64(c) & SHF_EXECINSTR) != 0;
    base_cursor_skip(c, 8); // address
    const uint64_t at = base_read_u64(c), size = base_read_u64(c);
    section->link = base_read_u32(c);
    section->info = base_read_u32(c);
    base_cursor_skip(c, 8 + 8); // alignment, size of an entry
    section->bytes = (struct base_bytes){object->file.data, 0};
    if (c->failed)
        return probe_object_fail(object, "cut off: its section headers are not whole");
    if (section->type == SHT_NOBITS || section->type == SHT_NULL)
        return true;
    base_cursor_seek(&file, at);
    section->bytes = base_read_bytes(&file, size);
    return !file.failed || probe_object_fail(object, "cut off: section %zu is not whole", object->sections.count - 1);
}

static bool read_sections(struct probe_object *object, const struct head *head)
{
    uint32_t names[SECTIONS_MAX];
    struct base_cursor c = base_cursor(object->file);
    base_cursor_seek(&c, head->sections_at);
    if (head->section_count > SECTIONS_MAX)
        return probe_object_fail(object, "it has more than %d sections", SECTIONS_MAX);
    for (uint32_t i = 0; i < head->section_count; i++)
        if (!read_section(object, &c, &names[i]))
            return false;
    if (head->names >= object->sections.count)
        return probe_object_fail(object, "damaged: its sections have no names");
    const struct base_bytes table = object->sections.items[head->names].bytes;
    for (uint32_t i = 1; i < head->section_count; i++) {
        const char *name = text_at(table, names[i]);
        if (!name)
            return probe_object_fail(object, "damaged: the name of section %u is not within their table", i);
        object->sections.items[i].name = name;
    }
    return true;
}

static bool read_symbol(struct probe_object *object, struct base_cursor *c, struct base_bytes names)
{
    struct probe_symbol *symbol = BASE_ADD(&object->symbols);
    if (!symbol)
        return probe_object_no_memory(object);
    const uint32_t name = base_read_u32(c);
    symbol->type = base_read_u8(c) & 0x0f;
    base_cursor_skip(c, 1);
    symbol->section = base_read_u16(c);
    symbol->at = base_read_u64(c);
    symbol->size_bytes = base_read_u64(c);
    symbol->name = text_at(names, name);
    return symbol->name || probe_object_fail(object, "damaged: the name of symbol %zu is not within their table",
                                             object->symbols.count - 1);
}

static bool read_symbols(struct probe_object *object)
{
    const struct probe_section *table = NULL;
    for (size_t i = 0; i < object->sections.count; i++)
        if (object->sections.items[i].type == SHT_SYMTAB) {
            if (table)
                return probe_object_fail(object, "damaged: it has two tables of symbols");
            table = &object->sections.items[i];
        }
    if (!table)
        return probe_object_fail(object, "it has no symbols, so nothing says what its functions and maps are");
    const size_t count = table->bytes.size / sizeof(Elf64_Sym);
    if (table->link >= object->sections.count || table->bytes.size % sizeof(Elf64_Sym) || count > SYMBOLS_MAX)
        return probe_object_fail(object, "damaged: its table of symbols is of no form that is known");
    struct base_cursor c = base_cursor(table->bytes);
    for (size_t i = 0; i < count; i++)
        if (!read_symbol(object, &c, object->sections.items[table->link].bytes))
            return false;
    return true;
}

bool probe_object_file(struct probe_object *object)
{
    struct head head;
    return read_head(object, &head) && read_sections(object, &head) && read_symbols(object);
}

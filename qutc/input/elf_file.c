// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/elf_file.h"

#include <stdlib.h>

#include "formats/elf_wide_inline.h"

// Where the header tables are, after checking that they lie in the file.
struct tables {
    Elf64_Ehdr header;
    uint64_t section_count;
    uint64_t segment_count;
    uint32_t name_section;
};

static bool inside(struct base_bytes bytes, uint64_t offset, uint64_t size)
{
    return offset <= bytes.size && size <= bytes.size - offset;
}

void input_elf_need(const struct input_elf *elf, uint64_t offset_bytes, uint64_t size_bytes)
{
    if (elf->source)
        input_file_map_need(elf->source, offset_bytes, size_bytes);
}

void input_elf_need_all(const struct input_elf *elf)
{
    input_elf_need(elf, 0, elf->bytes.size);
}

static int read_header(struct base_bytes bytes, Elf64_Ehdr *header, struct base_error *error)
{
    if (bytes.size < SELFMAG || memcmp(bytes.data, ELFMAG, SELFMAG) != 0)
        return base_fail(error, BASE_ERR_NOT_ELF, "", 0, "no ELF magic");
    if (bytes.size < EI_NIDENT)
        return base_fail(error, BASE_ERR_TRUNCATED, "ELF header", 0, "%zu bytes", bytes.size);
    uint8_t class = bytes.data[EI_CLASS];
    if (class != ELFCLASS32 && class != ELFCLASS64)
        return base_fail(error, BASE_ERR_MALFORMED, "ELF header", EI_CLASS, "class %u", class);
    if (bytes.data[EI_DATA] == ELFDATA2MSB)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "ELF header", EI_DATA, "big-endian");
    if (bytes.data[EI_DATA] != ELFDATA2LSB)
        return base_fail(error, BASE_ERR_MALFORMED, "ELF header", EI_DATA, "byte order %u", bytes.data[EI_DATA]);
    if (bytes.size < elf_header_bytes(class == ELFCLASS64))
        return base_fail(error, BASE_ERR_TRUNCATED, "ELF header", 0, "%zu bytes", bytes.size);
    *header = elf_wide_header(bytes.data, class == ELFCLASS64);
    return 0;
}

static int check_kind(const Elf64_Ehdr *header, bool is_loaded, const struct arch **arch, struct base_error *error)
{
    const char *section = "ELF header";
    if (header->e_type == ET_REL && !is_loaded)
        return base_fail(error, BASE_ERR_UNSUPPORTED, section, 16, "relocatable object: not linked");
    if (header->e_type == ET_CORE)
        return base_fail(error, BASE_ERR_UNSUPPORTED, section, 16, "core dump");
    if (header->e_type != ET_EXEC && header->e_type != ET_DYN && header->e_type != ET_REL)
        return base_fail(error, BASE_ERR_UNSUPPORTED, section, 16, "file type %u", header->e_type);
    *arch = arch_by_elf_machine(header->e_machine);
    if (!*arch)
        return base_fail(error, BASE_ERR_UNSUPPORTED, section, 18, "machine %u", header->e_machine);
    unsigned word_bytes = header->e_ident[EI_CLASS] == ELFCLASS64 ? 8 : 4;
    if ((*arch)->word_bytes != word_bytes)
        return base_fail(error, BASE_ERR_UNSUPPORTED, section, EI_CLASS, "%s code in an ELF file of %u-bit words",
                         (*arch)->name, word_bytes * 8);
    return 0;
}

static Elf64_Shdr read_section(const struct input_elf *elf, const struct tables *tables, uint64_t index)
{
    return elf_wide_section(elf->bytes.data + tables->header.e_shoff + index * tables->header.e_shentsize, elf->is_64);
}

static void find_sections(struct input_elf *elf, struct tables *tables, Elf64_Shdr *first)
{
    struct base_bytes bytes = elf->bytes;
    struct base_error *damage = &elf->damage;
    const Elf64_Ehdr *header = &tables->header;
    uint64_t entry = elf_section_bytes(elf->is_64);
    *first = (Elf64_Shdr){0};
    if (header->e_shoff == 0)
        return;
    if (!inside(bytes, header->e_shoff, entry)) {
        // Writers that strip section headers often leave an offset behind, without a count: that is no damage.
        if (header->e_shnum != 0)
            base_fail(damage, BASE_ERR_TRUNCATED, "section headers", header->e_shoff, "past the end of the file");
        return;
    }
    if (header->e_shentsize != entry) {
        if (header->e_shnum != 0)
            base_fail(damage, BASE_ERR_MALFORMED, "section headers", header->e_shoff, "entries of %u bytes",
                      header->e_shentsize);
        return;
    }
    input_elf_need(elf, header->e_shoff, entry);
    *first = read_section(elf, tables, 0); // it holds what does not fit the ELF header's 16-bit fields
    uint64_t count = header->e_shnum ? header->e_shnum : first->sh_size;
    if (count > (bytes.size - header->e_shoff) / entry) {
        base_fail(damage, BASE_ERR_TRUNCATED, "section headers", header->e_shoff, "%ju of them end past the file's end",
                  (uintmax_t)count);
        return;
    }
    input_elf_need(elf, header->e_shoff, count * entry);
    tables->section_count = count;
    tables->name_section = header->e_shstrndx == SHN_XINDEX ? first->sh_link : header->e_shstrndx;
}

static void find_segments(struct input_elf *elf, struct tables *tables, const Elf64_Shdr *first)
{
    struct base_bytes bytes = elf->bytes;
    struct base_error *damage = &elf->damage;
    const Elf64_Ehdr *header = &tables->header;
    uint64_t entry = elf_segment_bytes(elf->is_64);
    uint64_t count = header->e_phnum == PN_XNUM && tables->section_count ? first->sh_info : header->e_phnum;
    if (header->e_phoff == 0 || count == 0)
        return;
    if (header->e_phentsize != entry)
        base_fail(damage, BASE_ERR_MALFORMED, "program headers", header->e_phoff, "entries of %u bytes",
                  header->e_phentsize);
    else if (header->e_phoff > bytes.size || count > (bytes.size - header->e_phoff) / entry)
        base_fail(damage, BASE_ERR_TRUNCATED, "program headers", header->e_phoff, "%ju of them end past the file's end",
                  (uintmax_t)count);
    else
        tables->segment_count = count;
    input_elf_need(elf, header->e_phoff, tables->segment_count * entry);
}

static const char *section_name(struct base_bytes names, uint32_t offset)
{
    if (offset >= names.size)
        return "";
    const uint8_t *name = names.data + offset;
    size_t left = names.size - offset;
    size_t limit = left < INPUT_SECTION_NAME_MAX + 1 ? left : INPUT_SECTION_NAME_MAX + 1;
    return memchr(name, 0, limit) ? (const char *)name : "";
}

static Elf64_Phdr read_segment(const struct input_elf *elf, const struct tables *tables, uint64_t index)
{
    return elf_wide_segment(elf->bytes.data + tables->header.e_phoff + index * tables->header.e_phentsize, elf->is_64);
}

static struct base_bytes name_table(struct input_elf *elf, const struct tables *tables)
{
    struct base_bytes none = {(const uint8_t *)"", 0};
    if (tables->name_section == 0 || tables->name_section >= tables->section_count)
        return none;
    const Elf64_Shdr header = read_section(elf, tables, tables->name_section);
    if (header.sh_type != SHT_STRTAB || !inside(elf->bytes, header.sh_offset, header.sh_size)) {
        base_fail(&elf->damage, BASE_ERR_MALFORMED, "section names", header.sh_offset,
                  "not a string table in the file");
        return none;
    }
    input_elf_need(elf, header.sh_offset, header.sh_size);
    return (struct base_bytes){elf->bytes.data + header.sh_offset, (size_t)header.sh_size};
}

static void copy_sections(struct input_elf *elf, const struct tables *tables)
{
    struct base_bytes names = name_table(elf, tables);
    for (size_t i = 1; i < tables->section_count; i++) {
        const Elf64_Shdr raw = read_section(elf, tables, i);
        elf->sections[elf->section_count++] = (struct input_elf_section){
            .name = section_name(names, raw.sh_name),
            .type = raw.sh_type,
            .flags = raw.sh_flags,
            .vaddr = raw.sh_addr,
            .offset_bytes = raw.sh_offset,
            .size_bytes = raw.sh_size,
            .alignment = raw.sh_addralign,
            .entry_bytes = raw.sh_entsize,
            .link = raw.sh_link,
        };
    }
}

static void copy_segments(struct input_elf *elf, const struct tables *tables)
{
    for (size_t i = 0; i < tables->segment_count; i++) {
        const Elf64_Phdr raw = read_segment(elf, tables, i);
        elf->segments[elf->segment_count++] = (struct input_elf_segment){
            .type = raw.p_type,
            .flags = raw.p_flags,
            .vaddr = raw.p_vaddr,
            .offset_bytes = raw.p_offset,
            .file_bytes = raw.p_filesz,
            .memory_bytes = raw.p_memsz,
            .alignment = raw.p_align,
        };
    }
}

static int copy_tables(struct input_elf *elf, const struct tables *tables, struct base_error *error)
{
    elf->sections = calloc(tables->section_count + 1, sizeof *elf->sections);
    elf->segments = calloc(tables->segment_count + 1, sizeof *elf->segments);
    if (!elf->sections || !elf->segments)
        return base_fail(error, BASE_ERR_NO_MEMORY, "ELF header", 0, "%ju headers",
                         (uintmax_t)(tables->section_count + tables->segment_count));
    copy_sections(elf, tables);
    copy_segments(elf, tables);
    return 0;
}

// libLLVM's files: .text, .eh_frame and .rodata have addresses, .debug_* have none.
static int forget_unloaded(struct input_elf *elf, struct base_error *error)
{
    size_t loaded = 0;
    for (size_t i = 0; i < elf->section_count; i++) {
        struct input_elf_section *section = &elf->sections[i];
        if (section->vaddr)
            loaded++;
        else if (section->type != SHT_SYMTAB && section->type != SHT_STRTAB)
            section->type = SHT_NULL;
    }
    return loaded ? 0 : base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "relocatable object: no section was loaded");
}

static int read_elf(struct input_elf *elf, bool is_loaded, struct base_error *error)
{
    struct base_bytes bytes = elf->bytes;
    struct tables tables = {0};
    Elf64_Shdr first;
    input_elf_need(elf, 0, sizeof(Elf64_Ehdr));
    if (read_header(bytes, &tables.header, error) || check_kind(&tables.header, is_loaded, &elf->arch, error))
        return -1;
    elf->is_64 = tables.header.e_ident[EI_CLASS] == ELFCLASS64;
    find_sections(elf, &tables, &first);
    find_segments(elf, &tables, &first);
    elf->is_relocatable = tables.header.e_type == ET_REL;
    if (copy_tables(elf, &tables, error) || (elf->is_relocatable && forget_unloaded(elf, error))) {
        input_elf_free(elf);
        return -1;
    }
    return 0;
}

int input_elf_read(struct input_elf *elf, struct base_bytes bytes, struct base_error *error)
{
    *elf = (struct input_elf){.bytes = bytes};
    return read_elf(elf, false, error);
}

int input_elf_read_loaded(struct input_elf *elf, struct base_bytes bytes, struct base_error *error)
{
    *elf = (struct input_elf){.bytes = bytes};
    return read_elf(elf, true, error);
}

int input_elf_read_file(struct input_elf *elf, struct input_file_map *source, struct base_error *error)
{
    *elf = (struct input_elf){.bytes = source->bytes, .source = source};
    return read_elf(elf, false, error);
}

void input_elf_free(struct input_elf *elf)
{
    free(elf->sections);
    free(elf->segments);
    *elf = (struct input_elf){0};
}

bool input_elf_probe(struct base_bytes start, bool *is_elf)
{
    Elf64_Ehdr header = {0};
    const struct arch *arch;
    *is_elf = start.size >= SELFMAG && memcmp(start.data, ELFMAG, SELFMAG) == 0;
    return read_header(start, &header, NULL) == 0 && check_kind(&header, false, &arch, NULL) == 0;
}

const struct input_elf_section *input_elf_find(const struct input_elf *elf, const char *name)
{
    for (size_t i = 0; i < elf->section_count; i++)
        if (elf->sections[i].type != SHT_NULL && strcmp(elf->sections[i].name, name) == 0)
            return &elf->sections[i];
    return NULL;
}

int input_elf_section_bytes(const struct input_elf *elf, const struct input_elf_section *section,
                            struct base_bytes *bytes, struct base_error *error)
{
    *bytes = (struct base_bytes){elf->bytes.data, 0};
    if (section->type == SHT_NOBITS || section->type == SHT_NULL)
        return 0;
    if (!inside(elf->bytes, section->offset_bytes, section->size_bytes))
        return base_fail(error, BASE_ERR_TRUNCATED, section->name, 0,
                         "file offset 0x%jx, size 0x%jx: past the end of the file", (uintmax_t)section->offset_bytes,
                         (uintmax_t)section->size_bytes);
    input_elf_need(elf, section->offset_bytes, section->size_bytes);
    *bytes = (struct base_bytes){elf->bytes.data + section->offset_bytes, (size_t)section->size_bytes};
    return 0;
}

struct base_bytes input_elf_segment_extent(const struct input_elf *elf, const struct input_elf_segment *segment)
{
    if (segment->offset_bytes >= elf->bytes.size)
        return (struct base_bytes){elf->bytes.data, 0};
    uint64_t left = elf->bytes.size - segment->offset_bytes;
    return (struct base_bytes){elf->bytes.data + segment->offset_bytes,
                               (size_t)(segment->file_bytes < left ? segment->file_bytes : left)};
}

struct base_bytes input_elf_segment_bytes(const struct input_elf *elf, const struct input_elf_segment *segment)
{
    struct base_bytes bytes = input_elf_segment_extent(elf, segment);
    input_elf_need(elf, segment->offset_bytes, bytes.size);
    return bytes;
}

// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/elf_file.h"

#include <elf.h>
#include <stdlib.h>

// Where the header tables are, after checking that they lie in the file.
struct tables {
    Elf64_Ehdr header;
    uint64_t section_count;
    uint64_t segment_count;
    uint32_t name_section;
};

static bool inside(struct qutc_bytes bytes, uint64_t offset, uint64_t size)
{
    return offset <= bytes.size && size <= bytes.size - offset;
}

#define COPY_HEADER(CLASS, TO, BYTES)                                                                                  \
    do {                                                                                                               \
        CLASS raw_;                                                                                                    \
        memcpy(&raw_, (BYTES).data, sizeof raw_);                                                                      \
        memcpy((TO)->e_ident, raw_.e_ident, EI_NIDENT);                                                                \
        (TO)->e_type = raw_.e_type;                                                                                    \
        (TO)->e_machine = raw_.e_machine;                                                                              \
        (TO)->e_phoff = raw_.e_phoff;                                                                                  \
        (TO)->e_shoff = raw_.e_shoff;                                                                                  \
        (TO)->e_phentsize = raw_.e_phentsize;                                                                          \
        (TO)->e_phnum = raw_.e_phnum;                                                                                  \
        (TO)->e_shentsize = raw_.e_shentsize;                                                                          \
        (TO)->e_shnum = raw_.e_shnum;                                                                                  \
        (TO)->e_shstrndx = raw_.e_shstrndx;                                                                            \
    } while (0)

void qutc_elf_need(const struct qutc_elf *elf, uint64_t offset_bytes, uint64_t size_bytes)
{
    if (elf->source)
        qutc_file_map_need(elf->source, offset_bytes, size_bytes);
}

void qutc_elf_need_all(const struct qutc_elf *elf)
{
    qutc_elf_need(elf, 0, elf->bytes.size);
}

static int read_header(struct qutc_bytes bytes, Elf64_Ehdr *header, struct qutc_error *error)
{
    if (bytes.size < SELFMAG || memcmp(bytes.data, ELFMAG, SELFMAG) != 0)
        return qutc_fail(error, QUTC_ERR_NOT_ELF, "", 0, "no ELF magic");
    if (bytes.size < EI_NIDENT)
        return qutc_fail(error, QUTC_ERR_TRUNCATED, "ELF header", 0, "%zu bytes", bytes.size);
    uint8_t class = bytes.data[EI_CLASS];
    if (class != ELFCLASS32 && class != ELFCLASS64)
        return qutc_fail(error, QUTC_ERR_MALFORMED, "ELF header", EI_CLASS, "class %u", class);
    if (bytes.data[EI_DATA] == ELFDATA2MSB)
        return qutc_fail(error, QUTC_ERR_UNSUPPORTED, "ELF header", EI_DATA, "big-endian");
    if (bytes.data[EI_DATA] != ELFDATA2LSB)
        return qutc_fail(error, QUTC_ERR_MALFORMED, "ELF header", EI_DATA, "byte order %u", bytes.data[EI_DATA]);
    if (bytes.size < (class == ELFCLASS64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)))
        return qutc_fail(error, QUTC_ERR_TRUNCATED, "ELF header", 0, "%zu bytes", bytes.size);
    if (class == ELFCLASS64)
        COPY_HEADER(Elf64_Ehdr, header, bytes);
    else
        COPY_HEADER(Elf32_Ehdr, header, bytes);
    return 0;
}

static int check_kind(const Elf64_Ehdr *header, bool is_loaded, const struct qut_arch **arch, struct qutc_error *error)
{
    const char *section = "ELF header";
    if (header->e_type == ET_REL && !is_loaded)
        return qutc_fail(error, QUTC_ERR_UNSUPPORTED, section, 16, "relocatable object: not linked");
    if (header->e_type == ET_CORE)
        return qutc_fail(error, QUTC_ERR_UNSUPPORTED, section, 16, "core dump");
    if (header->e_type != ET_EXEC && header->e_type != ET_DYN && header->e_type != ET_REL)
        return qutc_fail(error, QUTC_ERR_UNSUPPORTED, section, 16, "file type %u", header->e_type);
    *arch = qut_arch_by_elf_machine(header->e_machine);
    if (!*arch)
        return qutc_fail(error, QUTC_ERR_UNSUPPORTED, section, 18, "machine %u", header->e_machine);
    unsigned word_bytes = header->e_ident[EI_CLASS] == ELFCLASS64 ? 8 : 4;
    if ((*arch)->word_bytes != word_bytes)
        return qutc_fail(error, QUTC_ERR_UNSUPPORTED, section, EI_CLASS, "%s code in an ELF file of %u-bit words",
                         (*arch)->name, word_bytes * 8);
    return 0;
}

// 32-bit headers have the same fields as 64-bit ones, narrower and in part in another order.
static void read_section(const struct qutc_elf *elf, const struct tables *tables, uint64_t index, Elf64_Shdr *section)
{
    const uint8_t *at = elf->bytes.data + tables->header.e_shoff + index * tables->header.e_shentsize;
    if (elf->is_64) {
        memcpy(section, at, sizeof *section);
        return;
    }
    Elf32_Shdr raw;
    memcpy(&raw, at, sizeof raw);
    *section = (Elf64_Shdr){.sh_name = raw.sh_name,
                            .sh_type = raw.sh_type,
                            .sh_flags = raw.sh_flags,
                            .sh_addr = raw.sh_addr,
                            .sh_offset = raw.sh_offset,
                            .sh_size = raw.sh_size,
                            .sh_link = raw.sh_link,
                            .sh_info = raw.sh_info,
                            .sh_addralign = raw.sh_addralign,
                            .sh_entsize = raw.sh_entsize};
}

static void find_sections(struct qutc_elf *elf, struct tables *tables, Elf64_Shdr *first)
{
    struct qutc_bytes bytes = elf->bytes;
    struct qutc_error *damage = &elf->damage;
    const Elf64_Ehdr *header = &tables->header;
    uint64_t entry = header->e_ident[EI_CLASS] == ELFCLASS64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
    *first = (Elf64_Shdr){0};
    if (header->e_shoff == 0)
        return;
    if (!inside(bytes, header->e_shoff, entry)) {
        // Writers that strip section headers often leave an offset behind, without a count: that is no damage.
        if (header->e_shnum != 0)
            qutc_fail(damage, QUTC_ERR_TRUNCATED, "section headers", header->e_shoff, "past the end of the file");
        return;
    }
    if (header->e_shentsize != entry) {
        if (header->e_shnum != 0)
            qutc_fail(damage, QUTC_ERR_MALFORMED, "section headers", header->e_shoff, "entries of %u bytes",
                      header->e_shentsize);
        return;
    }
    qutc_elf_need(elf, header->e_shoff, entry);
    read_section(elf, tables, 0, first); // it holds what does not fit the ELF header's 16-bit fields
    uint64_t count = header->e_shnum ? header->e_shnum : first->sh_size;
    if (count > (bytes.size - header->e_shoff) / entry) {
        qutc_fail(damage, QUTC_ERR_TRUNCATED, "section headers", header->e_shoff, "%ju of them end past the file's end",
                  (uintmax_t)count);
        return;
    }
    qutc_elf_need(elf, header->e_shoff, count * entry);
    tables->section_count = count;
    tables->name_section = header->e_shstrndx == SHN_XINDEX ? first->sh_link : header->e_shstrndx;
}

static void find_segments(struct qutc_elf *elf, struct tables *tables, const Elf64_Shdr *first)
{
    struct qutc_bytes bytes = elf->bytes;
    struct qutc_error *damage = &elf->damage;
    const Elf64_Ehdr *header = &tables->header;
    uint64_t entry = header->e_ident[EI_CLASS] == ELFCLASS64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    uint64_t count = header->e_phnum == PN_XNUM && tables->section_count ? first->sh_info : header->e_phnum;
    if (header->e_phoff == 0 || count == 0)
        return;
    if (header->e_phentsize != entry)
        qutc_fail(damage, QUTC_ERR_MALFORMED, "program headers", header->e_phoff, "entries of %u bytes",
                  header->e_phentsize);
    else if (header->e_phoff > bytes.size || count > (bytes.size - header->e_phoff) / entry)
        qutc_fail(damage, QUTC_ERR_TRUNCATED, "program headers", header->e_phoff, "%ju of them end past the file's end",
                  (uintmax_t)count);
    else
        tables->segment_count = count;
    qutc_elf_need(elf, header->e_phoff, tables->segment_count * entry);
}

static const char *section_name(struct qutc_bytes names, uint32_t offset)
{
    if (offset >= names.size)
        return "";
    const uint8_t *name = names.data + offset;
    size_t left = names.size - offset;
    size_t limit = left < QUTC_SECTION_NAME_MAX + 1 ? left : QUTC_SECTION_NAME_MAX + 1;
    return memchr(name, 0, limit) ? (const char *)name : "";
}

static void read_segment(const struct qutc_elf *elf, const struct tables *tables, uint64_t index, Elf64_Phdr *segment)
{
    const uint8_t *at = elf->bytes.data + tables->header.e_phoff + index * tables->header.e_phentsize;
    if (elf->is_64) {
        memcpy(segment, at, sizeof *segment);
        return;
    }
    Elf32_Phdr raw;
    memcpy(&raw, at, sizeof raw);
    *segment = (Elf64_Phdr){.p_type = raw.p_type,
                            .p_flags = raw.p_flags,
                            .p_offset = raw.p_offset,
                            .p_vaddr = raw.p_vaddr,
                            .p_filesz = raw.p_filesz,
                            .p_memsz = raw.p_memsz,
                            .p_align = raw.p_align};
}

static struct qutc_bytes name_table(struct qutc_elf *elf, const struct tables *tables)
{
    struct qutc_bytes none = {(const uint8_t *)"", 0};
    Elf64_Shdr header;
    if (tables->name_section == 0 || tables->name_section >= tables->section_count)
        return none;
    read_section(elf, tables, tables->name_section, &header);
    if (header.sh_type != SHT_STRTAB || !inside(elf->bytes, header.sh_offset, header.sh_size)) {
        qutc_fail(&elf->damage, QUTC_ERR_MALFORMED, "section names", header.sh_offset,
                  "not a string table in the file");
        return none;
    }
    qutc_elf_need(elf, header.sh_offset, header.sh_size);
    return (struct qutc_bytes){elf->bytes.data + header.sh_offset, (size_t)header.sh_size};
}

static void copy_sections(struct qutc_elf *elf, const struct tables *tables)
{
    struct qutc_bytes names = name_table(elf, tables);
    for (size_t i = 1; i < tables->section_count; i++) {
        Elf64_Shdr raw;
        read_section(elf, tables, i, &raw);
        elf->sections[elf->section_count++] = (struct qutc_elf_section){
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

static void copy_segments(struct qutc_elf *elf, const struct tables *tables)
{
    for (size_t i = 0; i < tables->segment_count; i++) {
        Elf64_Phdr raw;
        read_segment(elf, tables, i, &raw);
        elf->segments[elf->segment_count++] = (struct qutc_elf_segment){
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

static int copy_tables(struct qutc_elf *elf, const struct tables *tables, struct qutc_error *error)
{
    elf->sections = calloc(tables->section_count + 1, sizeof *elf->sections);
    elf->segments = calloc(tables->segment_count + 1, sizeof *elf->segments);
    if (!elf->sections || !elf->segments)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, "ELF header", 0, "%ju headers",
                         (uintmax_t)(tables->section_count + tables->segment_count));
    copy_sections(elf, tables);
    copy_segments(elf, tables);
    return 0;
}

// libLLVM's files: .text, .eh_frame and .rodata have addresses, .debug_* have none.
static int forget_unloaded(struct qutc_elf *elf, struct qutc_error *error)
{
    size_t loaded = 0;
    for (size_t i = 0; i < elf->section_count; i++) {
        struct qutc_elf_section *section = &elf->sections[i];
        if (section->vaddr)
            loaded++;
        else if (section->type != SHT_SYMTAB && section->type != SHT_STRTAB)
            section->type = SHT_NULL;
    }
    return loaded ? 0 : qutc_fail(error, QUTC_ERR_UNSUPPORTED, "", 0, "relocatable object: no section was loaded");
}

static int read_elf(struct qutc_elf *elf, bool is_loaded, struct qutc_error *error)
{
    struct qutc_bytes bytes = elf->bytes;
    struct tables tables = {0};
    Elf64_Shdr first;
    qutc_elf_need(elf, 0, sizeof(Elf64_Ehdr));
    if (read_header(bytes, &tables.header, error) || check_kind(&tables.header, is_loaded, &elf->arch, error))
        return -1;
    elf->is_64 = tables.header.e_ident[EI_CLASS] == ELFCLASS64;
    find_sections(elf, &tables, &first);
    find_segments(elf, &tables, &first);
    elf->is_relocatable = tables.header.e_type == ET_REL;
    if (copy_tables(elf, &tables, error) || (elf->is_relocatable && forget_unloaded(elf, error))) {
        qutc_elf_free(elf);
        return -1;
    }
    return 0;
}

int qutc_elf_read(struct qutc_elf *elf, struct qutc_bytes bytes, struct qutc_error *error)
{
    *elf = (struct qutc_elf){.bytes = bytes};
    return read_elf(elf, false, error);
}

int qutc_elf_read_loaded(struct qutc_elf *elf, struct qutc_bytes bytes, struct qutc_error *error)
{
    *elf = (struct qutc_elf){.bytes = bytes};
    return read_elf(elf, true, error);
}

int qutc_elf_read_file(struct qutc_elf *elf, struct qutc_file_map *source, struct qutc_error *error)
{
    *elf = (struct qutc_elf){.bytes = source->bytes, .source = source};
    return read_elf(elf, false, error);
}

void qutc_elf_free(struct qutc_elf *elf)
{
    free(elf->sections);
    free(elf->segments);
    *elf = (struct qutc_elf){0};
}

bool qutc_elf_probe(struct qutc_bytes start, bool *is_elf)
{
    Elf64_Ehdr header = {0};
    const struct qut_arch *arch;
    *is_elf = start.size >= SELFMAG && memcmp(start.data, ELFMAG, SELFMAG) == 0;
    return read_header(start, &header, NULL) == 0 && check_kind(&header, false, &arch, NULL) == 0;
}

const struct qutc_elf_section *qutc_elf_find(const struct qutc_elf *elf, const char *name)
{
    for (size_t i = 0; i < elf->section_count; i++)
        if (elf->sections[i].type != SHT_NULL && strcmp(elf->sections[i].name, name) == 0)
            return &elf->sections[i];
    return NULL;
}

int qutc_elf_section_bytes(const struct qutc_elf *elf, const struct qutc_elf_section *section, struct qutc_bytes *bytes,
                           struct qutc_error *error)
{
    *bytes = (struct qutc_bytes){elf->bytes.data, 0};
    if (section->type == SHT_NOBITS || section->type == SHT_NULL)
        return 0;
    if (!inside(elf->bytes, section->offset_bytes, section->size_bytes))
        return qutc_fail(error, QUTC_ERR_TRUNCATED, section->name, 0,
                         "file offset 0x%jx, size 0x%jx: past the end of the file", (uintmax_t)section->offset_bytes,
                         (uintmax_t)section->size_bytes);
    qutc_elf_need(elf, section->offset_bytes, section->size_bytes);
    *bytes = (struct qutc_bytes){elf->bytes.data + section->offset_bytes, (size_t)section->size_bytes};
    return 0;
}

struct qutc_bytes qutc_elf_segment_extent(const struct qutc_elf *elf, const struct qutc_elf_segment *segment)
{
    if (segment->offset_bytes >= elf->bytes.size)
        return (struct qutc_bytes){elf->bytes.data, 0};
    uint64_t left = elf->bytes.size - segment->offset_bytes;
    return (struct qutc_bytes){elf->bytes.data + segment->offset_bytes,
                               (size_t)(segment->file_bytes < left ? segment->file_bytes : left)};
}

struct qutc_bytes qutc_elf_segment_bytes(const struct qutc_elf *elf, const struct qutc_elf_segment *segment)
{
    struct qutc_bytes bytes = qutc_elf_segment_extent(elf, segment);
    qutc_elf_need(elf, segment->offset_bytes, bytes.size);
    return bytes;
}

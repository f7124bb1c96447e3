// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oat_writer.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/oat_samples.h"

enum { TEXT_VADDR = 0x4000, DYNAMIC_VADDR = 0x9000, TEXT_OFFSET = TEXT_VADDR - OAT_DATA_VADDR };

static void put(struct build_buffer *to, uint64_t value, unsigned bytes)
{
    build_add(to, &value, bytes);
}

static void put_uleb(struct build_buffer *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put(to, (value & 0x7f) | 0x80, 1);
    put(to, value, 1);
}

void oat_spec_init(struct oat_spec *spec, const struct arch *arch, uint32_t version)
{
    *spec = (struct oat_spec){.arch = arch, .version = version, .method_count = OAT_CODES};
    for (unsigned i = 0; i < OAT_CODES; i++) {
        const struct oat_sample *sample = oat_sample(arch, i);
        spec->methods[i] = (struct oat_method){.code = i,
                                               .code_bytes = sample->code_bytes,
                                               .body_at = sample->body_at,
                                               .body_end = sample->body_end,
                                               .frame_bytes = sample->frame_bytes,
                                               .core_mask = sample->core_mask};
    }
}

// ---- CodeInfo and method headers

struct bit_writer {
    struct build_buffer *to;
    unsigned used;
};

static void put_bits(struct bit_writer *bits, uint32_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (bits->used++ % 8 == 0)
            put(bits->to, 0, 1);
        bits->to->data[bits->to->size - 1] |= (uint8_t)((value >> i & 1) << ((bits->used - 1) % 8));
    }
}

static unsigned wide_bytes(uint32_t value)
{
    return value <= 11 ? 0 : value <= 0xff ? 1 : value <= 0xffff ? 2 : value <= 0xffffff ? 3 : 4;
}

void oat_put_varints(struct build_buffer *to, bool interleaved, const uint32_t *values, unsigned count)
{
    struct bit_writer bits = {to, 0};
    for (unsigned i = 0; i < count; i++) {
        unsigned wide = wide_bytes(values[i]);
        put_bits(&bits, wide ? 11 + wide : values[i], 4);
        if (!interleaved)
            put_bits(&bits, values[i], wide * 8);
    }
    for (unsigned i = 0; i < count && interleaved; i++)
        put_bits(&bits, values[i], wide_bytes(values[i]) * 8);
}

static bool has_code_info(uint32_t version)
{
    return version >= 156;
}

static unsigned header_bytes(uint32_t version)
{
    return version == 64 ? 28 : version < 124 ? 20 : version < 156 ? 24 : version < 192 ? 8 : 4;
}

static void put_code_info(struct build_buffer *to, uint32_t version, const struct oat_method *m)
{
    uint32_t frame = m->frame_bytes / 16;
    if (version < 173)
        oat_put_varints(to, false, (uint32_t[]){frame, m->core_mask, m->fp_mask, 3}, 4);
    else if (version < 191)
        oat_put_varints(to, true, (uint32_t[]){0, frame, m->core_mask, m->fp_mask, 3, 0}, 6);
    else
        oat_put_varints(to, true, (uint32_t[]){0, m->code_bytes, frame, m->core_mask, m->fp_mask, 3, 0}, 7);
}

static void put_method_header(struct build_buffer *to, uint32_t version, const struct oat_method *m, uint32_t distance)
{
    if (version < 156) {
        for (unsigned i = 0; i < (version == 64 ? 3u : version < 124 ? 1u : 2u); i++)
            put(to, 0x10 * i, 4); // tables of other kinds
        put(to, m->frame_bytes, 4);
        put(to, m->core_mask, 4);
        put(to, m->fp_mask, 4);
        put(to, m->code_bytes, 4);
    } else if (version < 192) {
        put(to, distance, 4);
        put(to, m->code_bytes, 4);
    } else {
        put(to, distance | (version < 238 ? 1u << 30 : version == 238 ? 1u << 31 : 0), 4);
    }
}

// ---- data

// The fields of the header behind the checksum, up to the size of the strings.
static unsigned header_fields(uint32_t version, uint32_t *fields, uint32_t dex_files_at)
{
    unsigned n = 3, trampolines = version < 170 ? 7 : version == 170 ? 5 : version < 190 ? 6 : 7;
    fields[2] = 1; // dex files
    if (version >= 131)
        fields[n++] = dex_files_at;
    if (version >= 225)
        n++;
    if (version >= 265)
        n++;
    fields[n++] = TEXT_OFFSET;
    n += trampolines;
    if (version < 170)
        n += 3;
    fields[n++] = 0; // strings
    return n;
}

static void patch(struct build_buffer *to, size_t at, uint32_t value)
{
    memcpy(to->data + at, &value, sizeof value);
}

static void put_class(struct build_buffer *to, const struct oat_spec *spec, uint32_t version)
{
    uint32_t thumb = spec->arch->has_thumb;
    put(to, 0, 2);
    put(to, 0, 2); // all methods are compiled
    if (version >= 192)
        put(to, spec->method_count, 4);
    for (unsigned i = 0; i < spec->method_count; i++)
        put(to, (uint32_t)(spec->methods[i].vaddr - OAT_DATA_VADDR) | thumb, 4);
}

static void put_data(struct build_buffer *to, const struct oat_spec *spec, uint32_t version, uint32_t *info_vaddrs)
{
    static const char name[] = "/system/framework/App.jar";
    char magic[9];
    uint32_t fields[24] = {0};
    snprintf(magic, sizeof magic, "oat\n%03u", (unsigned)spec->version);
    build_add(to, magic, 8);
    put(to, 0x12345678, 4);
    unsigned count = header_fields(version, fields, 0);
    size_t header_at = build_add(to, fields, count * 4);
    if (spec->no_tables)
        patch(to, header_at + 8, 0);
    size_t offsets_at = build_add(to, NULL, version < 131 ? 0 : 4);
    if (version >= 131) {
        patch(to, offsets_at, (uint32_t)to->size);
        put_class(to, spec, version);
    }
    for (unsigned i = 0; i < spec->method_count && has_code_info(version); i++) {
        info_vaddrs[i] = (uint32_t)(OAT_DATA_VADDR + to->size);
        put_code_info(to, version, &spec->methods[i]);
    }
    size_t dex_file_at = to->size;
    if (version >= 131)
        patch(to, header_at + 12, (uint32_t)dex_file_at);
    else // it follows the strings: everything before counts as such
        patch(to, header_at + (count - 1) * 4, (uint32_t)(dex_file_at - header_at - count * 4));
    put(to, sizeof name - 1, 4);
    build_add(to, name, sizeof name - 1);
    if (version >= 239)
        build_add(to, "dex\n039", 8);
    put(to, 0x55aa55aa, 4);
    if (version >= 239)
        build_add(to, NULL, 20);
    size_t dex_offset_at = build_add(to, NULL, 4);
    if (version == 64) { // class_offsets at once, and the dex file behind
        offsets_at = build_add(to, NULL, 4);
        build_align(to, 4);
        patch(to, dex_offset_at, (uint32_t)to->size);
        size_t dex_at = build_add(to, NULL, 112);
        memcpy(to->data + dex_at, "dex\n035", 8);
        patch(to, dex_at + 96, 1);
        patch(to, offsets_at, (uint32_t)to->size);
        put_class(to, spec, version);
        return;
    }
    size_t class_offsets_field = build_add(to, NULL, 4);
    build_add(to, NULL, 4 * 4); // tables that do not matter here
    build_align(to, 4);
    if (version < 131) {
        offsets_at = build_add(to, NULL, 4);
        patch(to, offsets_at, (uint32_t)to->size);
        put_class(to, spec, version);
    }
    patch(to, class_offsets_field, (uint32_t)offsets_at);
}

// ---- code

static void place_methods(struct oat_spec *spec, uint32_t version)
{
    uint64_t alignment = spec->arch->id == QUT_ARCH_ARM ? 8 : 16, at = TEXT_VADDR;
    for (unsigned i = 0; i < spec->method_count; i++) {
        at = (at + header_bytes(version) + alignment - 1) & ~(alignment - 1);
        spec->methods[i].vaddr = at;
        at += spec->methods[i].code_bytes;
    }
    spec->text_vaddr = TEXT_VADDR;
    spec->text_end = (at + 3) & ~UINT64_C(3);
}

static void put_text(struct build_buffer *to, const struct oat_spec *spec, uint32_t version,
                     const uint32_t *info_vaddrs)
{
    for (unsigned i = 0; i < spec->method_count; i++) {
        const struct oat_method *m = &spec->methods[i];
        build_add(to, NULL, m->vaddr - header_bytes(version) - TEXT_VADDR - to->size);
        if (m->no_header)
            build_add(to, NULL, header_bytes(version));
        else
            put_method_header(to, version, m, (uint32_t)m->vaddr - info_vaddrs[i]);
        build_add(to, oat_sample(spec->arch, m->code)->code, m->code_bytes);
    }
    build_align(to, 4);
}

// ---- frame programs, as ART's are: one CIE with absolute addresses

static unsigned ra_column(const struct arch *arch)
{
    static const uint8_t columns[QUT_ARCH_END] = {[QUT_ARCH_X86_64] = 16,
                                                  [QUT_ARCH_AARCH64] = 30,
                                                  [QUT_ARCH_ARM] = 14,
                                                  [QUT_ARCH_X86] = 8,
                                                  [QUT_ARCH_RISCV64] = 1};
    return columns[arch->id];
}

static void put_program(struct build_buffer *to, const struct arch *arch, const struct oat_method *m)
{
    static const uint8_t x86_64_numbers[] = {0, 2, 1, 3, 7, 6, 4, 5};
    unsigned ra = ra_column(arch), place = 1;
    if (m->code == OAT_LEAF)
        return;
    if (m->body_at) {
        put(to, 2, 1); // advance_loc1
        put(to, m->body_at, 1);
    }
    put(to, 0x0e, 1); // def_cfa_offset
    put_uleb(to, m->frame_bytes);
    for (unsigned i = 32; i-- > 0;) {
        unsigned reg = arch->id == QUT_ARCH_X86_64 && i < 8 ? x86_64_numbers[i] : i;
        if (!(m->core_mask >> i & 1))
            continue;
        put(to, 0x80 | reg, 1); // offset, in units of 4 bytes
        put_uleb(to, (i == ra ? 1 : ++place) * arch->word_bytes / 4);
    }
}

static void put_record(struct build_buffer *to, const struct build_buffer *record, unsigned word_bytes)
{
    size_t padding = (0 - (record->size + 4)) & (word_bytes - 1);
    put(to, record->size + padding, 4);
    build_add(to, record->data, record->size);
    build_add(to, NULL, padding);
    free(record->data);
}

static struct build_buffer make_frames(const struct oat_spec *spec, bool is_eh)
{
    const struct arch *arch = spec->arch;
    struct build_buffer to = {0}, cie = {0};
    put(&cie, is_eh ? 0 : 0xffffffff, 4);
    put(&cie, 1, 1);
    build_add(&cie, "zR", 3);
    put(&cie, 1, 1);
    put(&cie, 0x7c, 1); // -4
    put(&cie, ra_column(arch), 1);
    put(&cie, 1, 1);
    put(&cie, arch->word_bytes == 8 ? 4 : 3, 1);
    put(&cie, 0x0c, 1); // def_cfa
    put(&cie, arch->sp_reg, 1);
    put(&cie, arch->ra_in_register ? 0 : arch->word_bytes, 1);
    if (!arch->ra_in_register) {
        put(&cie, 0x80 | ra_column(arch), 1);
        put(&cie, arch->word_bytes / 4u, 1);
    }
    if (arch->id == QUT_ARCH_X86) {
        put(&cie, 7, 1); // undefined: ebx
        put(&cie, 3, 1);
    }
    put_record(&to, &cie, arch->word_bytes);
    for (unsigned i = 0; i < spec->method_count; i++) {
        struct build_buffer fde = {0};
        put(&fde, is_eh ? to.size + 4 : 0, 4);
        put(&fde, spec->methods[i].vaddr, arch->word_bytes);
        put(&fde, spec->methods[i].code_bytes, arch->word_bytes);
        put(&fde, 0, 1);
        put_program(&fde, arch, &spec->methods[i]);
        put_record(&to, &fde, arch->word_bytes);
    }
    if (is_eh)
        put(&to, 0, 4);
    return to;
}

// ---- the file

static void put_symbol(struct build_buffer *to, bool is_64, uint32_t name, uint64_t value, uint64_t size, uint8_t type)
{
    if (is_64) {
        Elf64_Sym symbol = {name, (uint8_t)(STB_GLOBAL << 4 | type), 0, 1, value, size};
        build_add(to, &symbol, sizeof symbol);
    } else {
        Elf32_Sym symbol = {name, (Elf32_Addr)value, (Elf32_Word)size, (uint8_t)(STB_GLOBAL << 4 | type), 0, 1};
        build_add(to, &symbol, sizeof symbol);
    }
}

static struct build_buffer make_debugdata(const struct oat_spec *spec, const struct build_buffer *frames)
{
    bool is_64 = spec->arch->word_bytes == 8;
    struct build_buffer symbols = {0};
    build_add(&symbols, NULL, is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
    for (unsigned i = 0; i < spec->method_count && !spec->no_symbols; i++)
        put_symbol(&symbols, is_64, 0, spec->methods[i].vaddr | spec->arch->has_thumb, spec->methods[i].code_bytes,
                   STT_FUNC);
    struct build_elf inner = {.is_32 = !is_64,
                              .machine = spec->arch->elf_machine,
                              .sections = {{".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT_VADDR, NULL,
                                            spec->text_end - TEXT_VADDR, 16},
                                           {".symtab", SHT_SYMTAB, 0, 0, symbols.data, symbols.size, 8},
                                           {".debug_frame", SHT_PROGBITS, 0, 0, frames->data, frames->size, 8}}};
    struct build_buffer elf = build_elf(&inner);
    struct build_buffer xz = build_xz(elf.data, elf.size);
    if (spec->spoil_xz)
        spec->spoil_xz(&xz);
    free(symbols.data);
    free(elf.data);
    return xz;
}

static struct build_buffer make_dynamic(const struct oat_spec *spec, size_t data_bytes)
{
    static const char names[] = "\0oatdata\0oatexec\0oatlastword";
    bool is_64 = spec->arch->word_bytes == 8;
    unsigned word = spec->arch->word_bytes;
    struct build_buffer to = {0};
    uint64_t symbols_at = 5 * 2 * word, names_at = symbols_at + 4 * (is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
    uint64_t hash_at = (names_at + sizeof names + 7) & ~UINT64_C(7);
    uint64_t entries[] = {DT_SYMTAB, DYNAMIC_VADDR + symbols_at,
                          DT_STRTAB, DYNAMIC_VADDR + names_at,
                          DT_STRSZ,  sizeof names,
                          DT_HASH,   DYNAMIC_VADDR + hash_at,
                          DT_NULL,   0};
    for (unsigned i = 0; i < 10; i++)
        put(&to, entries[i], word);
    put_symbol(&to, is_64, 0, 0, 0, 0);
    put_symbol(&to, is_64, 1, OAT_DATA_VADDR, data_bytes, STT_OBJECT);
    put_symbol(&to, is_64, 9, TEXT_VADDR, spec->text_end - TEXT_VADDR, STT_OBJECT);
    put_symbol(&to, is_64, 17, spec->text_end - 4, 4, STT_OBJECT);
    build_add(&to, names, sizeof names);
    build_align(&to, 8);
    // .hash: one bucket of four symbols, of which it has the first, and then what follows each.
    const uint32_t hash[] = {1, 4, 1, 0, 2, 3, 0};
    build_add(&to, hash, sizeof hash);
    return to;
}

struct build_buffer oat_write(struct oat_spec *spec)
{
    uint32_t version = spec->format_version ? spec->format_version : spec->version, info_vaddrs[OAT_METHODS_MAX] = {0};
    struct build_buffer data = {0}, text = {0}, frames = {0}, xz = {0};
    place_methods(spec, version);
    put_data(&data, spec, version, info_vaddrs);
    build_align(&data, 16);
    put_text(&text, spec, version, info_vaddrs);
    struct build_buffer dynamic = make_dynamic(spec, data.size);
    struct build_elf elf = {
        .is_32 = spec->arch->word_bytes == 4,
        .machine = spec->arch->elf_machine,
        .no_section_headers = spec->no_section_headers,
        .sections = {{".rodata", SHT_PROGBITS, SHF_ALLOC, OAT_DATA_VADDR, data.data, data.size, 16},
                     {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT_VADDR, text.data, text.size, 16},
                     {".dynamic", SHT_DYNAMIC, SHF_ALLOC, DYNAMIC_VADDR, dynamic.data, dynamic.size, 16}},
        .segments = {{PT_LOAD, PF_R, ".rodata", 0},
                     {PT_LOAD, PF_R | PF_X, ".text", 0},
                     {PT_LOAD, PF_R, ".dynamic", 0},
                     {PT_DYNAMIC, PF_R, ".dynamic", 0}}};
    struct build_section *extra = &elf.sections[3];
    if (spec->frames != OAT_NO_FRAMES)
        frames = make_frames(spec, spec->frames == OAT_EH_FRAME);
    if (spec->frames == OAT_DEBUG_FRAME) {
        *extra = (struct build_section){".debug_frame", SHT_PROGBITS, 0, 0, frames.data, frames.size, 8};
    } else if (spec->frames == OAT_EH_FRAME) {
        *extra = (struct build_section){".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0xa000, frames.data, frames.size, 8};
        elf.segments[4] = (struct build_segment){PT_LOAD, PF_R, ".eh_frame", 0};
    } else if (spec->frames == OAT_XZ) {
        xz = make_debugdata(spec, &frames);
        *extra = (struct build_section){".gnu_debugdata", SHT_PROGBITS, 0, 0, xz.data, xz.size, 1};
    }
    struct build_buffer file = build_elf(&elf);
    spec->data_bytes = data.size;
    spec->data_offset = (size_t)((uint8_t *)memmem(file.data, file.size, data.data, data.size) - file.data);
    spec->text_offset = (size_t)((uint8_t *)memmem(file.data, file.size, text.data, text.size) - file.data);
    free(data.data);
    free(text.data);
    free(frames.data);
    free(xz.data);
    free(dynamic.data);
    return file;
}

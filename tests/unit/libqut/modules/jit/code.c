// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/libqut/modules/jit/code.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libqut/arch/native.h"

uint8_t *code_buffer;

int code_start(void)
{
    void *pages = mmap(NULL, (size_t)CODE_SLOTS * CODE_SLOT_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    code_buffer = pages == MAP_FAILED ? NULL : pages;
    return code_buffer != NULL;
}

struct code_method code_emit(unsigned slot, unsigned size)
{
    uint8_t *code = code_buffer + (size_t)slot * CODE_SLOT_BYTES;
    uint32_t frame_bytes = MACHINE_FRAME_BYTES + size % MACHINE_FRAME_STEPS * MACHINE_FRAME_STEP_BYTES;
    machine_emit(code, frame_bytes);
    __builtin___clear_cache((char *)code, (char *)code + CODE_SLOT_BYTES);
    return (struct code_method){.address = (uintptr_t)code, .frame_bytes = frame_bytes};
}

// ---- symbol files

struct out {
    uint8_t *bytes;
    size_t size;
};

static void put(struct out *out, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out->bytes[out->size++] = (uint8_t)(value >> 8 * i);
}

static void put_uleb(struct out *out, uint32_t value)
{
    for (; value >= 0x80; value >>= 7)
        put(out, value | 0x80, 1);
    put(out, value, 1);
}

// Closes what begins with its own length in 4 bytes.
static void end_record(struct out *out, size_t start, size_t align)
{
    while ((out->size - start) % align)
        put(out, 0 /* DW_CFA_nop */, 1);
    struct out length = {out->bytes, start};
    put(&length, out->size - start - 4, 4);
}

enum {
    CFA_ADVANCE_LOC1 = 2,
    CFA_OFFSET_EXTENDED = 5,
    CFA_RESTORE_EXTENDED = 6,
    CFA_DEF_CFA = 12,
    CFA_DEF_CFA_OFFSET = 14,
    WORD = sizeof(uintptr_t),
};

static uint32_t outer_bytes(void)
{
    return arch_native_arch.ra_in_register ? 0 : WORD;
}

static void put_cie(struct out *out)
{
    size_t start = out->size;
    put(out, 0, 4);
    put(out, UINT32_MAX, 4);
    put(out, 1, 1);        // version
    put(out, 0x00527a, 3); // "zR"
    put(out, 1, 1);        // code alignment
    put(out, (uint64_t)-WORD & 0x7f, 1);
    put(out, arch_native_arch.ra_reg, 1);
    put(out, 1, 1);
    put(out, WORD == 8 ? 4 : 3, 1); // how addresses are written
    put(out, CFA_DEF_CFA, 1);
    put_uleb(out, arch_native_arch.sp_reg);
    put_uleb(out, outer_bytes());
    if (!arch_native_arch.ra_in_register) {
        put(out, CFA_OFFSET_EXTENDED, 1);
        put_uleb(out, arch_native_arch.ra_reg);
        put_uleb(out, 1);
    }
    end_record(out, start, WORD);
}

static void put_fde(struct out *out, const struct code_method *method)
{
    size_t start = out->size;
    put(out, 0, 4);
    put(out, 0, 4); // the only CIE
    put(out, method->address, WORD);
    put(out, MACHINE_BYTES, WORD);
    put(out, 0, 1);
    put(out, CFA_ADVANCE_LOC1, 1);
    put(out, MACHINE_ENTER, 1);
    put(out, CFA_DEF_CFA_OFFSET, 1);
    put_uleb(out, method->frame_bytes + outer_bytes());
    if (arch_native_arch.ra_in_register) {
        put(out, CFA_ADVANCE_LOC1, 1);
        put(out, MACHINE_SAVED - MACHINE_ENTER, 1);
        put(out, CFA_OFFSET_EXTENDED, 1);
        put_uleb(out, arch_native_arch.ra_reg);
        put_uleb(out, 1);
        put(out, CFA_ADVANCE_LOC1, 1);
        put(out, MACHINE_RESTORED - MACHINE_SAVED, 1);
        put(out, CFA_RESTORE_EXTENDED, 1);
        put_uleb(out, arch_native_arch.ra_reg);
    }
    put(out, CFA_ADVANCE_LOC1, 1);
    put(out, MACHINE_LEAVE - (arch_native_arch.ra_in_register ? MACHINE_RESTORED : MACHINE_ENTER), 1);
    put(out, CFA_DEF_CFA_OFFSET, 1);
    put_uleb(out, outer_bytes());
    end_record(out, start, WORD);
}

static const char section_names[] = "\0.text\0.debug_frame\0.shstrtab\0.gnu_debugdata";
enum { NAME_TEXT = 1, NAME_FRAME = 7, NAME_NAMES = 20, NAME_DEBUGDATA = 30, SECTIONS = 4 };

struct extent {
    uint64_t start, end;
};

static struct extent extent_of(const struct code_method *methods, unsigned count)
{
    struct extent extent = {UINT64_MAX, 0};
    for (unsigned i = 0; i < count; i++) {
        uint64_t start = methods[i].address, end = start + MACHINE_BYTES;
        extent.start = start < extent.start ? start : extent.start;
        extent.end = end > extent.end ? end : extent.end;
    }
    return extent;
}

// All that stands around a section whose content ends what was put so far.
static size_t finish(struct out *out, struct extent extent, uint32_t name, size_t content_start)
{
    size_t names_start = out->size;
    memcpy(out->bytes + out->size, section_names, sizeof section_names);
    size_t headers_start = (out->size + sizeof section_names + 7) & ~(size_t)7;
    ElfW(Shdr) headers[SECTIONS] = {
        {0},
        {.sh_name = NAME_TEXT,
         .sh_type = SHT_NOBITS,
         .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
         .sh_addr = (uintptr_t)extent.start,
         .sh_size = (uintptr_t)(extent.end - extent.start),
         .sh_addralign = 4},
        {.sh_name = name,
         .sh_type = SHT_PROGBITS,
         .sh_offset = content_start,
         .sh_size = names_start - content_start,
         .sh_addralign = 1},
        {.sh_name = NAME_NAMES,
         .sh_type = SHT_STRTAB,
         .sh_offset = names_start,
         .sh_size = sizeof section_names,
         .sh_addralign = 1},
    };
    memcpy(out->bytes + headers_start, headers, sizeof headers);
    ElfW(Ehdr) header = {.e_ident = {0x7f, 'E', 'L', 'F', WORD == 8 ? ELFCLASS64 : ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
                         .e_type = ET_DYN,
                         .e_machine = arch_native_arch.elf_machine,
                         .e_version = EV_CURRENT,
                         .e_shoff = headers_start,
                         .e_ehsize = sizeof header,
                         .e_shentsize = sizeof *headers,
                         .e_shnum = SECTIONS,
                         .e_shstrndx = SECTIONS - 1};
    memcpy(out->bytes, &header, sizeof header);
    return headers_start + sizeof headers;
}

size_t code_symfile(const struct code_method *methods, unsigned count, uint8_t *bytes)
{
    struct out out = {bytes, sizeof(ElfW(Ehdr))};
    put(&out, count, 8); // and the methods: for code_compile
    for (unsigned i = 0; i < count; i++) {
        put(&out, methods[i].address, 8);
        put(&out, methods[i].frame_bytes, 8);
    }
    size_t frame_start = out.size;
    put_cie(&out);
    for (unsigned i = 0; i < count; i++)
        put_fde(&out, &methods[i]);
    return finish(&out, extent_of(methods, count), NAME_FRAME, frame_start);
}

size_t code_packed_symfile(const struct code_method *methods, unsigned count, const uint8_t *packed, size_t packed_size,
                           uint8_t *bytes)
{
    struct out out = {bytes, sizeof(ElfW(Ehdr)) + packed_size};
    memcpy(bytes + sizeof(ElfW(Ehdr)), packed, packed_size);
    return finish(&out, extent_of(methods, count), NAME_DEBUGDATA, sizeof(ElfW(Ehdr)));
}

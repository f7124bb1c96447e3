// SPDX-License-Identifier: Apache-2.0
#include "tests/support/frame_asm.h"

#include <stdlib.h>

struct frame_asm frame_asm(const struct arch *arch, enum input_frame_kind kind)
{
    return (struct frame_asm){.arch = arch, .kind = kind, .text_size = 0x400};
}

void frame_free(struct frame_asm *a)
{
    free(a->bytes.data);
    a->bytes = (struct build_buffer){0};
}

void frame_put(struct build_buffer *buffer, uint64_t value, size_t size)
{
    build_add(buffer, &value, size);
}

void frame_put_uleb(struct build_buffer *buffer, uint64_t value)
{
    do {
        uint8_t byte = value & 0x7f;
        value >>= 7;
        frame_put(buffer, byte | (value ? 0x80u : 0u), 1);
    } while (value);
}

void frame_put_sleb(struct build_buffer *buffer, int64_t value)
{
    for (;;) {
        uint8_t byte = (uint8_t)value & 0x7f;
        value >>= 7;
        bool last = value == (byte & 0x40 ? -1 : 0);
        frame_put(buffer, byte | (last ? 0u : 0x80u), 1);
        if (last)
            return;
    }
}

// The length field, to be set when the record is complete.
static size_t begin_record(struct frame_asm *a, bool dwarf64)
{
    size_t at = a->bytes.size;
    if (dwarf64)
        frame_put(&a->bytes, UINT32_MAX, 4);
    frame_put(&a->bytes, 0, dwarf64 ? 8 : 4);
    return at;
}

static void end_record(struct frame_asm *a, size_t at, bool dwarf64)
{
    size_t field = at + (dwarf64 ? 4 : 0), field_bytes = dwarf64 ? 8 : 4;
    uint64_t length = a->bytes.size - field - field_bytes;
    memcpy(a->bytes.data + field, &length, field_bytes);
}

static size_t id_bytes(const struct frame_asm *a, bool dwarf64)
{
    return dwarf64 && a->kind == INPUT_FRAME_DEBUG ? 8 : 4;
}

static const char *augmentation_of(const struct frame_asm *a, const struct frame_cie *cie)
{
    if (cie->augmentation)
        return cie->augmentation;
    return a->kind == INPUT_FRAME_EH ? "zR" : "";
}

// cfa = sp, and on architectures that push the return address: cfa = sp + word, ra at cfa - word.
static void put_entry_state(struct frame_asm *a)
{
    bool pushed = !a->arch->ra_in_register;
    frame_put(&a->bytes, CFA_DEF_CFA, 1);
    frame_put_uleb(&a->bytes, a->arch->sp_reg);
    frame_put_uleb(&a->bytes, pushed ? a->arch->word_bytes : 0);
    if (pushed) {
        frame_put(&a->bytes, CFA_OFFSET | a->arch->ra_reg, 1);
        frame_put_uleb(&a->bytes, 1);
    }
}

size_t frame_add_cie(struct frame_asm *a, struct frame_cie *cie)
{
    uint8_t version = cie->version ? cie->version : 1;
    const char *augmentation = augmentation_of(a, cie);
    uint64_t ra_column = cie->ra_column ? cie->ra_column : a->arch->ra_reg;
    cie->offset = begin_record(a, cie->dwarf64);
    frame_put(&a->bytes, a->kind == INPUT_FRAME_EH ? 0 : UINT64_MAX, id_bytes(a, cie->dwarf64));
    frame_put(&a->bytes, version, 1);
    build_add(&a->bytes, augmentation, strlen(augmentation) + 1);
    if (version >= 4) {
        frame_put(&a->bytes, a->arch->word_bytes, 1);
        frame_put(&a->bytes, 0, 1);
    }
    frame_put_uleb(&a->bytes, cie->code_align ? cie->code_align : 1);
    frame_put_sleb(&a->bytes, cie->data_align ? cie->data_align : -(int64_t)a->arch->word_bytes);
    if (version == 1)
        frame_put(&a->bytes, ra_column, 1);
    else
        frame_put_uleb(&a->bytes, ra_column);
    if (augmentation[0] == 'z') {
        bool has_pointers = strchr(augmentation, 'R'), has_language = strchr(augmentation, 'L');
        frame_put_uleb(&a->bytes, (uint64_t)has_pointers + has_language);
        for (const char *letter = augmentation; *letter; letter++)
            if (*letter == 'R' || *letter == 'L')
                frame_put(&a->bytes, *letter == 'R' ? cie->pointer_encoding : PE_OMIT, 1);
    }
    if (cie->program)
        build_add(&a->bytes, cie->program, cie->program_size);
    else
        put_entry_state(a);
    end_record(a, cie->offset, cie->dwarf64);
    return cie->offset;
}

static void put_pointer(struct frame_asm *a, uint8_t encoding, uint64_t value)
{
    size_t size = a->arch->word_bytes;
    switch (encoding & PE_FORMAT_MASK) {
    case PE_UDATA2:
    case PE_SDATA2: size = 2; break;
    case PE_UDATA4:
    case PE_SDATA4: size = 4; break;
    case PE_UDATA8:
    case PE_SDATA8: size = 8; break;
    default: break;
    }
    if ((encoding & PE_BASE_MASK) == PE_PCREL)
        value -= FRAME_VADDR + a->bytes.size;
    frame_put(&a->bytes, value, size);
}

size_t frame_add_fde(struct frame_asm *a, struct frame_fde *fde)
{
    const struct frame_cie *cie = fde->cie;
    size_t at = begin_record(a, fde->dwarf64);
    uint64_t cie_pointer = a->kind == INPUT_FRAME_EH ? a->bytes.size - cie->offset : cie->offset;
    frame_put(&a->bytes, cie_pointer, id_bytes(a, fde->dwarf64));
    put_pointer(a, cie->pointer_encoding, FRAME_TEXT + fde->start);
    put_pointer(a, cie->pointer_encoding & PE_FORMAT_MASK, fde->size);
    if (augmentation_of(a, cie)[0] == 'z')
        frame_put_uleb(&a->bytes, 0);
    fde->program_at = build_add(&a->bytes, fde->program, fde->program ? fde->program_size : 0);
    end_record(a, at, fde->dwarf64);
    return at;
}

struct build_buffer frame_elf(const struct frame_asm *a)
{
    // version 1, eh_frame_ptr absolute udata4, no table
    static const uint8_t header[] = {1,
                                     PE_UDATA4,
                                     PE_OMIT,
                                     PE_OMIT,
                                     FRAME_VADDR & 0xff,
                                     FRAME_VADDR >> 8 & 0xff,
                                     FRAME_VADDR >> 16 & 0xff,
                                     FRAME_VADDR >> 24};
    struct build_elf spec = {
        .is_32 = a->arch->word_bytes == 4,
        .machine = a->arch->elf_machine,
        .no_section_headers = a->by_segment,
        .sections = {{".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, FRAME_TEXT, NULL, a->text_size, 16}},
        .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0}},
    };
    static const char *const names[] = {[INPUT_FRAME_EH] = ".eh_frame", [INPUT_FRAME_DEBUG] = ".debug_frame"};
    bool loaded = a->kind == INPUT_FRAME_EH;
    spec.sections[1] = (struct build_section){names[a->kind],
                                              SHT_PROGBITS,
                                              loaded ? SHF_ALLOC : 0,
                                              loaded ? FRAME_VADDR : 0,
                                              a->bytes.data,
                                              a->bytes.size,
                                              8};
    if (loaded) {
        spec.sections[2] = (struct build_section){".eh_frame_hdr", SHT_PROGBITS,  SHF_ALLOC, FRAME_VADDR - 64,
                                                  header,          sizeof header, 4};
        spec.segments[1] = (struct build_segment){PT_LOAD, PF_R, ".eh_frame", 0};
        spec.segments[2] = (struct build_segment){PT_LOAD, PF_R, ".eh_frame_hdr", 0};
        spec.segments[3] = (struct build_segment){PT_GNU_EH_FRAME, PF_R, ".eh_frame_hdr", 0};
    }
    return build_elf(&spec);
}

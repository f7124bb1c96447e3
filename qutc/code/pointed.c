// SPDX-License-Identifier: Apache-2.0
// Code that something holds the address of: words of the file (tables of functions, what relocations add), constants in
// registers. That proves nothing: it may be a jump table's. But functions that nothing calls by name begin there, at no
// alignment where they were compiled for size, and on Arm the address says which instruction set they are of.
#include <stdlib.h>

#include "formats/elf_wide_inline.h"
#include "qutc/code/inside.h"

bool code_is_executable(const struct code_follower *f, uint32_t pc)
{
    for (unsigned i = 0; i < f->image->code_count; i++)
        if (f->text_start + pc >= f->image->code[i].start && f->text_start + pc < f->image->code[i].end)
            return true;
    return false;
}

void code_note_pointed(struct code_follower *f, uint64_t vaddr)
{
    if (f->arch->word_bytes == 4)
        vaddr &= UINT32_MAX;
    bool is_thumb = f->arch->has_thumb && vaddr & 1;
    vaddr -= is_thumb;
    // Of Arm only Thumb's addresses tell themselves from other words: in armhf's libc even ones led into the midst of
    // memcpy, in its loader behind the call of the entry.
    if (f->arch->has_thumb && !is_thumb)
        return;
    if (vaddr < f->text_start || vaddr - f->text_start >= f->text_size || vaddr % (1u << f->arch->pc_shift) != 0)
        return;
    uint32_t pc = (uint32_t)(vaddr - f->text_start);
    if (f->marks[pc] & (CODE_MARK_POINTED | CODE_MARK_DATA) || !code_is_executable(f, pc) || !f->is_wanted ||
        !f->is_wanted(f->wanted_context, pc))
        return;
    f->marks[pc] |= CODE_MARK_POINTED;
    f->has_more_pointed = true;
    bool is_said = f->marks[pc] & (CODE_MARK_CALLED | CODE_MARK_INSTRUCTION | CODE_MARK_START);
    if (is_thumb && !is_said)
        f->marks[pc] |= CODE_MARK_MODE;
}

void code_note_main(struct code_walk *w, const struct code_state *state)
{
    struct code_follower *f = w->f;
    const struct code_value *value = &state->reg[f->code->argument_reg];
    if (!w->is_entered || w->phase != CODE_PHASE_JUDGE || value->kind != CODE_VALUE_CONST)
        return;
    uint32_t pc;
    code_address(w, (uint64_t)value->number, CODE_MODE_BY_ADDRESS, &pc);
    if (pc < f->text_size && code_is_executable(f, pc) && !(f->marks[pc] & CODE_MARK_CALLED))
        code_note_called(w, pc, f->marks[pc] & CODE_MARK_MODE ? 1 : 0);
}

// What is mapped at vaddr, at most bytes_max; returns how much that was.
static uint64_t find_in(struct code_follower *f, uint64_t vaddr, uint64_t bytes_max)
{
    unsigned word = f->arch->word_bytes;
    struct base_bytes bytes = input_image_some(f->image, vaddr, bytes_max);
    struct base_cursor c = base_cursor(bytes);
    base_cursor_skip(&c, -vaddr % word);
    while (base_cursor_left(&c) >= word)
        code_note_pointed(f, base_read_uint(&c, word));
    return bytes.size;
}

void code_find_pointed(struct code_follower *f)
{
    struct base_bytes elf = input_image_elf(f->image);
    bool is_64 = f->image->is_64;
    if (elf.size < elf_header_bytes(is_64))
        return;
    const Elf64_Ehdr header = elf_wide_header(elf.data, is_64);
    struct base_cursor c = base_cursor(elf);
    base_cursor_skip(&c, header.e_phoff);
    uint64_t bytes_left = elf.size; // segments of a file that lies may all be of the same bytes
    for (unsigned i = 0; i < header.e_phnum && base_cursor_left(&c) >= elf_segment_bytes(is_64); i++) {
        const Elf64_Phdr segment = elf_wide_segment(base_read_bytes(&c, elf_segment_bytes(is_64)).data, is_64);
        if (segment.p_type == PT_LOAD)
            bytes_left -= find_in(f, segment.p_vaddr, bytes_left);
    }
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

bool code_is_pointed(const struct code_follower *f, uint32_t pc)
{
    return f->marks[pc] & CODE_MARK_POINTED ||
           (f->relocated.count &&
            bsearch(&pc, f->relocated.items, f->relocated.count, sizeof *f->relocated.items, ascending));
}

uint32_t code_next_pointed(const struct code_follower *f, uint32_t pc, uint32_t end)
{
    while (pc < end && !(f->marks[pc] & CODE_MARK_POINTED))
        pc++;
    return pc;
}

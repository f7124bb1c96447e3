// SPDX-License-Identifier: Apache-2.0
// The notes of a core file: threads and their registers, the mapped files, the auxiliary vector. Where things lie in
// NT_PRSTATUS and NT_PRPSINFO depends on the word size alone, for all architectures that QUT knows.
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/target/core.h"

enum { NAME_BYTES = 16 };
#ifndef NT_ARM_PAC_MASK
enum { NT_ARM_PAC_MASK = 0x406 };
#endif
enum { NT_VECTORS = 0x901 }; // NT_RISCV_VECTOR of <linux/elf.h>

struct note {
    uint32_t type;
    const uint8_t *bytes;
    size_t size;
};

// "CORE" and "LINUX" are the names of a core's notes; others' types mean other things.
static bool is_core_note(const uint8_t *name, uint32_t size)
{
    return (size >= 4 && memcmp(name, "CORE", 4) == 0) || (size >= 5 && memcmp(name, "LINUX", 5) == 0);
}

// The note at *at, or the next one; false behind the last.
static bool next_note(const struct target_core *core, size_t *at, struct note *note)
{
    while (*at <= core->notes_size && core->notes_size - *at >= sizeof(Elf32_Nhdr)) {
        Elf32_Nhdr header;
        memcpy(&header, core->notes + *at, sizeof header);
        size_t start = *at + sizeof header;
        uint64_t name_bytes = ((uint64_t)header.n_namesz + 3) & ~(uint64_t)3;
        uint64_t left = core->notes_size - start;
        if (header.n_namesz == 0 && header.n_descsz == 0 && header.n_type == 0) { // between two segments
            *at += 4;
            continue;
        }
        if (name_bytes > left)
            return false;
        const uint8_t *name = core->notes + start;
        left -= name_bytes;
        note->type = header.n_type;
        note->bytes = name + name_bytes;
        note->size = header.n_descsz < left ? header.n_descsz : (size_t)left; // the last one of a core cut off
        *at = start + (size_t)name_bytes + (((size_t)note->size + 3) & ~(size_t)3);
        if (is_core_note(name, header.n_namesz))
            return true;
    }
    return false;
}

static uint64_t get(const uint8_t *bytes, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, bytes, size);
    return value;
}

static int add_thread(struct qut_target *target, const struct note *note)
{
    const struct arch_register_layout *layout = target->arch->core_registers;
    bool wide = target->arch->word_bytes == 8;
    size_t signal_at = 12, pid_at = wide ? 32 : 24, registers_at = wide ? 112 : 72;
    if (note->size < registers_at)
        return 0;
    struct qut_target_thread *thread = target_add_thread(target, (pid_t)get(note->bytes + pid_at, 4));
    if (!thread)
        return -1;
    thread->info.signal_number = (int)get(note->bytes + signal_at, 2);
    thread->state = TARGET_REGISTERS_NONE;
    if (layout && note->size - registers_at >= layout->size_bytes) {
        arch_registers_from_block(layout, note->bytes + registers_at, &thread->regs);
        thread->thread_pointer =
            target_core_word(target->arch, note->bytes + registers_at, target->arch->core_thread_pointer_offset);
        thread->art_thread = target_art_thread(target->arch, note->bytes + registers_at);
        thread->state = TARGET_REGISTERS_READ;
    }
    return 0;
}

static void take_program(struct qut_target *target, const struct note *note)
{
    struct target_core *core = target->source;
    bool wide = target->arch->word_bytes == 8;
    size_t pid_at = wide ? 24 : 12, name_at = wide ? 40 : 28;
    if (note->size < name_at + NAME_BYTES)
        return;
    core->pid = (pid_t)get(note->bytes + pid_at, 4);
    memcpy(core->name, note->bytes + name_at, NAME_BYTES);
}

static int take_files(struct qut_target *target, const struct note *note)
{
    struct target_core *core = target->source;
    unsigned word = target->arch->word_bytes;
    if (core->files || note->size < 2 * word)
        return 0;
    uint64_t count = get(note->bytes, word), page_bytes = get(note->bytes + word, word);
    size_t room = (note->size - 2 * word) / (3 * word);
    if (count > room)
        count = room;
    core->files = calloc(count ? (size_t)count : 1, sizeof *core->files);
    if (!core->files)
        return -1;
    const uint8_t *at = note->bytes + 2 * word, *end = note->bytes + note->size;
    const uint8_t *name = at + (size_t)count * 3 * word;
    for (uint64_t i = 0; i < count && name < end; i++, at += 3 * word) {
        const uint8_t *name_end = memchr(name, 0, (size_t)(end - name));
        struct target_core_file file = {get(at, word), get(at + word, word), 0, (const char *)name};
        if (!name_end)
            break; // cut off
        uint64_t pages = get(at + 2 * word, word);
        name = name_end + 1;
        if (file.start >= file.end || (page_bytes && pages > UINT64_MAX / page_bytes))
            continue;
        file.offset = pages * page_bytes;
        core->files[core->file_count++] = file;
    }
    return 0;
}

static void take_auxv(struct qut_target *target, const struct note *note)
{
    struct target_core *core = target->source;
    unsigned word = target->arch->word_bytes;
    target_take_auxv(target, note->bytes, note->size, &core->vdso);
    for (size_t at = 0; at + 2 * word <= note->size; at += 2 * word)
        if (get(note->bytes + at, word) == AT_PHDR)
            core->program_headers = get(note->bytes + at + word, word);
}

// struct __riscv_v_regset_state. Linux 6.5 kept an address where vlenb is now.
static void take_vectors(struct qut_target *target, const struct note *note)
{
    enum { VLENB_AT = 4 * 8, VLENB_END = 5 * 8 };
    if (target->arch->vector_bytes_reg == 0 || note->size < VLENB_END)
        return;
    uint64_t bytes = get(note->bytes + VLENB_AT, 8);
    if (arch_is_vector_bytes(bytes))
        target->vector_bytes = bytes;
}

int target_core_take_notes(struct qut_target *target, struct qut_target_error *error)
{
    struct target_core *core = target->source;
    struct note note;
    bool no_memory = false;
    for (size_t at = 0; !no_memory && next_note(core, &at, &note);) {
        if (note.type == NT_PRSTATUS)
            no_memory = add_thread(target, &note) != 0;
        else if (note.type == NT_PRPSINFO)
            take_program(target, &note);
        else if (note.type == NT_FILE)
            no_memory = take_files(target, &note) != 0;
        else if (note.type == NT_AUXV)
            take_auxv(target, &note);
        else if (note.type == NT_VECTORS)
            take_vectors(target, &note);
        else if (note.type == NT_ARM_PAC_MASK && note.size >= 16 && !target->pac_mask_given &&
                 target->arch->has_signed_ra)
            target->pac_mask = get(note.bytes + 8, 8); // of code addresses; that of data comes first
    }
    if (no_memory)
        return target_fail(error, "%.150s: out of memory", core->path);
    if (target->thread_count == 0)
        return target_fail(error, "%.150s: no thread in it%s", core->path, core->truncated ? ": it is cut off" : "");
    // The kernel writes the thread that died first, and the signal with it.
    target->threads[0].info.crashed = target->threads[0].info.signal_number != 0;
    for (size_t i = 0; i < target->thread_count; i++)
        if (target->threads[i].info.tid == core->pid)
            memcpy(target->threads[i].info.name, core->name, sizeof core->name);
    target_sort_threads(target);
    return 0;
}

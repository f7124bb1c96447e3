// SPDX-License-Identifier: Apache-2.0
// A method and a bytecode's index -> names, file, line. The table of lines stands behind the bytecode: a byte is a step
// of both, 5 bits of the index and 3 of the line; 0xff: both follow as signed numbers; 0: the end.
#include <string.h>

#include "libqut/hotspot/inside.h"

enum {
    ACCESS_NATIVE = 0x100,
    HAS_LINES = 1, // of the constants' flags, in every release
    LINE_STEP_BITS = 3,
    STEP_ESCAPE = 0xff,
    CONST_BYTES_MAX = 4 << 20, // 64 KiB of bytecode, and tables behind it
    LINE_MAX = 0xffff,         // as class files have them
};

struct method_code {
    uint64_t constant, begin, end; // its constants, its bytecode
    uint64_t all_end;              // of what stands behind it
    bool is_native;
};

static bool read_code(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t method,
                      struct method_code *code)
{
    const struct hotspot_line_layout *layout = &machine->lines;
    uint16_t size, access;
    int32_t words;
    if (!hotspot_read_pointer(memory, method + machine->names.method_const, &code->constant) ||
        !elf_art_read(memory, method + layout->access_flags, &access, sizeof access) ||
        !elf_art_read(memory, code->constant + layout->code_size, &size, sizeof size) ||
        !elf_art_read(memory, code->constant + layout->const_words, &words, sizeof words))
        return false;
    uint64_t all_bytes = (uint64_t)(uint32_t)words * memory->arch->word_bytes;
    code->is_native = access & ACCESS_NATIVE;
    code->begin = code->constant + layout->const_bytes;
    code->end = code->begin + size;
    code->all_end = code->constant + all_bytes;
    return words > 0 && all_bytes <= CONST_BYTES_MAX && code->end <= code->all_end && code->constant < code->all_end;
}

// The line of the last entry at or before the bytecode: as the machine itself tells it. 0: none.
static uint32_t find_line(const struct hotspot_machine *machine, const struct elf_art_memory *memory,
                          const struct method_code *code, int32_t bytecode)
{
    uint8_t flags;
    struct hotspot_stream stream;
    int64_t at = 0, line = 0, best_at = -1, best_line = 0;
    if (!elf_art_read(memory, code->constant + machine->lines.const_flags, &flags, sizeof flags) ||
        !(flags & HAS_LINES))
        return 0;
    hotspot_stream_begin(&stream, memory, code->end, code->all_end, machine->lines.has_digits_from_one);
    for (uint8_t step; (step = hotspot_stream_byte(&stream)) != 0;) {
        at += step == STEP_ESCAPE ? hotspot_stream_signed(&stream) : step >> LINE_STEP_BITS;
        line += step == STEP_ESCAPE ? hotspot_stream_signed(&stream) : step & ((1 << LINE_STEP_BITS) - 1);
        if (stream.is_bad || at < 0 || at >= (int64_t)(code->end - code->begin) || line < 0 || line > LINE_MAX)
            return 0;
        if (at <= bytecode && at >= best_at && best_at != bytecode) {
            best_at = at;
            best_line = line;
        }
    }
    return stream.is_bad ? 0 : (uint32_t)best_line;
}

static void find_file(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t constant,
                      char file[HOTSPOT_FILE_BYTES])
{
    const struct hotspot_name_layout *names = &machine->names;
    uint64_t pool, holder, symbol;
    uint16_t index;
    if (!hotspot_read_pointer(memory, constant + names->const_pool, &pool) ||
        !hotspot_read_pointer(memory, pool + names->pool_holder, &holder) ||
        !elf_art_read(memory, (machine->lines.source_is_of_class ? holder : pool) + machine->lines.source_index, &index,
                      sizeof index) ||
        index == 0 ||
        !hotspot_read_pointer(memory, pool + names->pool_bytes + (uint64_t)index * memory->arch->word_bytes, &symbol) ||
        !hotspot_read_symbol(names, memory, symbol, file, HOTSPOT_FILE_BYTES))
        file[0] = '\0';
}

bool hotspot_source_of(const struct hotspot_machine *machine, const struct elf_art_memory *memory,
                       const struct hotspot_level *level, struct hotspot_source *source)
{
    struct method_code code;
    uint64_t constant;
    source->file[0] = '\0';
    source->line = 0;
    if (!machine->names.is_known || level->method == 0 || level->method % memory->arch->word_bytes != 0 ||
        !hotspot_name_method(&machine->names, memory, level->method, source->method))
        return false;
    int32_t bytecode = level->bytecode == -1 ? 0 : level->bytecode;
    if (!machine->lines.is_known || !read_code(machine, memory, level->method, &code) || code.is_native)
        return true;
    find_file(machine, memory, code.constant, source->file);
    if (source->file[0] && bytecode >= 0 && (uint64_t)bytecode < code.end - code.begin)
        source->line = find_line(machine, memory, &code, bytecode);
    // What was read of constants that went meanwhile is nothing of this method's.
    if (!hotspot_read_pointer(memory, level->method + machine->names.method_const, &constant) ||
        constant != code.constant) {
        source->file[0] = '\0';
        source->line = 0;
    }
    return true;
}

bool hotspot_level_of_word(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t word,
                           struct hotspot_level *level)
{
    struct method_code code;
    uint64_t method = arch_interpreted_method(word);
    *level = (struct hotspot_level){method, HOTSPOT_NO_BYTECODE};
    if (!machine->names.is_known || method == 0 || method % memory->arch->word_bytes != 0)
        return false;
    if (word == method || !machine->lines.is_known || !read_code(machine, memory, method, &code))
        return true;
    uint16_t index = (uint16_t)(arch_interpreted_bytecode(word) - (uint16_t)code.begin);
    if (index < code.end - code.begin)
        level->bytecode = index;
    return true;
}

uint32_t hotspot_code_id(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t lookup_pc)
{
    enum { ALIGNED_BITS = 3 };
    struct hotspot_blob blob;
    uint64_t constant;
    uint32_t id;
    if (!machine->names.is_known)
        return 0;
    if (!hotspot_heap_at(machine, lookup_pc))
        return hotspot_read_pointer(memory, arch_interpreted_method(lookup_pc) + machine->names.method_const, &constant)
                   ? (uint32_t)(constant >> ALIGNED_BITS)
                   : 0;
    return machine->scopes.is_known && hotspot_blob_at(machine, memory, lookup_pc, &blob) && blob.frame_bytes &&
                   elf_art_read(memory, blob.address + machine->scopes.compile_id, &id, sizeof id)
               ? id
               : 0;
}

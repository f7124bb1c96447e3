// SPDX-License-Identifier: Apache-2.0
// Code objects, and the strings and bytes that they lead to.
#include "libqut/cpython/inside.h"

enum {
    CODE_LEAST_BYTES = 176,
    TEXT_HEAD_BYTES = 40,
    TEXT_KIND_SHIFT = 2,
    TEXT_KIND_MASK = 7,
    TEXT_COMPACT = 32,
    TEXT_ASCII = 64,
    TEXT_UNITS_MAX = CPYTHON_NAME_BYTES,
};
static_assert((int)CPYTHON_TEXT_ROOM_BYTES == 4 * (int)TEXT_UNITS_MAX, "there is room for the widest");
// What a live object counts. The memory of one that was freed holds something else there, and all else as it was.
#define REFERENCES_MAX ((uint64_t)UINT32_MAX)
// What is called length, and is more than this, is none.
#define LENGTH_MAX ((uint64_t)1 << 30)

// The beginning of an object: mostly all of it.
struct block {
    size_t size;
    uint8_t bytes[256];
};

static bool read_block(const struct elf_art_memory *memory, uint64_t address, struct block *block)
{
    block->size =
        cpython_is_pointer(address) ? memory->read(memory->context, address, block->bytes, sizeof block->bytes) : 0;
    return block->size > 0;
}

static bool read_rest(const struct elf_art_memory *memory, uint64_t address, const struct block *block, size_t offset,
                      void *bytes, size_t size)
{
    if (offset > block->size || size > block->size - offset)
        return elf_art_read(memory, address + offset, bytes, size);
    memcpy(bytes, block->bytes + offset, size);
    return true;
}

size_t cpython_code_bytes(const struct cpython_runtime *runtime)
{
    return runtime->layout.form == CPYTHON_FRAME_OBJECTS ? CODE_LEAST_BYTES : runtime->layout.code_instructions;
}

bool cpython_read_code(const struct cpython_runtime *runtime, const struct elf_art_memory *memory, uint64_t address,
                       struct cpython_code *code)
{
    uint8_t bytes[CPYTHON_CODE_BYTES];
    size_t wanted = cpython_code_bytes(runtime);
    return cpython_is_pointer(address) && wanted <= sizeof bytes && elf_art_read(memory, address, bytes, wanted) &&
           cpython_code_of(runtime, address, bytes, wanted, code);
}

bool cpython_code_of(const struct cpython_runtime *runtime, uint64_t address, const uint8_t *bytes, size_t got,
                     struct cpython_code *code)
{
    const struct cpython_layout *layout = &runtime->layout;
    if (!cpython_is_pointer(address) || got < cpython_code_bytes(runtime) ||
        cpython_word(bytes, layout->object_type) != runtime->code_type)
        return false;
    // From 3.14 on flags stand above the count.
    uint64_t references = cpython_word(bytes, 0) & (layout->minor >= 14 ? UINT32_MAX : UINT64_MAX);
    if (references == 0 || references > REFERENCES_MAX)
        return false;
    *code = (struct cpython_code){
        .address = address,
        .name = cpython_word(bytes, layout->code_qualified),
        .file = cpython_word(bytes, layout->code_file),
        .lines = cpython_word(bytes, layout->code_lines),
        .first_line = cpython_half(bytes, layout->code_first_line),
    };
    if (layout->code_version)
        code->version = (uint32_t)cpython_half(bytes, layout->code_version);
    if (layout->form == CPYTHON_FRAME_OBJECTS) {
        code->instruction_bytes = UINT32_MAX; // its bytes are an object of their own
    } else {
        uint64_t units = cpython_word(bytes, layout->object_size);
        if (units > LENGTH_MAX)
            return false;
        code->instructions = address + layout->code_instructions;
        code->instruction_bytes = (uint32_t)units * 2;
    }
    return cpython_is_pointer(code->name) && cpython_is_pointer(code->file) && cpython_is_pointer(code->lines);
}

size_t cpython_read_bytes(const struct cpython_runtime *runtime, const struct elf_art_memory *memory, uint64_t address,
                          uint8_t *bytes, size_t size)
{
    const struct cpython_layout *layout = &runtime->layout;
    struct block block;
    if (!read_block(memory, address, &block) || block.size < layout->bytes_data)
        return 0;
    uint64_t length = cpython_word(block.bytes, layout->object_size);
    if (length > size || !read_rest(memory, address, &block, layout->bytes_data, bytes, (size_t)length))
        return 0;
    return (size_t)length;
}

// One character as UTF-8. False: it does not fit.
static bool put(char *text, size_t text_size, size_t *at, uint32_t character)
{
    char bytes[4];
    size_t count = 0;
    if (character < 0x80) {
        bytes[count++] = (char)character;
    } else if (character < 0x800) {
        bytes[count++] = (char)(0xc0 | character >> 6);
    } else {
        if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000))
            character = 0xfffd;
        if (character >= 0x10000)
            bytes[count++] = (char)(0xf0 | character >> 18);
        bytes[count] = (char)(character >= 0x10000 ? 0x80 | (character >> 12 & 63) : 0xe0 | character >> 12);
        count++;
        bytes[count++] = (char)(0x80 | (character >> 6 & 63));
    }
    if (character >= 0x80)
        bytes[count++] = (char)(0x80 | (character & 63));
    if (*at + count >= text_size)
        return false;
    memcpy(text + *at, bytes, count);
    *at += count;
    return true;
}

bool cpython_read_text(const struct cpython_runtime *runtime, const struct elf_art_memory *memory, uint64_t address,
                       char *text, size_t text_size)
{
    uint8_t room[CPYTHON_TEXT_ROOM_BYTES];
    return cpython_read_text_with(runtime, memory, address, text, text_size, room);
}

bool cpython_read_text_with(const struct cpython_runtime *runtime, const struct elf_art_memory *memory,
                            uint64_t address, char *text, size_t text_size, uint8_t *units)
{
    const struct cpython_layout *layout = &runtime->layout;
    struct block block;
    *text = 0;
    if (!read_block(memory, address, &block) || block.size < TEXT_HEAD_BYTES)
        return false;
    uint64_t length = cpython_word(block.bytes, layout->text_length);
    uint32_t state = (uint32_t)cpython_half(block.bytes, layout->text_state);
    uint32_t width = state >> TEXT_KIND_SHIFT & TEXT_KIND_MASK;
    bool is_ascii = state & TEXT_ASCII;
    if (!(state & TEXT_COMPACT) || (width != 1 && width != 2 && width != 4) || (is_ascii && width != 1) ||
        length > LENGTH_MAX)
        return false;
    size_t count = length < TEXT_UNITS_MAX ? (size_t)length : TEXT_UNITS_MAX;
    if (!read_rest(memory, address, &block, is_ascii ? layout->text_ascii_data : layout->text_data, units,
                   count * width))
        return false;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t character = 0;
        memcpy(&character, units + i * width, width);
        if (character == 0 || !put(text, text_size, &at, character))
            break;
    }
    text[at] = 0;
    return at > 0;
}

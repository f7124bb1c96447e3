// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/libqut/v8/fake_v8.h"

#include <string.h>

uint8_t bytes[BYTES];
uint64_t next;
struct v8_layout layout;
struct elf_art_memory memory;

size_t read_fake(void *context, uint64_t address, void *to, size_t size)
{
    (void)context;
    if (address < BASE || address - BASE >= BYTES)
        return 0;
    size_t left = BYTES - (size_t)(address - BASE);
    size = size < left ? size : left;
    memcpy(to, bytes + (address - BASE), size);
    return size;
}

void put(uint64_t address, uint64_t word)
{
    memcpy(bytes + (address - BASE), &word, sizeof word);
}

uint64_t room(size_t size)
{
    uint64_t at = next;
    next += (size + 15) / 8 * 8;
    return at;
}

uint64_t number(int32_t value)
{
    return (uint64_t)(uint32_t)value << 32;
}

uint64_t object(uint16_t type, size_t size)
{
    uint64_t map = room(32), at = room(size);
    memcpy(bytes + (map - BASE) + (size_t)layout.map_type, &type, sizeof type);
    put(at, map + TAG);
    return at;
}

uint64_t text(const char *characters)
{
    size_t length = strlen(characters);
    uint64_t at = object(TYPE_ONE_BYTE, 16 + length);
    put(at + 8, (uint64_t)length << 32);
    memcpy(bytes + (at - BASE) + 16, characters, length);
    return at;
}

uint64_t pair(uint16_t type, uint32_t length, uint64_t first, uint64_t second)
{
    uint64_t at = object(type, 32);
    put(at + 8, (uint64_t)length << 32);
    put(at + 16, first);
    put(at + 24, second);
    return at;
}

void begin(void)
{
    memset(bytes, 0, sizeof bytes);
    next = BASE + 64;
    memory = (struct elf_art_memory){.read = read_fake};
    layout = (struct v8_layout){.frame_context = -8,
                                .frame_function = -16,
                                .frame_bytecodes = -32,
                                .frame_bytecode_offset = -40,
                                .map_type = 12,
                                .function_shared = 24,
                                .shared_name = 16,
                                .shared_script = 32,
                                .script_name = 16,
                                .script_source = 8,
                                .script_line_ends = 56,
                                .string_length = 12,
                                .one_byte_chars = 16,
                                .two_byte_chars = 16,
                                .cons_first = 16,
                                .cons_second = 24,
                                .thin_actual = 16,
                                .sliced_parent = 16,
                                .sliced_offset = 24,
                                .external_resource = 16,
                                .bytecodes_data = 54,
                                .bytecodes_positions = 32,
                                .scope_first_name = 3,
                                .function_type = TYPE_FUNCTION,
                                .shared_type = TYPE_SHARED,
                                .script_type = TYPE_SCRIPT,
                                .scope_type = TYPE_SCOPE,
                                .bytecodes_type = TYPE_BYTECODES,
                                .byte_array_type = TYPE_BYTES,
                                .trusted_byte_array_type = -1};
}

// ---- a function

uint64_t function, shared, scope, script, name, source;

void make_function(void)
{
    begin();
    make_function_called("walk", 4);
}

void make_function_called(const char *called, int32_t start)
{
    name = text(called);
    source = text("one\ntwo\nthree");
    script = object(TYPE_SCRIPT, 96);
    put(script + 8, source + TAG);
    put(script + 16, text("/a.js") + TAG);
    put(script + 64, number(7));
    scope = object(TYPE_SCOPE, 128);
    put(scope + 8, number(1 << 12 | 1 << 14)); // a name of its own, and one that was made
    put(scope + 24, number(1));                // a variable: its name, what it is
    put(scope + 32, name + TAG);
    put(scope + 48, name + TAG);
    put(scope + 64, text("exports.walk") + TAG);
    put(scope + 72, number(start)); // where it begins
    shared = object(TYPE_SHARED, 64);
    put(shared + 16, scope + TAG);
    put(shared + 32, script + TAG);
    function = object(TYPE_FUNCTION, 64);
    put(function + 24, shared + TAG);
}

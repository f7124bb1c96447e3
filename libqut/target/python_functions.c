// SPDX-License-Identifier: Apache-2.0
// Functions of CPython that were met. One is known by its code object's address and what the object held while a
// thread that was in it stood still; names are read later, and count if the object holds the same before and after.
#include <stdlib.h>
#include <string.h>

#include "libqut/target/python_inside.h"

enum { HASH_BITS = 14, LINES_BYTES_MAX = 1 << 20 };

static unsigned hash_of(uint64_t address)
{
    return (unsigned)((address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - HASH_BITS));
}

static bool is_same(const struct cpython_code *a, const struct cpython_code *b)
{
    return a->address == b->address && a->name == b->name && a->file == b->file && a->lines == b->lines &&
           a->first_line == b->first_line && a->instruction_bytes == b->instruction_bytes;
}

static bool make_room(struct target_python *python)
{
    if (!python->heads)
        python->heads = calloc((size_t)1 << HASH_BITS, sizeof *python->heads);
    if (!python->heads || python->function_count == TARGET_PYTHON_FUNCTIONS_MAX)
        return false;
    if (python->function_count < python->function_capacity)
        return true;
    size_t capacity = python->function_capacity ? python->function_capacity * 2 : 256;
    struct target_python_function **functions = realloc(python->functions, capacity * sizeof *functions);
    if (!functions)
        return false;
    python->functions = functions;
    python->function_capacity = capacity;
    return true;
}

uint32_t target_python_intern(struct target_python *python, const struct cpython_code *code)
{
    unsigned hash = hash_of(code->address);
    for (uint32_t i = python->heads ? python->heads[hash] : 0; i; i = python->functions[i - 1]->older)
        if (is_same(&python->functions[i - 1]->code, code))
            return i;
    if (!make_room(python))
        return 0;
    struct target_python_function *function = calloc(1, sizeof *function);
    if (!function)
        return 0;
    function->code = *code;
    function->older = python->heads[hash];
    python->functions[python->function_count++] = function;
    return python->heads[hash] = (uint32_t)python->function_count;
}

static char *text_at(struct qut_target *target, uint64_t address)
{
    char text[CPYTHON_NAME_BYTES];
    return cpython_read_text(&target->python->runtime, &target->machine->memory, address, text, sizeof text)
               ? strdup(text)
               : NULL;
}

static void read_lines(struct qut_target *target, struct target_python_function *function)
{
    const struct cpython_runtime *runtime = &target->python->runtime;
    uint64_t length;
    if (!elf_art_read(&target->machine->memory, function->code.lines + runtime->layout.object_size, &length,
                      sizeof length) ||
        length > LINES_BYTES_MAX)
        return;
    function->lines = malloc((size_t)length + 1);
    if (function->lines)
        function->line_bytes = cpython_read_bytes(runtime, &target->machine->memory, function->code.lines,
                                                  function->lines, (size_t)length);
    function->has_lines = function->lines && function->line_bytes == length;
}

static bool holds(struct qut_target *target, const struct target_python_function *function)
{
    struct cpython_code now;
    return cpython_read_code(&target->python->runtime, &target->machine->memory, function->code.address, &now) &&
           is_same(&now, &function->code);
}

static void forget(struct target_python_function *function)
{
    free(function->name);
    free(function->file);
    free(function->lines);
    function->name = function->file = NULL;
    function->lines = NULL;
    function->line_bytes = 0;
    function->has_lines = false;
}

void target_python_name(struct qut_target *target)
{
    struct target_python *python = target->python;
    while (python && target->machine && python->named_count < python->function_count) {
        struct target_python_function *function = python->functions[python->named_count++];
        if (!holds(target, function))
            continue;
        function->name = text_at(target, function->code.name);
        function->file = text_at(target, function->code.file);
        read_lines(target, function);
        if (!holds(target, function))
            forget(function);
    }
}

uint32_t target_python_line_of(const struct target_python *python, const struct target_python_function *function,
                               uint64_t instruction)
{
    const struct cpython_code *code = &function->code;
    uint64_t offset = instruction;
    if (python->runtime.layout.form != CPYTHON_FRAME_OBJECTS)
        offset = instruction > code->instructions ? instruction - code->instructions : 0; // none has run yet: 0
    if (!function->has_lines || offset >= code->instruction_bytes)
        return 0;
    uint32_t line = cpython_line_at(python->runtime.layout.lines, function->lines, function->line_bytes,
                                    code->first_line, (uint32_t)offset);
    return line < 1u << TARGET_PYTHON_LINE_BITS ? line : 0;
}

const struct target_python_function *target_python_function(const struct qut_target *target, uint32_t number)
{
    const struct target_python *python = target->python;
    return python && number && number <= python->function_count ? python->functions[number - 1] : NULL;
}

size_t target_python_function_count(const struct qut_target *target)
{
    return target->python ? target->python->function_count : 0;
}

// SPDX-License-Identifier: Apache-2.0
// Functions of CPython that were met. One is known by its code object's address and what the object held while a
// thread that was in it stood still; names are read later, and count if the object holds the same before and after.
#include <stdlib.h>
#include <string.h>

#include "libqut/target/python_inside.h"

enum { HASH_BITS = 14, LINES_BYTES_MAX = 1 << 20, MET = 64 };

static unsigned hash_of(uint64_t address)
{
    return (unsigned)((address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - HASH_BITS));
}

static bool is_same(const struct cpython_code *a, const struct cpython_code *b)
{
    return a->address == b->address && a->name == b->name && a->file == b->file && a->lines == b->lines &&
           a->first_line == b->first_line && a->instruction_bytes == b->instruction_bytes && a->version == b->version;
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
    return target_python_add(python, code);
}

uint32_t target_python_add(struct target_python *python, const struct cpython_code *code)
{
    unsigned hash = hash_of(code->address);
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

// What the code object of a function leads to.
struct content {
    char name[CPYTHON_NAME_BYTES], file[CPYTHON_NAME_BYTES];
    bool has_lines;
    size_t line_bytes;
    uint8_t lines[LINES_BYTES_MAX];
};

static bool holds(struct qut_target *target, const struct cpython_code *code)
{
    struct cpython_code now;
    return cpython_read_code(&target->python->runtime, &target->machine->memory, code->address, &now) &&
           is_same(&now, code);
}

static void read_content(struct qut_target *target, const struct cpython_code *code, struct content *content)
{
    const struct cpython_runtime *runtime = &target->python->runtime;
    const struct elf_art_memory *memory = &target->machine->memory;
    uint64_t length;
    cpython_read_text(runtime, memory, code->name, content->name, sizeof content->name);
    cpython_read_text(runtime, memory, code->file, content->file, sizeof content->file);
    content->line_bytes = cpython_read_bytes(runtime, memory, code->lines, content->lines, sizeof content->lines);
    // A table may be empty, and then all is on the first line.
    content->has_lines =
        content->line_bytes ||
        (elf_art_read(memory, code->lines + runtime->layout.object_size, &length, sizeof length) && length == 0);
}

static void keep_content(const struct content *content, struct target_python_function *function)
{
    function->name = *content->name ? strdup(content->name) : NULL;
    function->file = *content->file ? strdup(content->file) : NULL;
    function->lines = content->has_lines ? malloc(content->line_bytes + 1) : NULL;
    function->has_lines = function->lines != NULL;
    function->line_bytes = function->lines ? content->line_bytes : 0;
    if (function->lines)
        memcpy(function->lines, content->lines, content->line_bytes);
}

static bool is_text(const char *kept, const char *text)
{
    return strcmp(kept ? kept : "", text) == 0;
}

static bool has_content(const struct target_python_function *function, const struct content *content)
{
    return is_text(function->name, content->name) && is_text(function->file, content->file) &&
           function->line_bytes == content->line_bytes && function->has_lines == content->has_lines &&
           (!function->lines || memcmp(function->lines, content->lines, content->line_bytes) == 0);
}

// The number of what is at this code object now, where that is what the thread was in; 0: it is not known.
static uint32_t confirm(struct qut_target *target, uint32_t number, struct content *content)
{
    struct target_python *python = target->python;
    struct target_python_function *function = python->functions[number - 1];
    if (function->is_named && function->code.version) // no other one is like it
        return number;
    if (!function->is_named && !holds(target, &function->code))
        return 0;
    read_content(target, &function->code, content);
    if (function->is_named && has_content(function, content))
        return number;
    if (!holds(target, &function->code) || !*content->name)
        return 0;
    // Where one with the same addresses was: a program that makes and drops code does so at one place again and again.
    if (function->is_named)
        number = target_python_add(python, &function->code);
    if (number) {
        function = python->functions[number - 1];
        function->is_named = true;
        keep_content(content, function);
    }
    return number;
}

void target_python_name(struct qut_target *target, struct target_python_stack *stack)
{
    struct target_python *python = target->python;
    struct {
        uint32_t number, confirmed;
    } met[MET] = {0};
    if (!python || !target->machine)
        return;
    if (!python->content)
        python->content = malloc(sizeof *python->content);
    for (size_t i = 0; i < stack->taken.frame_count; i++) {
        uint32_t number = stack->functions[i];
        if (number == 0 || number == TARGET_PYTHON_INTERNAL)
            continue;
        unsigned slot = number % MET;
        if (met[slot].number != number) {
            met[slot].number = number;
            met[slot].confirmed = python->content ? confirm(target, number, python->content) : 0;
        }
        stack->functions[i] = met[slot].confirmed;
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
    return line < 1u << CPYTHON_LINE_BITS ? line : 0;
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

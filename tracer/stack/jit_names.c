// SPDX-License-Identifier: Apache-2.0
// Names of code that was made at run time. Its symbols have addresses of the process.
#include <stdlib.h>
#include <string.h>

#include "tracer/stack/stack_modules.h"

struct stack_jit_file {
    const void *bytes; // the target's
    struct symbols *symbols;
};

static struct symbols *read_symbols(struct stack_modules *modules, const void *bytes, size_t size)
{
    const struct input_image_options options = {.jit = true};
    struct input_image *image = NULL;
    struct base_error error = {0};
    struct symbols *symbols = NULL;
    if (input_image_open_memory((struct base_bytes){bytes, size}, NULL, &options, &image, &error) == 0)
        symbols = symbols_read(image, 0, &error);
    modules->no_memory |= error.reason == BASE_ERR_NO_MEMORY;
    return symbols;
}

// NULL without memory.
static const struct stack_jit_file *file_of(struct stack_modules *modules, const void *bytes, size_t size)
{
    for (size_t i = 0; i < modules->jit_files.count; i++)
        if (modules->jit_files.items[i].bytes == bytes)
            return &modules->jit_files.items[i];
    struct stack_jit_file *file = BASE_ADD(&modules->jit_files);
    if (file)
        *file = (struct stack_jit_file){.bytes = bytes, .symbols = read_symbols(modules, bytes, size)};
    modules->no_memory |= !file;
    return file;
}

// What the machine itself tells is kept: recursion asks for one name again and again.
bool stack_made_symbol(struct stack_modules *modules, uint64_t address, struct symbol *symbol)
{
    const struct qut_made_code *made = NULL;
    for (size_t i = 0; i < modules->made_codes.count && !made; i++)
        if (address - modules->made_codes.items[i]->start <
            modules->made_codes.items[i]->end - modules->made_codes.items[i]->start)
            made = modules->made_codes.items[i];
    if (!made) {
        struct qut_made_code *found = malloc(sizeof *found);
        if (found && qut_target_made_code(modules->target, address, found, sizeof *found) &&
            BASE_RESERVE(&modules->made_codes, 1)) {
            *BASE_ADD(&modules->made_codes) = found;
            made = found;
        } else {
            modules->no_memory |= !found;
            free(found);
        }
    }
    if (!made)
        return false;
    *symbol = (struct symbol){
        .name = made->name, .name_length = strlen(made->name), .start_vaddr = made->start, .has_size = true};
    return true;
}

bool stack_jit_symbol(struct stack_modules *modules, uint64_t address, struct symbol *symbol)
{
    size_t size;
    const void *bytes = qut_target_jit_symbols(modules->target, address, &size);
    const struct stack_jit_file *file = bytes ? file_of(modules, bytes, size) : NULL;
    return file && file->symbols && symbols_find(file->symbols, address, symbol);
}

void stack_jit_free(struct stack_modules *modules)
{
    for (size_t i = 0; i < modules->jit_files.count; i++)
        symbols_free(modules->jit_files.items[i].symbols);
    base_vector_free(&modules->jit_files.vector);
    for (size_t i = 0; i < modules->made_codes.count; i++)
        free(modules->made_codes.items[i]);
    base_vector_free(&modules->made_codes.vector);
}

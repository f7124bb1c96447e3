// SPDX-License-Identifier: Apache-2.0
// Names of code that was made at run time. Its symbols have addresses of the process.
#include <stdlib.h>

#include "tracer/modules.h"

struct stack_jit_file {
    const void *bytes; // the target's
    struct qut_symbols *symbols;
};

static struct qut_symbols *read_symbols(const void *bytes, size_t size)
{
    const struct qutc_image_options options = {.jit = true};
    struct qutc_image *image = NULL;
    if (qutc_image_open_memory((struct qutc_bytes){bytes, size}, NULL, &options, &image, NULL) != 0)
        return NULL;
    return qut_symbols_read(image, 0, NULL);
}

// NULL without memory.
static const struct stack_jit_file *file_of(struct stack_modules *modules, const void *bytes, size_t size)
{
    for (size_t i = 0; i < modules->jit_file_count; i++)
        if (modules->jit_files[i].bytes == bytes)
            return &modules->jit_files[i];
    if (modules->jit_file_count == modules->jit_file_capacity) {
        size_t capacity = modules->jit_file_capacity ? 2 * modules->jit_file_capacity : 32;
        struct stack_jit_file *files = realloc(modules->jit_files, capacity * sizeof *files);
        if (!files)
            return NULL;
        modules->jit_files = files;
        modules->jit_file_capacity = capacity;
    }
    struct stack_jit_file *file = &modules->jit_files[modules->jit_file_count++];
    *file = (struct stack_jit_file){.bytes = bytes, .symbols = read_symbols(bytes, size)};
    return file;
}

bool stack_jit_symbol(struct stack_modules *modules, uint64_t address, struct qut_symbol *symbol)
{
    size_t size;
    const void *bytes = qut_target_jit_symbols(modules->target, address, &size);
    const struct stack_jit_file *file = bytes ? file_of(modules, bytes, size) : NULL;
    return file && file->symbols && qut_symbols_find(file->symbols, address, symbol);
}

void stack_jit_free(struct stack_modules *modules)
{
    for (size_t i = 0; i < modules->jit_file_count; i++)
        qut_symbols_free(modules->jit_files[i].symbols);
    free(modules->jit_files);
}

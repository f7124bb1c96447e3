// SPDX-License-Identifier: Apache-2.0
#include "tracer/calls/parts.h"

#include <string.h>

#include "tracer/calls/inside.h"

static const char mark[] = ".cold";

int calls_parts_each(const char *path, calls_take_part *take, void *context, struct base_error *error)
{
    struct input_image *image;
    const struct input_image_options options = {.debug_root = "/usr/lib/debug"};
    if (input_image_open(path, NULL, 0, 0, &options, &image, error) != 0)
        return -1;
    struct symbols *symbols = symbols_read(image, 0, error);
    if (!symbols)
        return -1;
    int status = 0;
    for (size_t i = 0; status == 0 && i < symbols_count(symbols); i++) {
        char name[CALLS_NAME_MAX + 1];
        struct symbol symbol;
        symbols_at(symbols, i, &symbol);
        const char *end = memmem(symbol.name, symbol.name_length, mark, sizeof mark - 1);
        const uint64_t size = symbol.end_vaddr - symbol.start_vaddr;
        if (!end || end == symbol.name || (size_t)(end - symbol.name) >= sizeof name || size == 0 || size > UINT32_MAX)
            continue;
        memcpy(name, symbol.name, (size_t)(end - symbol.name));
        name[end - symbol.name] = 0;
        status = take(context, name, symbol.start_vaddr, (uint32_t)size);
    }
    symbols_free(symbols);
    return status;
}

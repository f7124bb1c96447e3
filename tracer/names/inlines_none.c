// SPDX-License-Identifier: Apache-2.0
// A build without libdw.
#include <stddef.h>

#include "tracer/names/lines.h"

bool names_inlines_built(void)
{
    return false;
}

struct names_inlines *names_inlines_open(const struct input_image *image)
{
    (void)image;
    return NULL;
}

void names_inlines_close(struct names_inlines *inlines)
{
    (void)inlines;
}

size_t names_inlines_at(struct names_inlines *inlines, uint64_t vaddr,
                        struct names_inline_function functions[NAMES_INLINE_DEPTH_MAX])
{
    (void)inlines, (void)vaddr, (void)functions;
    return 0;
}

bool names_lines_find(struct names_inlines *inlines, const char *file, uint32_t line, struct names_lines *lines)
{
    (void)inlines, (void)file, (void)line, (void)lines;
    return true;
}

void names_lines_free(struct names_lines *lines)
{
    (void)lines;
}

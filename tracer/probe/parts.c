// SPDX-License-Identifier: Apache-2.0
#include "tracer/probe/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const uint64_t *probe_part_at(const struct probe_parts *parts, const uint64_t *words, uint32_t index)
{
    const uint32_t first = parts->is_in_order ? 0 : index + 1, end = parts->is_in_order ? index : parts->count;
    uint32_t before = 0;
    for (uint32_t i = first; i < end; i++)
        before += parts->items[i].words;
    return words + before;
}

struct probe_part_text probe_part_text(const uint64_t *words, uint32_t count)
{
    struct probe_part_text text = {.bytes = ""};
    const size_t bytes = count * sizeof *words;
    memcpy(text.bytes, words, bytes < PROBE_PART_TEXT_MAX ? bytes : PROBE_PART_TEXT_MAX);
    for (char *at = text.bytes; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
    return text;
}

struct probe_stack_name probe_stack_name(uint64_t number)
{
    struct probe_stack_name name = {.text = "[no stack could be taken]"};
    if (number)
        snprintf(name.text, sizeof name.text, "stack %016" PRIx64, number);
    return name;
}

size_t probe_stack_frames(struct probe_stacks *stacks, uint64_t number, const char *const **frames)
{
    return stacks && number ? stacks->find(stacks, number, frames) : 0;
}

// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "tracer/probing/inside.h"

enum { NOTED_MAX = 1 << 14 }; // as many as a process puts into its trace

// Where it is, or would be.
static size_t find(const struct probing_stacks *noted, uint64_t number)
{
    size_t low = 0, high = noted->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (noted->items[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t note(struct probe_stacks *stacks, uint64_t number, const char *const **frames)
{
    struct probing_stacks *noted = (struct probing_stacks *)(void *)stacks;
    const size_t at = find(noted, number);
    *frames = NULL;
    if ((at < noted->count && noted->items[at] == number) || noted->count == NOTED_MAX || !BASE_ADD(noted))
        return 0;
    memmove(&noted->items[at + 1], &noted->items[at], (noted->count - 1 - at) * sizeof *noted->items);
    noted->items[at] = number;
    return 0;
}

void probing_stacks_begin(struct probing *probing)
{
    probing->noted.stacks.find = note;
    probing->stacks = &probing->noted.stacks;
}

void probing_stacks_tell(struct probing *probing, struct probe_stacks *known)
{
    FILE *out = probing->options.out;
    probing->stacks = known;
    for (size_t i = 0; i < probing->noted.count; i++) {
        const uint64_t number = probing->noted.items[i];
        if (!probing->options.json) {
            probe_show_stack(out, known, number);
            continue;
        }
        struct base_json json = {.stream = out};
        probe_show_stack_json(&json, known, number);
        fputc('\n', out);
    }
}

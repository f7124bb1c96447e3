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
    const size_t count = noted->known ? noted->known->find(noted->known, number, frames) : 0;
    if (count)
        return count;
    *frames = NULL;
    if (at < noted->count && noted->items[at] == number)
        return 0;
    if (noted->count == NOTED_MAX || !BASE_ADD(noted)) {
        noted->untold++;
        return 0;
    }
    memmove(&noted->items[at + 1], &noted->items[at], (noted->count - 1 - at) * sizeof *noted->items);
    noted->items[at] = number;
    return 0;
}

static size_t ask(struct probe_stacks *stacks, uint64_t number, const char *const **frames)
{
    struct probing_stacks *noted = (struct probing_stacks *)(void *)stacks;
    const size_t count = noted->known ? noted->known->find(noted->known, number, frames) : 0;
    noted->unknown += count == 0;
    return count;
}

void probing_stacks_begin(struct probing *probing)
{
    probing->noted.stacks.find = note;
    probing->noted.known = probing->options.live;
}

void probing_stacks_tell(struct probing *probing, struct probe_stacks *known)
{
    struct probing_stacks *noted = &probing->noted;
    noted->stacks.find = ask;
    noted->known = known;
    for (size_t i = 0; i < noted->count; i++) {
        if (probing->options.form != PROBING_JSON) {
            probe_show_stack(probing->running, &noted->stacks, noted->items[i]);
            continue;
        }
        struct base_json json = {.stream = probing->options.out};
        probe_show_stack_json(&json, &noted->stacks, noted->items[i]);
        fputc('\n', probing->options.out);
    }
}

// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/dwarf_ranges.h"

#include <stdlib.h>

#include "tracer/symbols/sort.h"

enum { RANGES_MAX = 1 << 24 };

static bool add(struct names_ranges *ranges, const struct names_range *range)
{
    struct names_range *place = ranges->count < RANGES_MAX ? BASE_ADD(ranges) : NULL;
    if (place)
        *place = *range;
    return place;
}

bool names_ranges_add(struct names_ranges *ranges, Dwarf_Die *die, uint32_t item, uint32_t depth)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t offset = 0;
    while ((offset = names_dw.ranges(die, offset, &base, &start, &end)) > 0) {
        // What a linker threw away begins at 0.
        if (start == 0 || end <= start)
            continue;
        const struct names_range range = {.start = start, .end = end, .item = item, .depth = depth};
        if (!add(ranges, &range))
            return false;
    }
    return true;
}

bool names_ranges_sort(struct names_ranges *ranges)
{
    if (symbols_sort_by_first_u64(ranges->items, ranges->count, sizeof *ranges->items) != 0)
        return false;
    uint64_t greatest = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        greatest = ranges->items[i].end > greatest ? ranges->items[i].end : greatest;
        ranges->items[i].greatest_end = greatest;
    }
    return true;
}

const struct names_range *names_ranges_find(const struct names_ranges *ranges, uint64_t vaddr)
{
    enum { LOOK_BACK_MAX = 4096 };
    size_t low = 0, high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->items[middle].start <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    const struct names_range *best = NULL;
    for (size_t i = low, steps = 0; i-- > 0 && steps < LOOK_BACK_MAX; steps++) {
        const struct names_range *range = &ranges->items[i];
        if (range->greatest_end <= vaddr || (best && range->start != best->start))
            break;
        if (vaddr < range->end && (!best || range->depth > best->depth))
            best = range;
    }
    return best;
}

void names_ranges_free(struct names_ranges *ranges)
{
    free(ranges->items);
    *ranges = (struct names_ranges){0};
}

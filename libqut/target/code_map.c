// SPDX-License-Identifier: Apache-2.0
#include "libqut/target/code_map.h"

#include <stdlib.h>
#include <string.h>

enum {
    NAME_BYTES_MAX = sizeof(((struct qut_made_code *)0)->name) - 1,
    STEPS_MAX = 64, // back from an address: code that was put in place of other code
    WAIT_LEAST_MS = 100,
    WAIT_FACTOR = 20, // at most so small a part of the time goes into reading it
};

// Room for `needed` items. NULL: no memory, and the old ones are as they were.
static void *grown(void *items, size_t *capacity, size_t needed, size_t item_bytes)
{
    if (needed <= *capacity)
        return items;
    size_t wanted = *capacity ? *capacity : 64;
    while (wanted < needed)
        wanted *= 2;
    void *more = realloc(items, wanted * item_bytes);
    if (more)
        *capacity = wanted;
    return more;
}

bool target_code_map_add_name(struct target_code_map *map, const char *name, size_t bytes,
                              struct target_code_entry *entry)
{
    if (bytes > NAME_BYTES_MAX)
        bytes = NAME_BYTES_MAX;
    char *text = grown(map->text, &map->text_capacity, map->text_bytes + bytes + 1, 1);
    if (!text)
        return false;
    map->text = text;
    memcpy(text + map->text_bytes, name, bytes);
    entry->name_offset = map->text_bytes;
    entry->name_bytes = (uint32_t)bytes;
    map->text_bytes += bytes;
    return true;
}

bool target_code_map_add(struct target_code_map *map, const struct target_code_entry *entry)
{
    struct target_code_entry *entries = grown(map->entries, &map->capacity, map->count + 1, sizeof *entries);
    if (!entries)
        return false;
    map->entries = entries;
    entries[map->count] = *entry;
    entries[map->count].order = (uint32_t)map->count;
    map->count++;
    return true;
}

static int by_start(const void *a, const void *b)
{
    const struct target_code_entry *one = a, *other = b;
    if (one->start != other->start)
        return one->start < other->start ? -1 : 1;
    return one->order < other->order ? -1 : one->order > other->order;
}

void target_code_map_settle(struct target_code_map *map)
{
    if (map->count)
        qsort(map->entries, map->count, sizeof *map->entries, by_start);
}

const struct target_code_entry *target_code_map_find(const struct target_code_map *map, uint64_t address,
                                                     uint64_t at_ns)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->entries[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct target_code_entry *best = NULL;
    for (unsigned steps = 0; low > 0 && steps < STEPS_MAX; steps++) {
        const struct target_code_entry *entry = &map->entries[--low];
        if (address < entry->end && entry->written_ns <= at_ns && (!best || entry->order > best->order))
            best = entry;
    }
    return best;
}

void target_code_map_tell(const struct target_code_map *map, const struct target_code_entry *entry,
                          struct qut_made_code *code)
{
    *code = (struct qut_made_code){.start = entry->start, .end = entry->end};
    memcpy(code->name, map->text + entry->name_offset, entry->name_bytes);
}

void target_code_map_free(struct target_code_map *map)
{
    free(map->text);
    free(map->entries);
    *map = (struct target_code_map){0};
}

bool target_code_map_is_due(const struct target_code_map *map, uint64_t now_ns)
{
    return now_ns >= map->due_ns;
}

void target_code_map_rest(struct target_code_map *map, uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t rest_ns = (end_ns - begin_ns) * WAIT_FACTOR;
    map->due_ns = end_ns + (rest_ns > WAIT_LEAST_MS * 1000000u ? rest_ns : WAIT_LEAST_MS * 1000000u);
}

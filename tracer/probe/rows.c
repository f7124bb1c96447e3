// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "tracer/probe/show.h"

struct widths {
    uint32_t key, values;
};

static int compare_keys(const void *a, const void *b, void *context)
{
    const struct probe_row *x = a, *y = b;
    return memcmp(x->key, y->key, ((const struct widths *)context)->key * sizeof *x->key);
}

// Where weights are the same, by the first part of the key.
static int compare_weights(const void *a, const void *b, void *context)
{
    const struct probe_row *x = a, *y = b;
    const uint32_t words = ((const struct widths *)context)->key;
    if (x->weight != y->weight)
        return x->weight < y->weight ? -1 : 1;
    for (uint32_t i = words; i-- > 0;)
        if (x->key[i] != y->key[i])
            return x->key[i] < y->key[i] ? -1 : 1;
    return 0;
}

static double weight_of(const struct qut_probe_map *map, const struct probe_row *row)
{
    if (map->kind == QUT_PROBE_HIST || map->kind == QUT_PROBE_LHIST)
        return (double)row->updates;
    const double number = (double)bytecode_maps_number(map, row->values[0]);
    return map->kind == QUT_PROBE_AVG ? number / (double)row->updates : number;
}

static void join_same(struct probe_rows *rows, const struct qut_probe_map *map, struct widths widths)
{
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++) {
        struct probe_row *row = &rows->items[i], *last = kept ? &rows->items[kept - 1] : NULL;
        if (!last || memcmp(last->key, row->key, widths.key * sizeof *row->key) != 0) {
            rows->items[kept++] = *row;
            continue;
        }
        last->updates += row->updates;
        uint64_t *values = (uint64_t *)(uintptr_t)last->values; // of rows->words
        for (uint32_t n = 0; map->kind != QUT_PROBE_VALUE && n < widths.values; n++)
            values[n] = bytecode_maps_join(map, values[n], row->values[n]);
    }
    rows->count = kept;
}

static int read_slots(struct probe_rows *rows, const struct bytecode_maps *maps, uint32_t map, struct widths widths)
{
    const uint32_t slots = maps->maps[map].slot_count;
    struct bytecode_slot slot;
    size_t used = 0;
    for (uint32_t i = 0; i < slots; i++)
        used += bytecode_maps_slot(maps, map, i, &slot);
    if (used == 0)
        return 0;
    rows->words = calloc(used, (widths.key + (size_t)widths.values) * sizeof *rows->words);
    if (!rows->words || !BASE_RESERVE(rows, used))
        return -1;
    uint64_t *at = rows->words;
    // More of them may have come meanwhile: next time.
    for (uint32_t i = 0; i < slots && rows->count < used; i++) {
        if (!bytecode_maps_slot(maps, map, i, &slot))
            continue;
        rows->items[rows->count++] = (struct probe_row){.key = at, .values = at + widths.key, .updates = slot.updates};
        for (uint32_t n = 0; n < widths.key; n++)
            *at++ = __atomic_load_n(slot.key + n, __ATOMIC_RELAXED);
        for (uint32_t n = 0; n < widths.values; n++)
            *at++ = __atomic_load_n(slot.values + n, __ATOMIC_RELAXED);
    }
    return 0;
}

int probe_rows_read(struct probe_rows *rows, const struct probe_script *script, const struct bytecode_maps *maps,
                    uint32_t map)
{
    const struct qut_probe_map *read = &qut_probe_parts(script->image).maps[map];
    struct widths widths = {read->key_words, qut_probe_value_words(read)};
    *rows = (struct probe_rows){.words = NULL};
    if (read_slots(rows, maps, map, widths) != 0) {
        probe_rows_free(rows);
        return -1;
    }
    if (rows->count == 0)
        return 0;
    qsort_r(rows->items, rows->count, sizeof *rows->items, compare_keys, &widths);
    join_same(rows, read, widths);
    for (size_t i = 0; i < rows->count; i++)
        rows->items[i].weight = weight_of(read, &rows->items[i]);
    qsort_r(rows->items, rows->count, sizeof *rows->items, compare_weights, &widths);
    return 0;
}

void probe_rows_free(struct probe_rows *rows)
{
    free(rows->words);
    base_vector_free(&rows->vector);
    rows->words = NULL;
}

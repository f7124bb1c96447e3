// SPDX-License-Identifier: Apache-2.0
// A map is a table of slots, which are looked for from where the key's hash says:
//
//   lost | slot: state, updates, key, values | slot ...
//
// A slot belongs to who changes its state from FREE; its key is there when it is READY. Who finds one BEGUN passes it:
// it may be one's own, in a signal handler that has come in between. Every value is stored so that it is 0 as long as
// nothing was added.
#include "bytecode/maps.h"

#include <stddef.h>

enum { FREE = 0, BEGUN = 1, READY = 2 };
enum { STATE, UPDATES, KEY }; // words of a slot
enum { TRIES_MAX = 1024 };

#define SIGN (UINT64_C(1) << 63)

void bytecode_maps_lay_out(struct bytecode_maps *maps, const struct qut_probe_image *image)
{
    *maps = (struct bytecode_maps){.map_count = image->header->map_count};
    for (uint32_t i = 0; i < maps->map_count; i++) {
        struct bytecode_map *map = &maps->maps[i];
        map->map = &image->maps[i];
        map->at = maps->words;
        map->slot_words = KEY + map->map->key_words + qut_probe_value_words(map->map);
        map->slot_count = map->map->key_words ? BYTECODE_MAP_SLOTS : 1;
        while ((uint64_t)map->slot_count * map->slot_words * 8 > BYTECODE_MAP_BYTES_MAX)
            map->slot_count /= 2;
        maps->words += 1 + (uint64_t)map->slot_count * map->slot_words;
    }
}

static uint64_t *slot_at(const struct bytecode_maps *maps, const struct bytecode_map *map, uint32_t index)
{
    return maps->memory + map->at + 1 + (uint64_t)index * map->slot_words;
}

static uint64_t load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void add(uint64_t *word, uint64_t value)
{
    __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}

// ---- slots

static uint32_t hash_of(const uint64_t *key, uint32_t words)
{
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t i = 0; i < words; i++) {
        hash = (hash ^ key[i]) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

static bool has_key(const uint64_t *slot, const uint64_t *key, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++)
        if (load(slot + KEY + i) != key[i])
            return false;
    return true;
}

static bool take(uint64_t *slot, const uint64_t *key, uint32_t words)
{
    uint64_t state = FREE;
    if (!__atomic_compare_exchange_n(slot + STATE, &state, BEGUN, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return false;
    for (uint32_t i = 0; i < words; i++)
        __atomic_store_n(slot + KEY + i, key[i], __ATOMIC_RELAXED);
    __atomic_store_n(slot + STATE, READY, __ATOMIC_RELEASE);
    return true;
}

// NULL: there is none.
static uint64_t *find(const struct bytecode_maps *maps, const struct bytecode_map *map, const uint64_t *key,
                      bool may_be_new)
{
    const uint32_t words = map->map->key_words, begin = hash_of(key, words);
    // Without a key nothing has to be there before all may have it. Two threads that came first lost one's word.
    if (words == 0) {
        uint64_t *slot = slot_at(maps, map, 0);
        if (may_be_new && load(slot + STATE) != READY)
            __atomic_store_n(slot + STATE, READY, __ATOMIC_RELEASE);
        return load(slot + STATE) == READY ? slot : NULL;
    }
    for (uint32_t i = 0; i < BYTECODE_MAP_LOOKS_MAX && i < map->slot_count; i++) {
        uint64_t *slot = slot_at(maps, map, (begin + i) & (map->slot_count - 1));
        const uint64_t state = __atomic_load_n(slot + STATE, __ATOMIC_ACQUIRE);
        if (state == READY && has_key(slot, key, words))
            return slot;
        if (state == FREE && !may_be_new)
            return NULL;
        if (state == FREE && take(slot, key, words))
            return slot;
        // Somebody was faster, maybe with the same key.
        if (state == FREE && __atomic_load_n(slot + STATE, __ATOMIC_ACQUIRE) == READY && has_key(slot, key, words))
            return slot;
    }
    return NULL;
}

// ---- values

// Of two stored ones the greater one is meant.
static bool is_extreme(const struct qut_probe_map *map)
{
    return map->kind == QUT_PROBE_MIN || map->kind == QUT_PROBE_MAX;
}

static bool put_greater(uint64_t *word, uint64_t stored)
{
    uint64_t now = load(word);
    for (unsigned i = 0; i < TRIES_MAX; i++)
        if (now >= stored || __atomic_compare_exchange_n(word, &now, stored, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return true;
    return false;
}

// In the order of signed numbers, the least one 0; of minima the other way round.
static uint64_t stored_extreme(const struct qut_probe_map *map, uint64_t value)
{
    return map->kind == QUT_PROBE_MAX ? value ^ SIGN : ~(value ^ SIGN);
}

uint32_t bytecode_maps_cell(const struct qut_probe_map *map, int64_t value)
{
    if (map->kind == QUT_PROBE_HIST)
        return value < 0 ? 0 : value == 0 ? 1 : 65u - (uint32_t)__builtin_clzll((uint64_t)value);
    if (value < map->low)
        return 0;
    const uint64_t step = ((uint64_t)value - (uint64_t)map->low) / (uint64_t)map->step;
    return (uint32_t)(step < map->steps ? step : map->steps) + 1;
}

int64_t bytecode_maps_cell_begin(const struct qut_probe_map *map, uint32_t cell)
{
    if (cell == 0)
        return INT64_MIN;
    if (map->kind == QUT_PROBE_HIST)
        return cell == 1 ? 0 : (int64_t)(UINT64_C(1) << (cell - 2));
    return map->low + (int64_t)(cell - 1) * map->step;
}

void bytecode_maps_aggregate(const struct bytecode_maps *maps, uint32_t number, const uint64_t *key, uint64_t value)
{
    const struct bytecode_map *map = &maps->maps[number];
    uint64_t *slot = find(maps, map, key, true);
    uint64_t *values = slot ? slot + KEY + map->map->key_words : NULL;
    bool is_added = slot != NULL;
    if (is_added) {
        switch (map->map->kind) {
        case QUT_PROBE_MIN:
        case QUT_PROBE_MAX: is_added = put_greater(values, stored_extreme(map->map, value)); break;
        case QUT_PROBE_HIST:
        case QUT_PROBE_LHIST:
            add(values + bytecode_maps_cell(map->map, (int64_t)value), 1);
            add(values + qut_probe_cells(map->map), value);
            break;
        case QUT_PROBE_VALUE: __atomic_store_n(values, value, __ATOMIC_RELAXED); break;
        default: add(values, value); break;
        }
    }
    add(is_added ? slot + UPDATES : maps->memory + map->at, 1);
}

uint64_t bytecode_maps_lookup(const struct bytecode_maps *maps, uint32_t number, const uint64_t *key)
{
    const struct bytecode_map *map = &maps->maps[number];
    const uint64_t *slot = find(maps, map, key, false);
    return slot ? load(slot + KEY + map->map->key_words) : 0;
}

void bytecode_maps_clear(const struct bytecode_maps *maps, uint32_t number)
{
    const struct bytecode_map *map = &maps->maps[number];
    for (uint32_t i = 0; i < map->slot_count; i++) {
        uint64_t *slot = slot_at(maps, map, i);
        if (__atomic_load_n(slot + STATE, __ATOMIC_ACQUIRE) != READY)
            continue;
        __atomic_store_n(slot + UPDATES, 0, __ATOMIC_RELAXED);
        for (uint32_t n = KEY + map->map->key_words; n < map->slot_words; n++)
            __atomic_store_n(slot + n, 0, __ATOMIC_RELAXED);
    }
}

// ---- for the reader

uint64_t bytecode_maps_lost(const struct bytecode_maps *maps, uint32_t map)
{
    return load(maps->memory + maps->maps[map].at);
}

bool bytecode_maps_slot(const struct bytecode_maps *maps, uint32_t number, uint32_t index, struct bytecode_slot *slot)
{
    const struct bytecode_map *map = &maps->maps[number];
    const uint64_t *words = slot_at(maps, map, index);
    if (__atomic_load_n(words + STATE, __ATOMIC_ACQUIRE) != READY)
        return false;
    slot->key = words + KEY;
    slot->values = slot->key + map->map->key_words;
    slot->updates = load(words + UPDATES);
    return slot->updates != 0;
}

int64_t bytecode_maps_number(const struct qut_probe_map *map, uint64_t stored)
{
    if (!is_extreme(map))
        return (int64_t)stored;
    return (int64_t)((map->kind == QUT_PROBE_MAX ? stored : ~stored) ^ SIGN);
}

uint64_t bytecode_maps_join(const struct qut_probe_map *map, uint64_t stored, uint64_t other)
{
    return !is_extreme(map) ? stored + other : stored > other ? stored : other;
}

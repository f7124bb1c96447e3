// SPDX-License-Identifier: Apache-2.0
// The maps of an image that bytecode_verify took, in memory that the program's threads and the tool share. Where what
// lies is computed from the image on either side: nothing in the memory is believed, and what others write there can
// make numbers wrong, and nothing else.
//
// Signal-safe, lock-free, no allocation; any number of threads and processes; each call takes a bounded time.
#ifndef BYTECODE_MAPS_H
#define BYTECODE_MAPS_H

#include "formats/qut_probe.h"

enum {
    BYTECODE_MAP_SLOTS = 4096,        // of a map with a key; fewer where they are large
    BYTECODE_MAP_BYTES_MAX = 8 << 20, // of one map
    BYTECODE_MAP_LOOKS_MAX = 64,      // slots that are looked at for one key
};

struct bytecode_maps {
    uint64_t *memory; // the caller's, zeros at the beginning, `words` of them
    uint64_t words;
    struct bytecode_map {
        const struct qut_probe_map *map;
        uint64_t at;                     // word of its first one: how often there was no slot
        uint32_t slot_count, slot_words; // a power of two
    } maps[QUT_PROBE_MAPS_MAX];
    uint32_t map_count;
};

// Where what lies; memory is NULL then. The image's tables are used as long as the maps are.
void bytecode_maps_lay_out(struct bytecode_maps *maps, const struct qut_probe_image *image);

// What the helpers do. `key` has as many words as the map's keys have.
void bytecode_maps_aggregate(const struct bytecode_maps *maps, uint32_t map, const uint64_t *key, uint64_t value);
uint64_t bytecode_maps_lookup(const struct bytecode_maps *maps, uint32_t map, const uint64_t *key);
// All that has been added is taken away again; keys stay. What comes meanwhile is there before, or behind.
void bytecode_maps_clear(const struct bytecode_maps *maps, uint32_t map);

// How often something could not be added, since there was no slot for its key.
uint64_t bytecode_maps_lost(const struct bytecode_maps *maps, uint32_t map);

// A key's slot. Two slots may have the same key, if two threads came with it at the same time: sums are those of both.
struct bytecode_slot {
    const uint64_t *key;
    uint64_t updates;       // how often something was added
    const uint64_t *values; // qut_probe_value_words; bytecode_maps_number reads those of one word
};
// False: nothing is in it, or nothing was added since it was cleared.
bool bytecode_maps_slot(const struct bytecode_maps *maps, uint32_t map, uint32_t index, struct bytecode_slot *slot);
// The number of count, sum, min, max, value; the sum of avg.
int64_t bytecode_maps_number(const struct qut_probe_map *map, uint64_t stored);
// What is stored of two slots with the same key. Not of kind value: there the first one is right.
uint64_t bytecode_maps_join(const struct qut_probe_map *map, uint64_t stored, uint64_t other);
// The cell of a histogram that a value belongs into, and where a cell begins: the first one has no begin.
uint32_t bytecode_maps_cell(const struct qut_probe_map *map, int64_t value);
int64_t bytecode_maps_cell_begin(const struct qut_probe_map *map, uint32_t cell);

#endif

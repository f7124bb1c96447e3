// SPDX-License-Identifier: Apache-2.0
// Names of code by address, as the compiler that made it writes them down while the process runs. What was written
// later holds where several have an address: code was put in place of other code.
#ifndef QUT_TARGET_CODE_MAP_H
#define QUT_TARGET_CODE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <qut/target.h>

struct target_code_entry {
    uint64_t start, end;
    size_t name_offset; // in the map's text
    uint32_t name_bytes;
    uint32_t order;      // in which they were written
    uint64_t written_ns; // 0: not told
    uint64_t code_at;    // in the file that has a copy of the code; 0: none has
};

struct target_code_map {
    char *text; // the names
    size_t text_bytes, text_capacity;
    struct target_code_entry *entries; // by start, then by order, once they were settled
    size_t count, capacity;
    uint64_t due_ns; // when it may be read again
};

// Copies a name, for entry->name_offset and name_bytes. False: no memory.
bool target_code_map_add_name(struct target_code_map *map, const char *name, size_t bytes,
                              struct target_code_entry *entry);
// One that was written behind all others. False: no memory.
bool target_code_map_add(struct target_code_map *map, const struct target_code_entry *entry);
// Sorts what was added.
void target_code_map_settle(struct target_code_map *map);
// The latest that has the address and was written at at_ns or before. NULL: none.
const struct target_code_entry *target_code_map_find(const struct target_code_map *map, uint64_t address,
                                                     uint64_t at_ns);
void target_code_map_tell(const struct target_code_map *map, const struct target_code_entry *entry,
                          struct qut_made_code *code);
void target_code_map_free(struct target_code_map *map);

// Whether it may be read now; and that it was, from begin_ns on: it rests many times as long.
bool target_code_map_is_due(const struct target_code_map *map, uint64_t now_ns);
void target_code_map_rest(struct target_code_map *map, uint64_t begin_ns, uint64_t end_ns);

#endif

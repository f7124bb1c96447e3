// SPDX-License-Identifier: Apache-2.0
// What programs have gathered, for people and for other programs: maps sorted by their values, histograms with bars,
// and what printf says. Allocates; blocks as the stream does.
#ifndef TRACER_PROBE_SHOW_H
#define TRACER_PROBE_SHOW_H

#include <stdio.h>

#include "base/json.h"
#include "bytecode/maps.h"
#include "tracer/probe/script.h"

// Rows of a map as they are now: a key once each, the least value first. -1: no memory.
struct probe_row {
    const uint64_t *key, *values; // as the map has them; those of slots with the same key are joined
    uint64_t updates;
    double weight; // by which they are sorted: the value, or how many there are
};
struct probe_rows {
    BASE_VECTOR(struct probe_row);
    uint64_t *words;
};
int probe_rows_read(struct probe_rows *rows, const struct probe_script *script, const struct bytecode_maps *maps,
                    uint32_t map);
void probe_rows_free(struct probe_rows *rows);

// Who knows stacks. Where there is nobody (NULL), and where it gives 0, a stack is shown by its number.
struct probe_stacks {
    // The frames of a stack, innermost first, and how many.
    size_t (*find)(struct probe_stacks *stacks, uint64_t number, const char *const **frames);
};
// "stack 0123456789abcdef:", and its frames.
void probe_show_stack(FILE *out, struct probe_stacks *stacks, uint64_t number);
void probe_show_stack_json(struct base_json *json, struct probe_stacks *stacks, uint64_t number);

// "@name[KEY, ...]" within a line: of a stack its frames, the innermost one first, with " <- " between. malloc's; NULL:
// no memory. *is_known: whether somebody has the frames of all its stacks; else there are numbers.
char *probe_show_key(const struct probe_map *map, const uint64_t *key, struct probe_stacks *stacks, bool *is_known);

// A line for each key, or a histogram. -1: no memory.
int probe_show_map(FILE *out, const struct probe_script *script, const struct bytecode_maps *maps, uint32_t map,
                   struct probe_stacks *stacks);
// One object: name, kind, rows; elements of an open array, or the outermost one.
int probe_show_map_json(struct base_json *json, const struct probe_script *script, const struct bytecode_maps *maps,
                        uint32_t map, struct probe_stacks *stacks);
// The words of a record, as its printf has it. Texts that do not end, and characters that a terminal would obey, are
// shown as such.
void probe_show_record(FILE *out, const struct probe_script *script, uint32_t record, const uint64_t *words,
                       struct probe_stacks *stacks);

#endif

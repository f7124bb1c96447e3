// SPDX-License-Identifier: Apache-2.0
// Traces of several processes made one: modules, nodes and texts that are equal become one, the rest is put behind what
// is there. What is added may be freed afterwards.
#ifndef TRACER_TRACE_MERGE_H
#define TRACER_TRACE_MERGE_H

#include "tracer/trace/memory.h"
#include "tracer/trace/trace.h"

// Things by their hashes: index + 1 in an array that somebody else has.
struct merge_table {
    uint32_t *places; // a power of two of them, at most half full
    size_t place_count;
    uint64_t *hashes; // of each thing
    size_t count;
};
typedef bool merge_equal(const void *context, uint32_t index, const void *key);
// The index of the thing that is equal to `key`; TRACE_NONE: there is none, or no memory (then *place is NULL). The new
// thing's index, if it is put there, is table->count.
uint32_t merge_find(struct merge_table *table, uint64_t hash, merge_equal *equal, const void *context, const void *key,
                    uint32_t **place);
void merge_put(struct merge_table *table, uint32_t *place, uint64_t hash);
void merge_table_free(struct merge_table *table);
uint64_t merge_hash(uint64_t hash, uint64_t word);

struct merger {
    struct trace_memory *memory; // of what comes out
    struct trace trace;          // its sums; its arrays are the vectors below
    struct trace_vector modules, nodes, threads, samples, extras, metrics, marks, gaps, processes, notes, damages,
        texts;
    struct merge_table module_table, node_table, text_table;
    uint32_t *module_map, *node_map; // of the part that is added: its index to ours
    size_t module_room, node_room;
    uint32_t uid;        // the largest
    uint64_t died_count; // parts whose process ended without closing its trace
    uint64_t flow_salt;
    uint16_t kind_map[QUT_TRACE_OWN_KIND_COUNT];
};

// merge_tables.c. The same text once; NULL: no memory, or it was NULL.
const char *merge_text(struct merger *merger, const char *text);
// Fill the maps. False: no memory, or too many.
bool merge_modules(struct merger *merger, const struct trace *part);
bool merge_nodes(struct merger *merger, const struct trace *part);

bool merge_begin(struct merger *merger); // false: no memory
// Adds a part, or the notes of the whole recording. -1, *error filled: no memory, or too many of something.
int merge_add(struct merger *merger, const struct trace *part, struct qutc_error *error);
int merge_add_notes(struct merger *merger, const struct trace_note *notes, size_t count, struct qutc_error *error);
void merge_damage(struct merger *merger, const char *text);
// *trace stands in merger->memory then, which is its own.
int merge_end(struct merger *merger, struct trace *trace, struct qutc_error *error);
void merge_free(struct merger *merger); // all but the memory

#endif

// SPDX-License-Identifier: Apache-2.0
// Traces of several processes, or of several files, made one: modules, nodes and texts that are equal become one, the
// rest is put behind what is there. What is added may be freed afterwards.
#ifndef TRACER_TRACE_MERGE_H
#define TRACER_TRACE_MERGE_H

#include "base/hash_index.h"
#include "tracer/trace/trace_data.h"
#include "tracer/trace/trace_memory.h"

struct merger {
    struct trace_memory *memory; // of what comes out
    struct trace trace;          // its sums; its arrays are the vectors below
    struct trace_vector modules, nodes, threads, samples, extras, metrics, marks, gaps, processes, notes, own_notes,
        damages, texts, recordings, calls; // calls: struct call_events *; the trace's in the end
    struct base_hash_index module_index, trace_node_index, text_index;
    BASE_VECTOR(uint32_t) module_map; // of the part that is added: its index to ours
    BASE_VECTOR(uint32_t) node_map;
    uint32_t *thread_map; // in the end: where threads are that were added before
    uint32_t uid;         // the largest
    uint64_t died_count;  // parts whose process ended without closing its trace
    uint64_t flow_salt;
    uint16_t kind_map[QUT_TRACE_OWN_KIND_COUNT];
    const char *damage_of; // whose damage it is: a recording's name; NULL: a process's
    bool is_of_recordings; // a file with a build-id is the same wherever it lay
};

// merge_tables.c. The same text once; NULL: no memory, or it was NULL.
const char *trace_merge_text(struct merger *merger, const char *text);
// Fill the maps. False: no memory, or too many.
bool trace_merge_modules(struct merger *merger, const struct trace *part);
bool trace_merge_nodes(struct merger *merger, const struct trace *part);

bool trace_merge_begin(struct merger *merger); // false: no memory
// Adds a part. -1, *error filled: no memory, or too many of something.
int trace_merge_add(struct merger *merger, const struct trace *part, struct base_error *error);
// *trace stands in merger->memory then, which is its own.
int trace_merge_end(struct merger *merger, struct trace *trace, struct base_error *error);
void trace_merge_free(struct merger *merger); // all but the memory, which goes after it, and what the trace has

#endif

// SPDX-License-Identifier: Apache-2.0
// The steps from an image to a trace, in this order: modules and strings, nodes, records, threads.
#ifndef TRACER_TRACE_INSIDE_H
#define TRACER_TRACE_INSIDE_H

#include "tracer/trace/raw_trace.h"

// ---- loaded_modules.c

// The text of a string id; "" where it is none. Stays where the image's strings are.
const char *trace_image_string(const struct image *image, uint64_t id);

// Modules in an order in which they are searched.
struct place_list {
    uint32_t *modules; // indices, by the address searched for
    uint64_t *ends;    // the largest end of this one and all before it: where the search for others may stop
    size_t count;
};
struct places {
    const struct trace_module *modules;
    struct place_list by_code, by_address[3];
};
enum place_kind { PLACE_ANY, PLACE_JIT, PLACE_FILE };

int trace_build_modules(struct image *image, struct trace *trace, struct places *places, struct base_error *error);
// The module that has an address of code space, or an address in memory; TRACE_NONE.
uint32_t trace_place_of_code(const struct places *places, uint64_t code);
uint32_t trace_place_of_address(const struct places *places, enum place_kind kind, uint64_t address);

// ---- nodes.c

struct node_map {
    uint32_t *index; // by id; 0: none, or not numbered yet (root: 0)
    size_t capacity;
    struct trace_vector nodes; // struct trace_node
    uint32_t damaged;          // the node that stands for those that cannot be read; 0: there was no need
    uint64_t damaged_count;
};
int trace_build_nodes(struct image *image, const struct places *places, struct node_map *map, struct base_error *error);
// The index of a sample's node; one that is not there becomes the damaged one. UINT32_MAX: no memory.
uint32_t trace_node_index(struct node_map *map, uint64_t id);

// ---- decode.c

struct decoder {
    const struct image *image;
    struct node_map *nodes;
    struct trace_vector samples, extras, marks, metrics;
    unsigned time_shift;
};
struct decoded {
    uint64_t samples;                 // those that were merged included
    uint64_t first_record_ns, end_ns; // time of the first and the last record; both 0 where there is none
    uint64_t end_time;                // units, where the next chunk goes on
    bool is_damaged;                  // records up to a malformed one
};
// Adds the records of a chunk, and of the run that is open in it (NULL: none). False: no memory.
bool trace_decode_chunk(struct decoder *decoder, const struct image_chunk *chunk, const struct qut_trace_run *run,
                        struct decoded *decoded);

// ---- gaps.c

// What is missing between the chunks of one writer.
struct gap_finder {
    struct trace_vector gaps; // struct trace_gap
    enum trace_gap_reason missing_reason;
    unsigned time_shift;
    uint64_t end_time, lost; // of the chunk before
    bool has_chunk;
    bool failed;
};
void trace_gaps_begin(struct gap_finder *finder, uint64_t start_ns);
void trace_gaps_chunk(struct gap_finder *finder, const struct qut_trace_chunk *header, const struct decoded *decoded,
                      uint64_t lost_at_end);
// `writer`: its state, where that is known. To `end_ns` it may have lost some more.
void trace_gaps_end(struct gap_finder *finder, const struct qut_trace_file_writer *writer, uint64_t end_ns);

// ---- trace_threads.c

// All threads with their records; fills the trace's samples, extras, metrics, marks, gaps, present_samples; and adds
// what threads that have a slot counted to the trace's sums.
int trace_build_threads(struct image *image, struct trace *trace, struct node_map *nodes, struct base_error *error);

void trace_counts_add(struct qut_trace_counts *sum, const struct qut_trace_counts *more);

#endif

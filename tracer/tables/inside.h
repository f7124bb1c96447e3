// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_TABLES_INSIDE_H
#define TRACER_TABLES_INSIDE_H

#include "base/hash_index.h"
#include "base/interner.h"
#include "tracer/tables/tables.h"

enum { TABLES_KINDS = QUT_TRACE_OWN_KIND_FIRST + QUT_TRACE_OWN_KIND_COUNT };
#define TABLES_REPEATED (UINT32_C(1) << 31) // of places: the same function stands further out in the same stack

struct tables_frame {
    uint32_t node, inlined; // where it was met first
    const char *function, *module, *path, *build_id, *file;
};

struct tables_stack {
    int64_t number; // not 0
    uint32_t node;  // that it ends in, the first of several
};

struct tables_stack_at {
    int64_t number;
    uint32_t stack; // of `stacks`
};

struct tables_process { // of a thread
    uint32_t pid, tid;
    const char *name;
};

struct tables {
    const struct trace *whole;
    const struct names *names;
    struct selection selection;
    struct base_interner texts;
    int64_t id;
    char date[16];
    const char *host, *service, *version, *path, *command;
    const char *kind_names[TABLES_KINDS + 1]; // events; the last: unknown
    struct tables_process *threads;           // of each of the selection's
    // Each name of each node that is used has a place: first_place[node] is that of its innermost one.
    uint32_t *first_place;
    uint32_t *places; // the frame, | TABLES_REPEATED
    size_t place_count;
    struct {
        BASE_VECTOR(struct tables_frame);
    } frames;
    struct base_hash_index frame_index;
    // In rising order of their nodes; the rows of stack i begin with first_row[i]. One more of these at the end.
    struct tables_stack *stacks;
    uint64_t *first_row;
    struct tables_stack_at *by_number; // all of them, ascending
    uint32_t *stack_of;                // of each node: 1 + the stack that ends there; 0: none
    size_t stack_count;
    uint32_t *by_stack; // tables_samples_by_stack
    bool *is_own;       // of each node: ticks that end in it met our own work
};

// Of nodes, in used[]: samples' stacks go through it, or end in it.
enum { TABLES_GOES_THROUGH = 1, TABLES_ENDS = 2 };

// make_stacks.c. False: no memory.
bool tables_make_stacks(struct tables *tables);
// number_stacks.c: fills `stacks`, `by_number`, `stack_of`. False: no memory.
bool tables_number_stacks(struct tables *tables, const uint8_t *used);
// The cell of table frames.
uint64_t tables_frame_address(const struct tables *tables, uint64_t frame);
// UTF-8 that lives as long as the tables; NULL: no memory. `text` NULL is "".
const char *tables_keep_text(struct tables *tables, const char *text);

static inline uint32_t tables_name_count(const struct tables *tables, uint32_t node)
{
    return (uint32_t)names_count(tables->names, node);
}

#endif

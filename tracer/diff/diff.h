// SPDX-License-Identifier: Apache-2.0
// Two sets of recordings, A and B, compared by function. Functions are the same where their names are, without what
// compilers put behind them (f.cold, f.isra.0), in libraries of the same name (up to ".so"), or in no library: a
// program may have another name now. Code without names is one function a module: its addresses mean something in one
// build only.
//
// Recordings are read one after the other; what is kept of each are sums by function, and one tree of functions for
// all.
#ifndef TRACER_DIFF_DIFF_H
#define TRACER_DIFF_DIFF_H

#include <stdio.h>

#include "base/error.h"
#include "base/interner.h"
#include "tracer/analysis/selection.h"
#include "tracer/diff/judge.h"
#include "tracer/export/sink/sink.h"
#include "tracer/names/names.h"

enum diff_side { DIFF_A, DIFF_B };

struct diff_function {
    uint32_t name, module; // strings
};

// Of a function in one recording. In `samples`: weights.
struct diff_samples {
    uint64_t self, total, self_told, total_told;
};
struct diff_calls {
    uint64_t count; // those that were only counted, too
    uint64_t told;  // that made events: what follows is of these
    uint64_t total_ns, self_ns;
};

struct diff_recording {
    uint32_t path; // string
    uint64_t sum;  // of weights
    uint64_t samples, own;
    struct share_basis basis;
    double seconds;
    bool has_calls, is_complete;
};

// A frame of the tree: 0 is the root. Parents stand before their children.
struct diff_frame {
    uint32_t parent, function;
    uint64_t self[2]; // weights, of all recordings of a side
};

struct diff_row {
    uint32_t function;
    uint64_t self[2], total[2]; // of all recordings of a side
    struct judge_item by_self, by_total;
};
struct diff_call_row {
    uint32_t function;
    struct diff_calls of[2];   // of all recordings of a side
    struct judge_item by_mean; // ns of a call
};

struct diff {
    size_t recordings[2];
    struct diff_recording *told; // A's, then B's
    size_t added[2];
    enum selection_kind kind; // as the first recording has it
    enum measure measure;
    bool by_amount; // what is judged: amounts of a recording, else shares
    struct base_interner strings;
    struct {
        BASE_VECTOR(struct diff_function);
    } functions;
    struct base_hash_index function_index;
    struct {
        BASE_VECTOR(struct diff_samples);
    } samples; // of function f in recording r: [f * all recordings + r]
    struct {
        BASE_VECTOR(struct diff_calls);
    } calls; // likewise
    struct {
        BASE_VECTOR(struct diff_frame);
    } frames;
    struct base_hash_index frame_index;
    // diff_finish:
    struct share_basis basis[2];
    struct diff_row *rows; // the largest change of self first, told ones before others
    size_t row_count;
    struct diff_call_row *call_rows; // the largest change of self time first
    size_t call_row_count;
    double *values;
};

struct diff_wanted {
    struct selection_wanted part; // kind SELECTION_MAIN: that of the first recording, of all
    int weight;                   // enum measure; -1: the kind's own
    bool by_amount, show_agent;
};

// Functions return 0, or -1 with *error filled. `diff` is to be freed after any of them.
int diff_begin(struct diff *diff, const size_t recordings[2], struct base_error *error);
// Selects of the trace what is wanted. `selection` is of the whole trace that names are of. Recordings of A and B come
// in any order, as many as were said.
int diff_select(struct selection *selection, const struct trace *trace, const struct diff *diff,
                const struct diff_wanted *wanted, struct base_error *error);
int diff_add(struct diff *diff, enum diff_side side, const struct selection *selection, const struct names *names,
             const struct diff_wanted *wanted, struct base_error *error);
int diff_finish(struct diff *diff, struct base_error *error);
void diff_free(struct diff *diff);

bool diff_has_samples(const struct diff *diff); // on both sides
bool diff_has_calls(const struct diff *diff);   // on both sides
// How many rows of the samples are told as more, or less.
size_t diff_count(const struct diff *diff, enum judge_verdict verdict);
bool diff_row_is_told(const struct diff_row *row);

// How long of a name is the function itself: "f(int) [clone .cold]", "f.isra.0".
size_t diff_name_length(const char *name);

// Text: at most `limit` rows of each table. columns of a line; 0: without a bound.
void diff_print_text(const struct diff *diff, size_t limit, unsigned columns, FILE *output);
// One HTML page that needs nothing else. What goes wrong with writing is the sink's.
int diff_write_page(const struct diff *diff, struct sink *sink, struct base_error *error);
// limit 0: all rows. with_tree: the tree of functions, too.
void diff_print_json(const struct diff *diff, size_t limit, bool with_tree, FILE *output);

#endif

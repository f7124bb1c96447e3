// SPDX-License-Identifier: Apache-2.0
// Nodes as settled .qtrace files have them: in the order of a walk through the tree, so that a node's parent is told by
// how far the walk went back, and ids need not be told at all. Codes stand once, in a list of their own.
#ifndef TRACER_TRACE_FILE_TREE_H
#define TRACER_TRACE_FILE_TREE_H

#include "base/cursor_inline.h"
#include "formats/qut_trace_file.h"
#include "tracer/trace/trace_memory.h"

// The tree, numbered anew.
struct trace_tree {
    uint64_t *words; // by new id, with the parents' new ids; words[0] is 0
    size_t count;    // with the root
    uint32_t *ids;   // by old id; 0: none
};
// False: no memory, or a node has no way to the root.
bool trace_tree_number(struct trace_tree *tree, const uint64_t *nodes, size_t capacity, struct trace_memory *memory);

// Writes nodes from `first` on, at most QUT_TRACE_FILE_TREE_NODES_MAX, *next behind them. Returns the size; 0: no
// memory.
size_t trace_tree_write(uint8_t to[QUT_TRACE_FILE_BLOCK_BYTES_MAX], const struct trace_tree *tree, size_t first,
                        size_t *next, struct trace_memory *memory);
// Puts words where they belong. False: malformed, and what was read till then is in; or *no_memory. *end grows to what
// is behind the last.
bool trace_tree_read(struct base_bytes bytes, uint64_t *words, size_t capacity, size_t *end, bool *no_memory);

#endif

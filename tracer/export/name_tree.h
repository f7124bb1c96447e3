// SPDX-License-Identifier: Apache-2.0
// The frames of a trace by the text that they have in a format: nodes that differ only in where they are in a function
// are one, and all are in the order of their text.
#ifndef TRACER_EXPORT_NAME_TREE_H
#define TRACER_EXPORT_NAME_TREE_H

#include "tracer/export/export.h"
#include "tracer/export/sink/sink.h"

struct name_tree {
    uint32_t *rank; // of each node of the trace: the same where the text is. A caller's is smaller than its callees'
};

// `write` gives a function's text. Returns 0, or -1 without memory.
int export_name_tree_make(struct name_tree *tree, const struct trace *trace, const struct names *names,
                          void (*write)(const struct name *name, struct sink *sink));
void export_name_tree_free(struct name_tree *tree);

#endif

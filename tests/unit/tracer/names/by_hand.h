// SPDX-License-Identifier: Apache-2.0
// Traces that are written down, not recorded: modules, and nodes in them.
#ifndef TESTS_UNIT_TRACER_NAMES_BY_HAND_H
#define TESTS_UNIT_TRACER_NAMES_BY_HAND_H

#include "tracer/names/names.h"

// An empty trace with a root. Free with by_hand_free.
struct trace by_hand_trace(void);
void by_hand_free(struct trace *trace);

// A module; with_build_id: as the file at `file` has it (which must have one). Returns its index.
uint32_t by_hand_module(struct trace *trace, const char *path, const char *file, uint32_t flags);

// A child of the root. Returns its index.
uint32_t by_hand_node(struct trace *trace, uint32_t module, uint64_t pc, unsigned class_);
uint32_t by_hand_label(struct trace *trace, const char *label, unsigned class_);

#endif

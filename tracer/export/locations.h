// SPDX-License-Identifier: Apache-2.0
// Nodes by the place in the code where they stand: pprof has one location for all stacks that come by there.
#ifndef TRACER_EXPORT_LOCATIONS_H
#define TRACER_EXPORT_LOCATIONS_H

#include "tracer/export/export.h"

struct locations {
    uint32_t *of_node; // number, from 1 on; of those that are not used 0
    uint32_t *nodes;   // of location i + 1, the first node that is there
    size_t count;
};

// Of the samples' nodes, and of all outside of them. Returns 0, or -1 without memory.
int export_locations_make(struct locations *locations, const struct trace *trace, const struct names *names);
void export_locations_free(struct locations *locations);

// Not of what has a label, nor of Python's functions and scripts' interpreted ones.
bool export_location_has_address(const struct trace_node *node);
// Where in memory the node's code was, or the number that stands for a function of a runtime and its line; 0: a label.
uint64_t export_location_address(const struct trace *trace, uint32_t node);

#endif

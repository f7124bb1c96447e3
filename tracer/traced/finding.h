// SPDX-License-Identifier: Apache-2.0
// Places within functions, as they are found in one module of a process: places.c, and of lines line_places.c.
#ifndef TRACER_TRACED_FINDING_H
#define TRACER_TRACED_FINDING_H

#include "tracer/traced/inside.h"

struct traced_wanted {
    uint64_t vaddr;
    uint32_t function, programs; // the function in the plan
};

struct traced_finding {
    struct traced_process *process;
    const struct traced_module *module;
    const char *file_path;
    BASE_VECTOR(struct traced_wanted);
};

// Of two at the same address both programs run. 0, or -1 with *error filled.
int traced_places_add(struct traced_finding *found, uint32_t function, uint64_t vaddr, uint32_t programs,
                      struct base_error *error);

// Those of the line that place `index` of the options is. Blocks, allocates. 0, or -1 with *error filled.
int traced_places_find_line(struct traced_finding *found, size_t index, struct base_error *error);

#endif

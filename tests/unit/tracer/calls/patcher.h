// SPDX-License-Identifier: Apache-2.0
// Patches functions of a library in this process, with a stub that only counts.
#ifndef TESTS_UNIT_TRACER_CALLS_PATCHER_H
#define TESTS_UNIT_TRACER_CALLS_PATCHER_H

#include "tracer/calls/plan.h"
#include "tracer/calls/thunk.h"

struct patcher {
    void *library; // of dlopen
    char *path;
    uint64_t load_bias;
    struct calls_plan *plan;
    uint8_t *block;
    size_t block_bytes, used_bytes;
    bool counts;      // thunks that count in the thread's cells, not the stub; set before patching
    uint64_t *thunks; // by function: address; 0: not patched
};

// Loads a library and plans it. False: it cannot be loaded; a plan that cannot be made ends the test.
bool patcher_open(struct patcher *patcher, const char *path);
// Of a copy of the library, which nobody else in this process runs.
bool patcher_open_copy(struct patcher *patcher, const char *path, const char *directory);
// The function of that name; ends the test where there is none.
const struct qut_plan_function *patcher_find(const struct patcher *patcher, const char *name);
void *patcher_address(const struct patcher *patcher, const char *name);
// All that can be. Returns how many.
unsigned patcher_patch(struct patcher *patcher);
void patcher_restore(struct patcher *patcher);
void patcher_close(struct patcher *patcher);

// The thread's cell of a function, with `counts`; it has cells from then on that it is given some.
uint64_t patcher_cell(const struct patcher *patcher, const struct qut_plan_function *function);
void patcher_give_cells(const struct patcher *patcher);
void patcher_take_cells(void);

// How often functions were entered since they were patched, as the stub counts them.
uint64_t patcher_entries(const struct patcher *patcher);

#endif

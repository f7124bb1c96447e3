// SPDX-License-Identifier: Apache-2.0
// The method that a dex pc lies in.
#ifndef TRACER_STACK_DEX_NAMES_H
#define TRACER_STACK_DEX_NAMES_H

#include "tracer/stack/stack_modules.h"

struct stack_dex_place {
    const char *entry;     // of the archive that the dex file is an entry of, until stack_modules_free; else NULL
    uint64_t entry_offset; // in the archive
    uint64_t entry_start;  // where that is in memory
    char *method;          // allocated; NULL: not known
    uint64_t code_offset;  // of the dex pc, from the method's first instruction on
};

// Looks for the dex file in what is mapped there, else in memory. module: what is mapped at dex_pc, or NULL.
void stack_dex_at(struct stack_modules *modules, struct stack_module *module, uint64_t dex_pc,
                  struct stack_dex_place *place);

void stack_dex_free(struct stack_modules *modules);

#endif

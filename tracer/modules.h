// SPDX-License-Identifier: Apache-2.0
// The modules of a target that frames were met in, with their symbols once somebody asks for a name.
#ifndef TRACER_MODULES_H
#define TRACER_MODULES_H

#include <qut/target.h>

#include "tracer/symbols/symbols.h"

struct stack_module {
    struct qut_module_info info;
    bool is_read;                // symbols were looked for
    struct qut_symbols *symbols; // NULL: there are none to be had
};

struct stack_modules {
    struct qut_target *target;
    const char *debug_root;
    struct stack_module **items;
    size_t count, capacity;
};

// NULL where nothing is mapped, or without memory. Stays where it is until stack_modules_free.
struct stack_module *stack_module_at(struct stack_modules *modules, uint64_t address);

// address = module-relative + this: in an ELF image relative means its own virtual addresses, else from its start on.
uint64_t stack_module_base(const struct stack_module *module);

// False where no function is known there.
bool stack_module_symbol(struct stack_modules *modules, struct stack_module *module, uint64_t vaddr,
                         struct qut_symbol *symbol);

void stack_modules_free(struct stack_modules *modules);

#endif

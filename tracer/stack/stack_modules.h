// SPDX-License-Identifier: Apache-2.0
// The modules of a target that frames were met in, with their symbols once a name is asked for.
#ifndef TRACER_STACK_STACK_MODULES_H
#define TRACER_STACK_STACK_MODULES_H

#include <qut/target.h>

#include "base/hash_index.h"
#include "base/vector.h"
#include "tracer/dex/oat_methods.h"
#include "tracer/elsewhere/elsewhere.h"
#include "tracer/managed/dex_at.h"
#include "tracer/symbols/symbols.h"

struct stack_module {
    struct qut_module_info info;
    bool is_read;            // symbols were looked for
    struct symbols *symbols; // NULL: there are none to be had
    bool is_asked_for;       // elsewhere, for what these do not name
    struct symbols *theirs;  // what was got there; NULL: nothing
    bool oat_is_read;
    struct dex_oat *oat; // methods of an OAT file that symbols do not name; NULL: none
};

// What a virtual machine says of a frame of its code.
struct stack_made {
    struct qut_frame frame;
    struct qut_made_level *levels; // innermost first
    size_t count;                  // 0: nothing
};

struct stack_jit_file; // a symbol file of a just-in-time compiler

struct stack_modules {
    struct qut_target *target;
    const char *debug_root;
    struct elsewhere *elsewhere; // for files that are not at hand; NULL: nobody is asked
    BASE_VECTOR(struct stack_module *);
    struct base_hash_index index;                   // of them, by where they begin
    BASE_VECTOR(struct stack_jit_file) jit_files;   // jit_names.c
    BASE_VECTOR(struct qut_made_code *) made_codes; // jit_names.c
    BASE_VECTOR(struct stack_made) made;            // made_levels.c
    struct base_hash_index made_index;
    struct managed_dex dex;
    unsigned dex_refused;           // how many times no dex file could be had for bytecode
    struct stack_module *dex_first; // ... the first time, and why
    struct base_error dex_first_error;
    bool no_memory; // for a name that there is, or may be
};

// NULL where nothing is mapped, or without memory (then modules->no_memory says so). Stays where it is until
// stack_modules_free.
struct stack_module *stack_module_at(struct stack_modules *modules, uint64_t address);

// address = module-relative + this: in an ELF image relative means its own virtual addresses, else from its start on.
uint64_t stack_module_base(const struct stack_module *module);

// False where no function is known there.
bool stack_module_symbol(struct stack_modules *modules, struct stack_module *module, uint64_t vaddr,
                         struct symbol *symbol);

// The function at an address, by the symbol file that a just-in-time compiler registered. False where none tells.
bool stack_jit_symbol(struct stack_modules *modules, uint64_t address, struct symbol *symbol);

// Code, or a method that is interpreted, as a virtual machine calls it.
bool stack_made_symbol(struct stack_modules *modules, uint64_t address, struct symbol *symbol);

// The methods that a frame stands for. NULL: it is none of such code, or there is no memory. Until the next call.
const struct stack_made *stack_made_at(struct stack_modules *modules, const struct qut_frame *frame);

void stack_made_free(struct stack_modules *modules);
void stack_jit_free(struct stack_modules *modules);
void stack_modules_free(struct stack_modules *modules);

#endif

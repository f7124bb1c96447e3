// SPDX-License-Identifier: Apache-2.0
// What functions are declared in, for those that debug information gives no linker's name: compilers leave it out for
// destructors that are inlined, and "~T" or "operator()" alone says little. Classes inside of functions are left out.
#ifndef TRACER_NAMES_DWARF_SCOPES_H
#define TRACER_NAMES_DWARF_SCOPES_H

#include "base/interner.h"
#include "base/vector.h"
#include "tracer/names/dw_late.h"

enum { NAMES_SCOPE_NONE = 0 };

struct names_scope {
    uint32_t parent; // index; NAMES_SCOPE_NONE: the unit
    const char *name;
};

struct names_declared {
    Dwarf_Off offset; // of the function's DIE; ascending
    uint32_t scope;
};

struct names_scopes {
    BASE_VECTOR(struct names_scope); // scope 1 is the first
    BASE_VECTOR(struct names_declared) functions;
    struct base_interner made;
};

// In the order of their DIEs. Without memory a scope is NAMES_SCOPE_NONE, and a function stays as it is.
uint32_t names_scopes_enter(struct names_scopes *scopes, uint32_t parent, Dwarf_Die *die);
void names_scopes_add(struct names_scopes *scopes, uint32_t scope, Dwarf_Die *function);

// "std::unique_ptr<T>::~unique_ptr"; `name` itself where there is no more to be said. Lives
// as long as the scopes.
const char *names_scopes_qualify(struct names_scopes *scopes, Dwarf_Die *die, const char *name);

void names_scopes_free(struct names_scopes *scopes);

#endif

// SPDX-License-Identifier: Apache-2.0
// Which functions are meant: `[MODULE!]GLOB`, several of them, and some that are left out.
#ifndef TRACER_CALLS_PATTERNS_H
#define TRACER_CALLS_PATTERNS_H

#include "base/vector.h"
#include "tracer/calls/plan.h"

// MODULE is a glob of a file's last name, with or without what begins at ".so"; without it, all modules are meant.
// GLOB is one of names, of which one has to fit: as in the file, or demangled, whole, without arguments, or without
// arguments and what is returned.
struct calls_pattern {
    char *text;         // as given
    char *module;       // NULL: every module
    char *glob;         // in text
    bool is_excluded;   // functions that it fits are not traced
    bool is_caller;     // told apart in the selection
    uint32_t functions; // that it fitted so far, also those that are refused
    uint32_t refused;   // of these
};

struct calls_patterns {
    BASE_VECTOR(struct calls_pattern);
};

// A text that begins with '!' is one that leaves out, too. -1: it is empty, or there is no memory.
int calls_patterns_add(struct calls_patterns *patterns, const char *text, bool is_excluded, struct base_error *error);
void calls_patterns_free(struct calls_patterns *patterns);

// Whether functions of a module of that name can be meant at all: only then it is worth a plan.
bool calls_patterns_want_module(const struct calls_patterns *patterns, const char *module);

// Indexes of the functions that are meant and can be patched, ascending. Counts what each pattern fits.
struct calls_selection {
    BASE_VECTOR(uint32_t);
    struct {
        BASE_VECTOR(uint32_t);
    } refused; // that are meant, and cannot be patched
    struct {
        BASE_VECTOR(uint32_t);
    } callers; // of the first: what a pattern fits that is one of callers
};
int calls_patterns_select(struct calls_patterns *patterns, const char *module, const struct calls_plan *plan,
                          struct calls_selection *selection, struct base_error *error);
void calls_selection_free(struct calls_selection *selection);

// Without arguments and what is returned, "Parser::take" of "bool Parser::take(int)"; cut where the room ends. Returns
// name.
char *calls_name_bare(const char *readable, char *name, size_t size);

// Whether a function of a module that is called so, mangled or not, fits a pattern that does not leave out. -1: no
// memory.
int calls_patterns_fit_name(const struct calls_patterns *patterns, const char *module, const char *name);

// Whether a name that people read fits a glob, by the rules above.
bool calls_name_fits(const char *glob, const char *readable);

#endif

// SPDX-License-Identifier: Apache-2.0
// Places with a meaning: allocations and locks of the C library, exceptions of C++. What each is, is written in the
// language itself.
#ifndef TRACER_PROBE_BUILTIN_H
#define TRACER_PROBE_BUILTIN_H

#include "tracer/probe/inside.h"

enum probe_builtin_value { PROBE_SIZE, PROBE_ADDRESS, PROBE_HELD, PROBE_TYPE, PROBE_BUILTIN_VALUES };

// Places at which a clause runs, and what holds there.
struct probe_variant {
    const char *places;
    const char *when;                         // else it does not run
    const char *values[PROBE_BUILTIN_VALUES]; // NULL: it has none of this name
};

enum { PROBE_VARIANTS_MAX = 2 };

struct probe_builtin {
    const char *name;
    const char *before, *after; // clauses of other programs, which run before and behind those of the script; or NULL
    struct probe_variant variants[PROBE_VARIANTS_MAX];
    size_t variant_count;
};

enum { PROBE_BUILTINS = 6 };
extern const struct probe_builtin probe_builtins[PROBE_BUILTINS];

const char *probe_builtin_value_name(enum probe_builtin_value value);
// The one that the token names; NULL: none.
const struct probe_builtin *probe_builtin_here(const struct probe_compiler *c);
// Whether the token names a value of such places.
bool probe_is_builtin_value(const struct probe_compiler *c, enum probe_builtin_value *value);

// The compiler goes on in another text, and comes back to where it was. What fails there is pointed at where that is.
struct probe_source {
    const char *text;
    uint32_t length, next, assigned_at;
    struct probe_token token;
    const struct probe_source *outer;
    bool is_slash_an_end;
};
bool probe_source_enter(struct probe_compiler *c, struct probe_source *was, const char *text);
void probe_source_leave(struct probe_compiler *c, const struct probe_source *was);

#endif

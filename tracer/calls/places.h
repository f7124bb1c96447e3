// SPDX-License-Identifier: Apache-2.0
// How places within functions are patched. Nothing of it is kept: the file is decoded each time.
#ifndef TRACER_CALLS_PLACES_H
#define TRACER_CALLS_PLACES_H

#include <stddef.h>

#include "base/error.h"
#include "formats/qut_calls_plan.h"

enum calls_place_refusal {
    CALLS_PLACE_OK = 0,
    CALLS_PLACE_NO_CODE,
    CALLS_PLACE_NO_INSTRUCTION,
    CALLS_PLACE_NO_ROOM,
    CALLS_PLACE_UNMOVABLE,
};

struct calls_place {
    uint64_t vaddr; // asked; the rest is answered
    enum calls_place_refusal refusal;
    struct qut_plan_function function; // as if one began there
};

struct calls_places {
    struct calls_place *items;
    size_t count;
};

const char *calls_place_refusal_text(enum calls_place_refusal refusal); // static

// Blocks, allocates. 0, or -1 with *error filled.
int calls_places_find(const char *path, const struct calls_places *places, struct base_error *error);

#endif

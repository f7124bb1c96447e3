// SPDX-License-Identifier: Apache-2.0
// What `args->x->y` means: asked by the compiler of scripts, answered by who knows the functions' types.
#ifndef TRACER_PROBE_RESOLVE_H
#define TRACER_PROBE_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROBE_STEPS_MAX = 16, PROBE_WORDS_MAX = 64 };

enum probe_step_kind {
    PROBE_STEP_ARGUMENT, // args->NAME: the first step of args, and of those only
    PROBE_STEP_MEMBER,   // .NAME
    PROBE_STEP_POINTED,  // ->NAME
    PROBE_STEP_INDEX,    // [INDEX]
};

struct probe_step {
    enum probe_step_kind kind;
    const char *name; // not ended by a 0
    uint32_t name_length;
    int32_t index;
};

struct probe_path { // from an argument, or from what is returned
    bool is_result;
    uint32_t count;
    struct probe_step steps[PROBE_STEPS_MAX];
};

// How the value is had. It begins with a field. Each load goes on with what is at that address, moved on by an offset:
// eight bytes, of the last load fewer. Of what is there then `bits` count, from `shift_bits` on.
struct probe_recipe {
    uint8_t field; // enum qut_probe_field
    uint8_t load_count;
    uint8_t last_bytes; // 1 to 8
    uint8_t shift_bits, bits;
    bool is_signed;
    int32_t offsets[PROBE_STEPS_MAX + 2];
    int32_t added;        // in the end: of addresses
    uint32_t array_bytes; // of the characters at this address; 0: not known
};

struct probe_unresolved {
    bool is_no_memory;
    uint32_t step; // what it is about
    char text[160];
    // What could be meant instead, if it is about a name. They live until the next question.
    const char *words[PROBE_WORDS_MAX];
    uint32_t word_count;
};

struct probe_resolver {
    // What a path means in all functions that fit one of the patterns ([MODULE!]GLOB). 0, or -1 and *why: what it is in
    // one of them it must be in all. May block and allocate. Recipes are zeros where nothing is said.
    int (*resolve)(struct probe_resolver *resolver, const char *const *patterns, size_t pattern_count,
                   const struct probe_path *path, struct probe_recipe *recipe, struct probe_unresolved *why);
};

#endif

// SPDX-License-Identifier: Apache-2.0
// What walks have found in code that nobody describes: reading it takes a system call. Shared by all threads, each word
// on its own. Where code was put in place of other code an answer may be old: it makes a guess no more than a guess.
#include "libqut/walk/known_code.h"

#include <stdatomic.h>
#include <stddef.h>

#include "libqut/arch/native.h"
#include "libqut/modules/modules.h"

enum {
    BITS = 10,
    // An edge: pc | number << PC_BITS | generation << GENERATION_SHIFT
    PC_BITS = 48,
    EDGE_BITS = 8, // its place among the architecture's, from 1 on; 0: the code tells nothing
    GENERATION_SHIFT = PC_BITS + EDGE_BITS,
};

static _Atomic uintptr_t
    calls[1 << BITS]; // return addresses before which a call stands, and where no trampoline begins
static _Atomic uintptr_t edges[1 << BITS]; // interrupted pcs

static inline _Atomic uintptr_t *place(_Atomic uintptr_t *words, uint64_t pc)
{
    return &words[(pc * 0x9e3779b97f4a7c15u) >> (64 - BITS)];
}

bool walk_is_known_call(uint64_t pc)
{
    return atomic_load_explicit(place(calls, pc), memory_order_relaxed) == (uintptr_t)pc;
}

void walk_keep_call(uint64_t pc)
{
    atomic_store_explicit(place(calls, pc), (uintptr_t)pc, memory_order_relaxed);
}

// Where an address leaves no room for what is known of it, nothing is kept.
static bool has_room(uint64_t pc)
{
    return sizeof(uintptr_t) * 8 > GENERATION_SHIFT && pc >> PC_BITS == 0;
}

// Of what is known of code, the lowest bits: what was found counts while that is so.
static uint64_t generation(void)
{
    return (uint64_t)modules_made_generation() << GENERATION_SHIFT;
}

bool walk_known_edge(uint64_t pc, const struct arch_frame_edge **edge)
{
    uint64_t known = atomic_load_explicit(place(edges, pc), memory_order_relaxed);
    const uint64_t pc_mask = ((uint64_t)1 << PC_BITS) - 1, edge_mask = ((uint64_t)1 << EDGE_BITS) - 1;
    if (!has_room(pc) || known == 0 || (known & pc_mask) != pc ||
        known >> GENERATION_SHIFT << GENERATION_SHIFT != generation())
        return false;
    const unsigned number = (unsigned)(known >> PC_BITS & edge_mask);
    if (edge)
        *edge = number ? &arch_native_arch.frame_edges[number - 1] : NULL;
    return true;
}

void walk_keep_edge(uint64_t pc, const struct arch_frame_edge *edge)
{
    uint64_t number = edge ? (uint64_t)(edge - arch_native_arch.frame_edges) + 1 : 0;
    if (has_room(pc))
        atomic_store_explicit(place(edges, pc), (uintptr_t)(pc | number << PC_BITS | generation()),
                              memory_order_relaxed);
}

// SPDX-License-Identifier: Apache-2.0
// What differs between architectures in the code that HotSpot makes: by which instructions frames are made and left,
// and which registers its interpreter gives a meaning. One entry each; an architecture without one has no rules.
#ifndef QUT_HOTSPOT_HOTSPOT_ARCH_H
#define QUT_HOTSPOT_HOTSPOT_ARCH_H

#include <stddef.h>

#include "libqut/arch/arch.h"

enum {
    HOTSPOT_STEP_BYTES_MAX = 8, // of an instruction that makes or leaves a frame
    HOTSPOT_SEQUENCE_BYTES_MAX = 8,
};

// What an instruction does to the frame.
enum hotspot_effect {
    HOTSPOT_NOTHING = 0, // on the way out: a look whether a safepoint is due, ...
    HOTSPOT_GROWS,       // sp -= immediate
    HOTSPOT_SHRINKS,     // sp += immediate
    HOTSPOT_PUSHES_FP,
    HOTSPOT_POPS_FP,
    HOTSPOT_STORES_FP, // into the frame, which is there
    HOTSPOT_JUMPS,
    HOTSPOT_RETURNS,
};

struct hotspot_step {
    uint8_t size_bytes, compared_bytes;
    uint8_t byte[4];
    uint8_t effect; // enum hotspot_effect
    uint8_t immediate_at, immediate_bytes;
};

// How the interpreter gives a frame up: an instruction, perhaps a store behind it, then ra is popped into a register
// and sp set to its caller's, which stands in another one.
struct hotspot_take_down {
    uint8_t size_bytes;
    uint8_t bytes[HOTSPOT_SEQUENCE_BYTES_MAX];
    uint8_t pop_bytes; // of the first instruction
    uint8_t ra_reg, sp_reg;
};

struct hotspot_arch {
    enum qut_arch_id id;
    uint8_t fp_reg;
    // ---- compiled code
    const struct hotspot_step
        *steps; // those that grow the frame first; longer ones first, where one begins like another
    uint8_t step_count;
    // Where the stub through which C++ calls methods keeps what C++ expects to be kept.
    struct {
        uint8_t reg;
        int8_t words_from_cfa;
    } call_stub_saved[8];
    uint8_t call_stub_saved_count;
    // ---- the interpreter
    uint8_t bytecode_reg;  // while one stands: where the next bytecode is
    uint8_t sender_sp_reg; // while a frame is made: the caller's sp
    uint8_t entry_ra_reg;  // ... where ra was popped to
    uint8_t entry_pop;     // the instruction that pops it: one byte
    // Pushes ra, pushes fp, sets it, pushes the caller's sp: each instruction's size.
    uint8_t entry_bytes[HOTSPOT_SEQUENCE_BYTES_MAX], entry_sizes[4];
    uint8_t leave; // the instruction that takes a frame down: one byte
    // ... and a store into the thread that may follow it: how it begins, and its size.
    uint8_t store_bytes[3], store_size;
    const struct hotspot_take_down *take_downs;
    uint8_t take_down_count;
};

// NULL: none is known.
const struct hotspot_arch *hotspot_arch_by_id(enum qut_arch_id id);

// The instruction that begins at `bytes`, and the one that ends there. NULL: none that is known.
const struct hotspot_step *hotspot_step_at(const struct hotspot_arch *arch, const uint8_t *bytes, size_t count);
const struct hotspot_step *hotspot_step_before(const struct hotspot_arch *arch, const uint8_t *end, size_t count);
// As hotspot_step_before, but only one that grows the frame: where the frame may not stand yet, 64 places are looked
// at, and with all steps that was a third of what walks through Java took.
const struct hotspot_step *hotspot_growth_before(const struct hotspot_arch *arch, const uint8_t *end, size_t count);
uint32_t hotspot_step_immediate(const struct hotspot_step *step, const uint8_t *bytes);

#endif

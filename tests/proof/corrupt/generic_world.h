// SPDX-License-Identifier: Apache-2.0
// A machine of any architecture that exists in numbers only: real libraries' code and tables at made-up addresses, a
// signal trampoline, and a stack of random words. What the generic walker is let loose on.
#ifndef TESTS_PROOF_CORRUPT_GENERIC_WORLD_H
#define TESTS_PROOF_CORRUPT_GENERIC_WORLD_H

#include "libqut/runtime/walk.h"
#include "qutc/qutc.h"

enum { WORLD_MODULES_MAX = 4, WORLD_STACK_BYTES = 4096 };

struct world_module {
    struct input_image *image;
    uint8_t *bytes; // of the table
    struct qut_table table;
    uint64_t load_bias;
    enum runtime_code_state state;
};

struct world {
    const struct arch *arch;
    struct world_module modules[WORLD_MODULES_MAX];
    unsigned module_count;
    uint64_t trampolines_address; // one after the other, 16 bytes each
    uint64_t stack_address;       // may be unaligned
    uint8_t stack[WORLD_STACK_BYTES];
    bool all_readable; // what is not the stack reads as random words
    uint64_t random_state;
    uint64_t reads; // since they were last counted
};

extern const struct runtime_walk_ops world_ops;

// False: none of the architecture's libraries is there. *error is filled where one is there and cannot be compiled.
bool world_open(struct world *world, const struct arch *arch, struct base_error *error);
void world_close(struct world *world);

uint64_t world_random(struct world *world);
uint64_t world_below(struct world *world, uint64_t below);
bool world_readable(const struct world *world, uint64_t address);

// A pc in some module's code, sometimes a trampoline.
uint64_t world_random_pc(struct world *world);
// A stack and registers. `seed` alone decides.
void world_shuffle(struct world *world, uint64_t seed, struct arch_frame_regs *regs, enum arch_pc_kind *kind);

#endif

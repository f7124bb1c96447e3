// SPDX-License-Identifier: Apache-2.0
// Stacks like those of Android's virtual machine, without it. Each form is a function in assembly with a frame of a
// kind that its runtime has: native code, compiled methods, the stubs between them, interpreters. They call each other
// in any order, know what is truly on the stack, and have traps between their instructions, so that a walk begins at
// each.
#ifndef TESTS_PROOF_MANAGED_MANAGED_H
#define TESTS_PROOF_MANAGED_MANAGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <qut/local.h>

enum { MANAGED_DEPTH_MAX = 64, MANAGED_FRAMES_MAX = 512 };

struct managed_chain;
typedef void managed_function(struct managed_chain *chain);

// A frame as it should be found.
struct managed_frame {
    uintptr_t pc; // as qut_backtrace gives it
    uint32_t flags;
    uintptr_t frame_bytes; // up to its caller's stack pointer; 0: not told
};

struct managed_chain {
    // The functions in assembly read these two.
    uintptr_t dex_pc;     // what an interpreter keeps in its register
    uintptr_t bytes;      // how much more stack to take where the frame is not found by sp
    const uint8_t *forms; // indexes in managed_forms: each calls the next, the last one `leaf`
    size_t form_count;
    size_t started_count; // of forms
    void (*leaf)(struct managed_chain *chain);
    // What is truly on the stack: calls under way, outermost first, and what called the chain, innermost first.
    size_t depth;
    struct managed_call {
        uintptr_t return_address;
        uintptr_t dex_pc;
        uintptr_t frame_bytes;
        bool is_interpreter;
    } calls[MANAGED_DEPTH_MAX];
    struct managed_frame outer[MANAGED_FRAMES_MAX];
    size_t outer_count;
    struct qut_end outer_end;
};

// ---- <arch>/forms.S, trampolines.S
struct managed_form {
    managed_function *function;
    const char *name;
    uintptr_t frame_bytes; // up to the caller's stack pointer, where it calls; 0: not told
};
extern const struct managed_form __start_managed_forms[], __stop_managed_forms[];

// A trap, where code is interrupted, and where it goes on.
struct managed_spot {
    uintptr_t trap, behind;
    uintptr_t is_interpreter; // its rule has the mark of one
    uintptr_t has_dex_pc;     // and the register is its own
};
extern const struct managed_spot __start_managed_spots[], __stop_managed_spots[];

// Before and after a form's call. is_interpreter: chain->dex_pc is in its register.
managed_function *managed_next(struct managed_chain *chain, uintptr_t return_address, uintptr_t is_interpreter);
void managed_back(struct managed_chain *chain);
// Before and after a form's call of the leaf, with which it finds what it then jumps to, its own frame gone.
managed_function *managed_look_up(struct managed_chain *chain, uintptr_t return_address, uintptr_t is_interpreter);
managed_function *managed_found(struct managed_chain *chain);

// ---- chain.c
size_t managed_form_count(void);
int managed_form_index(const char *name); // -1: this architecture has none
// Calls the chain's first form. Its frame, that of managed_run and what is beneath are noted before.
void managed_run(struct managed_chain *chain);
// The stack beneath the running function of C, or the spot: returns how many frames.
size_t managed_truth(const struct managed_chain *chain, struct managed_frame *frames);
// Of an address at which code was interrupted; NULL: no trap of ours.
const struct managed_spot *managed_spot_at(uintptr_t pc);

#endif

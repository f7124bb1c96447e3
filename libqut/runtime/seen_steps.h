// SPDX-License-Identifier: Apache-2.0
// Steps of the slow way that a thread has made, each with all that it read of the stack: where a walk comes to the same
// frame again and reads the same, it goes to the same caller. For frames that no link can say how to leave: those of
// interpreters, and those that are left by a guess.
//
// Belongs, as the links do, to the outermost walk of its thread.
#ifndef QUT_RUNTIME_SEEN_STEPS_H
#define QUT_RUNTIME_SEEN_STEPS_H

#include <stdint.h>

enum {
    RUNTIME_SEEN_BITS = 9,
    RUNTIME_SEEN_COUNT = 1 << RUNTIME_SEEN_BITS,
    RUNTIME_SEEN_READS_MAX = 8, // all registers that a C++ function saves
    RUNTIME_SEEN_SP_SHIFT = 4,  // frames are seldom nearer to each other
};

struct runtime_seen_step {
    uintptr_t pc, sp, fp; // the frame
    uintptr_t outer_pc, outer_sp, outer_fp, outer_dex_pc;
    uint32_t stamp; // of what is known of code: another one than that of all steps, and it counts for nothing
    uint8_t entered_flags, left_flags, outer_flags; // qut_frame_flags: as the frame was come to, as it turned out
    uint8_t read_count;
    struct {
        uintptr_t address, value;
    } reads[RUNTIME_SEEN_READS_MAX];
};

struct runtime_seen_steps {
    uint32_t stamp;                          // never 0
    uint32_t modules_epoch, made_generation; // what it stands for
    // The step under way.
    struct runtime_seen_step *pending; // NULL: none, or it cannot be kept
    uintptr_t pending_pc;
    struct runtime_seen_step steps[RUNTIME_SEEN_COUNT];
};

static inline struct runtime_seen_step *runtime_seen_place(struct runtime_seen_steps *seen, uintptr_t sp)
{
    uintptr_t at = sp >> RUNTIME_SEEN_SP_SHIFT;
    return &seen->steps[(at ^ at >> RUNTIME_SEEN_BITS) & (RUNTIME_SEEN_COUNT - 1)];
}

#endif

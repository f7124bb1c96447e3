// SPDX-License-Identifier: Apache-2.0
// A function that makes a frame, spins, calls the function that it is given, and returns.
#ifndef TESTS_UNIT_LIBQUT_MODULES_JIT_ARM_MACHINE_H
#define TESTS_UNIT_LIBQUT_MODULES_JIT_ARM_MACHINE_H

#include <stdint.h>
#include <string.h>

enum {
    MACHINE_ENTER = 4, // from here on the frame is there
    MACHINE_SAVED = 8, // ... and the return address in it
    MACHINE_RETURN = 24,
    MACHINE_RESTORED = 28,
    MACHINE_LEAVE = 32, // the frame is gone
    MACHINE_BYTES = 36,
    MACHINE_FRAME_BYTES = 8, // the smallest; then in steps
    MACHINE_FRAME_STEP_BYTES = 8,
    MACHINE_FRAME_STEPS = 30,
};

static inline void machine_emit(uint8_t *code, uint32_t frame_bytes)
{
    uint32_t saved = frame_bytes - 4;
    const uint32_t words[MACHINE_BYTES / 4] = {
        0xe24dd000 | frame_bytes, // sub sp, sp, #frame_bytes
        0xe58de000 | saved,       // str lr, [sp, #frame_bytes - 4]
        0xe3a030c8,               // mov r3, #200
        0xe2533001,               // 1: subs r3, r3, #1
        0x1afffffd,               // bne 1b
        0xe12fff30,               // blx r0
        0xe59de000 | saved,       // ldr lr, [sp, #frame_bytes - 4]
        0xe28dd000 | frame_bytes, // add sp, sp, #frame_bytes
        0xe12fff1e,               // bx lr
    };
    memcpy(code, words, sizeof words);
}

#endif

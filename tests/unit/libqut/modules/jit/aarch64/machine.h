// SPDX-License-Identifier: Apache-2.0
// A function that makes a frame, spins, calls the function that it is given, and returns.
#ifndef TESTS_UNIT_LIBQUT_MODULES_JIT_AARCH64_MACHINE_H
#define TESTS_UNIT_LIBQUT_MODULES_JIT_AARCH64_MACHINE_H

#include <stdint.h>
#include <string.h>

enum {
    MACHINE_ENTER = 4, // from here on the frame is there
    MACHINE_SAVED = 8, // ... and the return address in it
    MACHINE_RETURN = 24,
    MACHINE_RESTORED = 28,
    MACHINE_LEAVE = 32, // the frame is gone
    MACHINE_BYTES = 36,
    MACHINE_FRAME_BYTES = 16, // the smallest; then in steps
    MACHINE_FRAME_STEP_BYTES = 16,
    MACHINE_FRAME_STEPS = 60,
};

static inline void machine_emit(uint8_t *code, uint32_t frame_bytes)
{
    uint32_t saved = (frame_bytes / 8 - 1) << 10;
    const uint32_t words[MACHINE_BYTES / 4] = {
        0xd10003ff | frame_bytes << 10, // sub sp, sp, #frame_bytes
        0xf90003fe | saved,             // str x30, [sp, #frame_bytes - 8]
        0xd2801909,                     // mov x9, #200
        0xf1000529,                     // 1: subs x9, x9, #1
        0x54ffffe1,                     // b.ne 1b
        0xd63f0000,                     // blr x0
        0xf94003fe | saved,             // ldr x30, [sp, #frame_bytes - 8]
        0x910003ff | frame_bytes << 10, // add sp, sp, #frame_bytes
        0xd65f03c0,                     // ret
    };
    memcpy(code, words, sizeof words);
}

#endif

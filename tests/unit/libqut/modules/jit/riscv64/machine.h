// SPDX-License-Identifier: Apache-2.0
// A function that makes a frame, spins, calls the function that it is given, and returns.
#ifndef TESTS_UNIT_LIBQUT_MODULES_JIT_RISCV64_MACHINE_H
#define TESTS_UNIT_LIBQUT_MODULES_JIT_RISCV64_MACHINE_H

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
    uint32_t saved = frame_bytes - 8;
    const uint32_t words[MACHINE_BYTES / 4] = {
        0x00010113 | (0x1000 - frame_bytes) << 20,           // addi sp, sp, -frame_bytes
        0x00113023 | (saved >> 5) << 25 | (saved & 31) << 7, // sd ra, frame_bytes - 8(sp)
        0x0c800293,                                          // li t0, 200
        0xfff28293,                                          // 1: addi t0, t0, -1
        0xfe029ee3,                                          // bnez t0, 1b
        0x000500e7,                                          // jalr a0
        0x00013083 | saved << 20,                            // ld ra, frame_bytes - 8(sp)
        0x00010113 | frame_bytes << 20,                      // addi sp, sp, frame_bytes
        0x00008067,                                          // ret
    };
    memcpy(code, words, sizeof words);
}

#endif

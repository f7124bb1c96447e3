// SPDX-License-Identifier: Apache-2.0
// A function that makes a frame, spins, calls the function that it is given, and returns.
#ifndef TESTS_UNIT_LIBQUT_MODULES_JIT_X86_MACHINE_H
#define TESTS_UNIT_LIBQUT_MODULES_JIT_X86_MACHINE_H

#include <stdint.h>
#include <string.h>

enum {
    MACHINE_ENTER = 10, // from here on the frame is there
    MACHINE_SAVED = 10, // ... and the return address in it
    MACHINE_RETURN = 20,
    MACHINE_RESTORED = 26,
    MACHINE_LEAVE = 26, // the frame is gone
    MACHINE_BYTES = 27,
    MACHINE_FRAME_BYTES = 12, // the smallest; then in steps
    MACHINE_FRAME_STEP_BYTES = 16,
    MACHINE_FRAME_STEPS = 60,
};

static inline void machine_emit(uint8_t *code, uint32_t frame_bytes)
{
    static const uint8_t bytes[MACHINE_BYTES] = {
        0x8b, 0x44, 0x24, 0x04,       // mov 4(%esp), %eax
        0x81, 0xec, 0,    0,    0, 0, // sub $frame_bytes, %esp
        0xb9, 200,  0,    0,    0,    // mov $200, %ecx
        0x49, 0x75, 0xfd,             // 1: dec %ecx; jnz 1b
        0xff, 0xd0,                   // call *%eax
        0x81, 0xc4, 0,    0,    0, 0, // add $frame_bytes, %esp
        0xc3,                         // ret
    };
    memcpy(code, bytes, sizeof bytes);
    memcpy(code + 6, &frame_bytes, 4);
    memcpy(code + 22, &frame_bytes, 4);
}

#endif

// SPDX-License-Identifier: Apache-2.0
// The kernel's signal frame, as rt_sigreturn takes it.
#ifndef TRACER_INJECT_FRAME_X86_64_H
#define TRACER_INJECT_FRAME_X86_64_H

#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

enum { FRAME_STATE_BYTES_MAX = 16384, FRAME_CONTEXT_BYTES = 304 };

struct frame_context {
    struct user_regs_struct registers;
    uint64_t mask;                        // of signals
    size_t state_bytes;                   // of NT_X86_XSTATE
    uint8_t state[FRAME_STATE_BYTES_MAX]; // what floating point and vectors are
};

//     address:  ucontext, siginfo's place (not read)     FRAME_CONTEXT_BYTES
//     state:    XSAVE area, its magic words              state_bytes + 4, aligned to 64
//
// Writes the ucontext, for a frame at `address` whose state lies at state_address, and the state.
void inject_frame_write(const struct frame_context *context, uint64_t state_address,
                        uint8_t ucontext[FRAME_CONTEXT_BYTES], uint8_t state[FRAME_STATE_BYTES_MAX + 64]);

#endif

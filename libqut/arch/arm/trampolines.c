// SPDX-License-Identifier: Apache-2.0
// The number of the system call is in r7 (EABI) or in the instruction (OABI). The forms:
//
//   Arm    mov r7, #NR; svc 0                the C libraries
//   Arm    mov r7, #NR; svc 0x900000 + NR    arm kernels: in a page of theirs, or on the stack
//   Arm    mov r7, #NR; svc NR               arm64 kernels, for 32-bit processes
//   Arm    svc 0x900000 + NR                 OABI
//   Thumb  movs r7, #NR; svc 0               arm kernels
//   Thumb  movs r7, #NR; svc NR              arm64 kernels
//   Thumb  mov.w r7, #NR; svc 0              glibc compiled to Thumb-2, as Debian's
//
// rt_sigreturn (173): sp is at siginfo_t (128 bytes), the ucontext_t lies behind it.
// sigreturn (119), for handlers without SA_SIGINFO: sp is at the ucontext_t. Linux marks it by a first word of
// 0x5ac3c35a, qemu-user does not. Kernels before 2.6.18 (2006) had neither mark nor ucontext_t but the bare struct
// sigcontext, whose first word can be 0 as well: their frames are not known here.
#include "libqut/arch/arm/definition.h"

enum { NR_SIGRETURN = 119, NR_RT_SIGRETURN = 173, SIGINFO_BYTES = 128 };

// The instructions of each form.
#define ARM_EABI(nr)       nr, 0x70, 0xa0, 0xe3, 0x00, 0x00, 0x00, 0xef
#define ARM_BOTH(nr)       nr, 0x70, 0xa0, 0xe3, nr, 0x00, 0x90, 0xef
#define ARM_NUMBERED(nr)   nr, 0x70, 0xa0, 0xe3, nr, 0x00, 0x00, 0xef
#define ARM_OABI(nr)       nr, 0x00, 0x90, 0xef
#define THUMB(nr)          nr, 0x27, 0x00, 0xdf
#define THUMB_NUMBERED(nr) nr, 0x27, nr, 0xdf
#define THUMB2(nr)         0x4f, 0xf0, nr, 0x07, 0x00, 0xdf

// second_at: where the second instruction begins; 0 where there is one only.
#define TRAMPOLINE(title, registers_at, second_at, ...)                                                                \
    {                                                                                                                  \
        .name = "arm " title, .code = {__VA_ARGS__}, .code_bytes = sizeof((uint8_t[]){__VA_ARGS__}),                   \
        .entry_count = (second_at) ? 2 : 1, .entries = {{0, registers_at}, {second_at, registers_at}},                 \
        .layout = &arch_arm_ucontext_registers,                                                                        \
    }

const struct arch_trampoline arch_arm_trampolines[14] = {
    TRAMPOLINE("rt_sigreturn: mov r7; svc 0", SIGINFO_BYTES, 4, ARM_EABI(NR_RT_SIGRETURN)),
    TRAMPOLINE("rt_sigreturn: mov r7; svc 0x900000 + NR", SIGINFO_BYTES, 4, ARM_BOTH(NR_RT_SIGRETURN)),
    TRAMPOLINE("rt_sigreturn: mov r7; svc NR", SIGINFO_BYTES, 4, ARM_NUMBERED(NR_RT_SIGRETURN)),
    TRAMPOLINE("rt_sigreturn: svc 0x900000 + NR", SIGINFO_BYTES, 0, ARM_OABI(NR_RT_SIGRETURN)),
    TRAMPOLINE("rt_sigreturn: movs r7; svc 0", SIGINFO_BYTES, 2, THUMB(NR_RT_SIGRETURN)),
    TRAMPOLINE("rt_sigreturn: movs r7; svc NR", SIGINFO_BYTES, 2, THUMB_NUMBERED(NR_RT_SIGRETURN)),
    TRAMPOLINE("rt_sigreturn: mov.w r7; svc 0", SIGINFO_BYTES, 4, THUMB2(NR_RT_SIGRETURN)),
    TRAMPOLINE("sigreturn: mov r7; svc 0", 0, 4, ARM_EABI(NR_SIGRETURN)),
    TRAMPOLINE("sigreturn: mov r7; svc 0x900000 + NR", 0, 4, ARM_BOTH(NR_SIGRETURN)),
    TRAMPOLINE("sigreturn: mov r7; svc NR", 0, 4, ARM_NUMBERED(NR_SIGRETURN)),
    TRAMPOLINE("sigreturn: svc 0x900000 + NR", 0, 0, ARM_OABI(NR_SIGRETURN)),
    TRAMPOLINE("sigreturn: movs r7; svc 0", 0, 2, THUMB(NR_SIGRETURN)),
    TRAMPOLINE("sigreturn: movs r7; svc NR", 0, 2, THUMB_NUMBERED(NR_SIGRETURN)),
    TRAMPOLINE("sigreturn: mov.w r7; svc 0", 0, 4, THUMB2(NR_SIGRETURN)),
};

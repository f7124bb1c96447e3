// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oat_samples.h"

#define SAMPLE(CODE, AT, END, FRAME, MASK)                                                                             \
    {                                                                                                                  \
        .code = CODE, .code_bytes = sizeof CODE, .body_at = AT, .body_end = END, .frame_bytes = FRAME,                 \
        .core_mask = MASK                                                                                              \
    }

// sub x16, sp, #0x2000; ldr wzr, [x16]; str x0, [sp, #-48]!; stp x22, x30, [sp, #32]; blr x0; ldp; add sp; ret
static const uint8_t framed_aarch64[] = {0xf0, 0x0b, 0x40, 0xd1, 0x1f, 0x02, 0x40, 0xb9, 0xe0, 0x0f, 0x1d,
                                         0xf8, 0xf6, 0x7b, 0x02, 0xa9, 0x00, 0x00, 0x3f, 0xd6, 0xf6, 0x7b,
                                         0x42, 0xa9, 0xff, 0xc3, 0x00, 0x91, 0xc0, 0x03, 0x5f, 0xd6};
static const uint8_t leaf_aarch64[] = {0x20, 0x00, 0x00, 0x0b, 0xc0, 0x03, 0x5f, 0xd6}; // add w0, w1, w0; ret
// mov sp, x9; blr x0; ret
static const uint8_t odd_aarch64[] = {0x3f, 0x01, 0x00, 0x91, 0x00, 0x00, 0x3f, 0xd6, 0xc0, 0x03, 0x5f, 0xd6};

// sub.w ip, sp, #8192; ldr.w ip, [ip]; push {r5, r6, lr}; sub sp, #20; str r0, [sp]; blx r0; add sp; pop {r5, r6, pc}
static const uint8_t framed_arm[] = {0xad, 0xf5, 0x00, 0x5c, 0xdc, 0xf8, 0x00, 0xc0, 0x60, 0xb5,
                                     0x85, 0xb0, 0x00, 0x90, 0x80, 0x47, 0x05, 0xb0, 0x60, 0xbd};
static const uint8_t leaf_arm[] = {0x08, 0x18, 0x70, 0x47};            // adds r0, r1, r0; bx lr
static const uint8_t odd_arm[] = {0xcd, 0x46, 0x80, 0x47, 0x70, 0x47}; // mov sp, r9; blx r0; bx lr

// test [esp - 8192], eax; push edi, esi, ebp; add esp, -12; push eax; call [eax + 20]; add esp, 16; pop ...; ret
static const uint8_t framed_x86[] = {0x85, 0x84, 0x24, 0x00, 0xe0, 0xff, 0xff, 0x57, 0x56, 0x55, 0x83, 0xc4,
                                     0xf4, 0x50, 0xff, 0x50, 0x14, 0x83, 0xc4, 0x10, 0x5d, 0x5e, 0x5f, 0xc3};
static const uint8_t leaf_x86[] = {0x01, 0xc8, 0xc3};                  // add eax, ecx; ret
static const uint8_t odd_x86[] = {0x89, 0xec, 0xff, 0x50, 0x14, 0xc3}; // mov esp, ebp; call [eax + 20]; ret

// test [rsp - 8192], rax; push rbp, rbx; sub rsp, 24; mov [rsp], rdi; call [rdi + 24]; add rsp, 24; pop ...; ret
static const uint8_t framed_x86_64[] = {0x48, 0x85, 0x84, 0x24, 0x00, 0xe0, 0xff, 0xff, 0x55, 0x53,
                                        0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x3c, 0x24, 0xff, 0x57,
                                        0x18, 0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d, 0xc3};
static const uint8_t leaf_x86_64[] = {0x48, 0x01, 0xc8, 0xc3};
static const uint8_t odd_x86_64[] = {0x48, 0x89, 0xec, 0xff, 0x57, 0x18, 0xc3};

// addi sp, -32; sd ra, 24(sp); sd s0, 16(sp); sd a0, 0(sp); jalr ra, 0(a0); ld ra; ld s0; addi sp, 32; ret
static const uint8_t framed_riscv64[] = {0x13, 0x01, 0x01, 0xfe, 0x23, 0x3c, 0x11, 0x00, 0x23, 0x38, 0x81, 0x00,
                                         0x23, 0x30, 0xa1, 0x00, 0xe7, 0x00, 0x05, 0x00, 0x83, 0x30, 0x81, 0x01,
                                         0x03, 0x34, 0x01, 0x01, 0x13, 0x01, 0x01, 0x02, 0x67, 0x80, 0x00, 0x00};
static const uint8_t leaf_riscv64[] = {0x33, 0x85, 0xa5, 0x00, 0x67, 0x80, 0x00, 0x00}; // add a0, a1, a0; ret
// mv sp, t0; jalr ra, 0(a0); ret
static const uint8_t odd_riscv64[] = {0x13, 0x81, 0x02, 0x00, 0xe7, 0x00, 0x05, 0x00, 0x67, 0x80, 0x00, 0x00};

static const struct oat_sample samples[QUT_ARCH_END][OAT_CODES] = {
    [QUT_ARCH_AARCH64] = {SAMPLE(framed_aarch64, 16, 24, 48, 1u << 22 | 1u << 30),
                          SAMPLE(leaf_aarch64, 0, 8, 0, 1u << 30),
                          SAMPLE(odd_aarch64, 0, 12, 64, 1u << 22 | 1u << 29 | 1u << 30)},
    [QUT_ARCH_ARM] = {SAMPLE(framed_arm, 12, 18, 32, 0x4060), SAMPLE(leaf_arm, 0, 4, 0, 0x4000),
                      SAMPLE(odd_arm, 0, 6, 48, 0x48e0)},
    [QUT_ARCH_X86] = {SAMPLE(framed_x86, 14, 20, 32, 0x1e0), SAMPLE(leaf_x86, 0, 3, 4, 0x100),
                      SAMPLE(odd_x86, 0, 6, 64, 0x120)},
    [QUT_ARCH_X86_64] = {SAMPLE(framed_x86_64, 14, 25, 48, 0x10028), SAMPLE(leaf_x86_64, 0, 4, 8, 0x10000),
                         SAMPLE(odd_x86_64, 0, 7, 80, 0x1f028)},
    [QUT_ARCH_RISCV64] = {SAMPLE(framed_riscv64, 12, 24, 32, 0x102), SAMPLE(leaf_riscv64, 0, 8, 0, 2),
                          SAMPLE(odd_riscv64, 0, 12, 96, 0xc0302)},
};

const struct oat_sample *oat_sample(const struct arch *arch, enum oat_code code)
{
    return &samples[arch->id][code];
}

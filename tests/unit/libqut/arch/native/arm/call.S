// SPDX-License-Identifier: Apache-2.0
        .syntax unified
        .cfi_sections .debug_frame
#if defined(__thumb2__)
        .thumb
#else
        .arm
#endif
        .text
        .globl  native_call
        .type   native_call, %function
        .p2align 4
native_call:
        .cfi_startproc
        .fnstart
        push    {r4-r11, ip, lr}
        .save   {r4-r11, ip, lr}
        .cfi_def_cfa_offset 40
        .cfi_offset lr, -4
        adr     ip, 1f
        str     ip, [r1, #40]
        mov     ip, sp
        str     ip, [r1, #44]
        ldr     r11, [r1, #0]
        ldr     r7, [r1, #4]
        ldr     r4, [r1, #8]
        ldr     r6, [r1, #12]
        ldr     r10, [r1, #16]
        ldr     r5, [r1, #20]
        ldr     r8, [r1, #24]
        mov     ip, r0
        ldr     r2, [r1, #36]
        ldr     r0, [r1, #28]
        ldr     r1, [r1, #32]
        blx     ip
1:
        pop     {r4-r11, ip, pc}
        .fnend
        .cfi_endproc
        .size   native_call, . - native_call

        .globl  native_store
        .type   native_store, %function
        .p2align 4
native_store:
        .cfi_startproc
        str     r0, [r7]
        bx      lr
        .cfi_endproc
        .size   native_store, . - native_store

        .section .note.GNU-stack, "", %progbits

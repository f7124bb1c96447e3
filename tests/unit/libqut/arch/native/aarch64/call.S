// SPDX-License-Identifier: Apache-2.0
        .text
        .globl  native_call
        .type   native_call, %function
        .p2align 4
native_call:
        .cfi_startproc
        stp     x29, x30, [sp, #-96]!
        .cfi_def_cfa_offset 96
        .cfi_offset x29, -96
        .cfi_offset x30, -88
        stp     x19, x20, [sp, #16]
        stp     x21, x22, [sp, #32]
        stp     x23, x24, [sp, #48]
        stp     x25, x26, [sp, #64]
        stp     x27, x28, [sp, #80]
        .cfi_offset x19, -80
        .cfi_offset x20, -72
        .cfi_offset x21, -64
        .cfi_offset x22, -56
        .cfi_offset x23, -48
        .cfi_offset x24, -40
        .cfi_offset x25, -32
        .cfi_offset x26, -24
        .cfi_offset x27, -16
        .cfi_offset x28, -8
        adr     x9, 1f
        str     x9, [x1, #80]
        mov     x9, sp
        str     x9, [x1, #88]
        ldr     x29, [x1, #0]
        ldr     x19, [x1, #8]
        ldr     x20, [x1, #16]
        ldr     x22, [x1, #24]
        ldr     x25, [x1, #32]
        ldr     x27, [x1, #40]
        ldr     x28, [x1, #48]
        mov     x9, x0
        mov     x10, x1
        ldp     x0, x1, [x10, #56]
        ldr     x2, [x10, #72]
        blr     x9
1:
        ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     x23, x24, [sp, #48]
        ldp     x25, x26, [sp, #64]
        ldp     x27, x28, [sp, #80]
        ldp     x29, x30, [sp], #96
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   native_call, . - native_call

        .globl  native_store
        .type   native_store, %function
        .p2align 4
native_store:
        .cfi_startproc
        str     w0, [x19]
        ret
        .cfi_endproc
        .size   native_store, . - native_store

        .section .note.GNU-stack, "", %progbits

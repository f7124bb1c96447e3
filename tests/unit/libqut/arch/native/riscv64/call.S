// SPDX-License-Identifier: Apache-2.0
        .text
        .globl  native_call
        .type   native_call, @function
        .p2align 4
native_call:
        .cfi_startproc
        addi    sp, sp, -112
        .cfi_def_cfa_offset 112
        sd      ra, 104(sp)
        .cfi_offset ra, -8
        sd      s0, 0(sp)
        sd      s1, 8(sp)
        sd      s2, 16(sp)
        sd      s3, 24(sp)
        sd      s4, 32(sp)
        sd      s5, 40(sp)
        sd      s6, 48(sp)
        sd      s7, 56(sp)
        sd      s8, 64(sp)
        sd      s9, 72(sp)
        sd      s10, 80(sp)
        sd      s11, 88(sp)
        .cfi_offset s0, -112
        lla     t0, 1f
        sd      t0, 80(a1)
        sd      sp, 88(a1)
        ld      s0, 0(a1)
        ld      s1, 8(a1)
        ld      s2, 16(a1)
        ld      s3, 24(a1)
        ld      s4, 32(a1)
        ld      s5, 40(a1)
        ld      s6, 48(a1)
        mv      t1, a0
        mv      t2, a1
        ld      a0, 56(t2)
        ld      a1, 64(t2)
        ld      a2, 72(t2)
        jalr    t1
1:
        ld      ra, 104(sp)
        ld      s0, 0(sp)
        ld      s1, 8(sp)
        ld      s2, 16(sp)
        ld      s3, 24(sp)
        ld      s4, 32(sp)
        ld      s5, 40(sp)
        ld      s6, 48(sp)
        ld      s7, 56(sp)
        ld      s8, 64(sp)
        ld      s9, 72(sp)
        ld      s10, 80(sp)
        ld      s11, 88(sp)
        addi    sp, sp, 112
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   native_call, . - native_call

        .globl  native_store
        .type   native_store, @function
        .p2align 4
native_store:
        .cfi_startproc
        sw      a0, 0(s1)
        ret
        .cfi_endproc
        .size   native_store, . - native_store

        .section .note.GNU-stack, "", @progbits

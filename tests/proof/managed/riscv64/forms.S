// SPDX-License-Identifier: Apache-2.0
// See managed.h. Android 14's runtime was the first one here: it has the switch interpreter, and no mterp.
#include "macros.inc"

        // What callees save, and ra, in the upper 112 bytes of a frame.
        .set    SAVED_BYTES, 112
        .macro  save bytes
        addi    sp, sp, -(\bytes + SAVED_BYTES)
        .cfi_def_cfa_offset \bytes + SAVED_BYTES
        spot
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
        sd      s\n, (\bytes + 8 * \n)(sp)
        .cfi_offset s\n, 8 * \n - SAVED_BYTES
        .endr
        spot
        sd      ra, (\bytes + 104)(sp)
        .cfi_offset ra, -8
        spot
        .endm

        .macro  restore bytes
        spot
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
        ld      s\n, (\bytes + 8 * \n)(sp)
        .cfi_restore s\n
        .endr
        spot
        ld      ra, (\bytes + 104)(sp)
        .cfi_restore ra
        spot
        addi    sp, sp, \bytes + SAVED_BYTES
        .cfi_def_cfa_offset 0
        spot
        .endm

        // All but s0.
        .macro  trash
        li      s1, -0x5a5b
        .irp    n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
        mv      s\n, s1
        .endr
        .endm

        // Found by sp.
        .macro  plain name, bytes
        begin   \name
        save    \bytes
        sd      a0, 8(sp)
        trash
        mv      s0, s1
        spot
        call_next 8(sp)
        restore \bytes
        end     \name
        .endm

        plain   native, 16
        plain   compiled, 80
        plain   jni_stub, 112

        // Found by s0, which the callee saves.
        .macro  by_s0 name, bytes
        begin   \name
        save    \bytes
        sd      a0, 8(sp)
        mv      s0, sp
        .cfi_def_cfa_register s0
        spot
        ld      t0, 8(a0)
        sub     sp, sp, t0
        trash
        spot
        call_next 8(s0)
        spot
        mv      sp, s0
        spot
        .cfi_def_cfa_register sp
        restore \bytes
        end     \name
        .endm

        by_s0   generic_jni, 112
        by_s0   invoke_stub, 16
        by_s0   osr_stub, 48

        // Its loop is C++, which saves s1, where the dex pc is: "DEX1" says so, up to the function's end.
        begin   switch
        addi    sp, sp, -32
        .cfi_def_cfa_offset 32
        sd      s1, 8(sp)
        .cfi_offset s1, -24
        sd      ra, 24(sp)
        .cfi_offset ra, -8
        spot
        sd      a0, 0(sp)
        ld      s1, 0(a0)
        .cfi_escape 0x16, 0x0a, 0x09, 0x0c, 0x44, 0x45, 0x58, 0x31, 0x13, 0x92, 0x09, 0x00
        spot    1, 1
        call_next 0(sp), 1
        spot    1, 1
        ld      ra, 24(sp)
        .cfi_restore ra
        spot    1, 1
        ld      s1, 8(sp)
        .cfi_restore s1
        spot    1, 0
        addi    sp, sp, 32
        .cfi_def_cfa_offset 0
        spot    1, 0
        end     switch

        .section .note.GNU-stack, "", @progbits

// SPDX-License-Identifier: Apache-2.0
// See managed.h.
#include "macros.inc"

        // What callees save, and lr.
        .set    SAVED_BYTES, 36
        .macro  save bytes
        push    {r4-r11, lr}
        .cfi_def_cfa_offset SAVED_BYTES
        .cfi_offset r4, -36
        .cfi_offset r5, -32
        .cfi_offset r6, -28
        .cfi_offset r7, -24
        .cfi_offset r8, -20
        .cfi_offset r9, -16
        .cfi_offset r10, -12
        .cfi_offset r11, -8
        .cfi_offset lr, -4
        spot
        sub     sp, sp, #\bytes
        .cfi_def_cfa_offset SAVED_BYTES + \bytes
        spot
        .endm

        // An interpreter's mark stays up to the function's end.
        .macro  restore bytes, is_interpreter=0
        spot    \is_interpreter, \is_interpreter
        add     sp, sp, #\bytes
        .cfi_def_cfa_offset SAVED_BYTES
        spot    \is_interpreter, \is_interpreter
        pop     {r4-r11, lr}
        .cfi_def_cfa_offset 0
        .cfi_restore r4
        .cfi_restore r5
        .cfi_restore r6
        .cfi_restore r7
        .cfi_restore r8
        .cfi_restore r9
        .cfi_restore r10
        .cfi_restore r11
        .cfi_restore lr
        spot    \is_interpreter, 0
        .endm

        // All but r10 and r11.
        .macro  trash
        mvn     r4, #0x5a
        mov     r5, r4
        mov     r6, r4
        mov     r7, r4
        mov     r8, r4
        mov     r9, r4
        .endm

        // "DEX1": the dex pc is in a register.
        .macro  mark dex_pc
        .cfi_escape 0x16, 0x00, 0x09, 0x0c, 0x44, 0x45, 0x58, 0x31, 0x13, 0x92, \dex_pc, 0x00
        .endm

        // Found by sp.
        .macro  plain name, bytes
        begin   \name
        save    \bytes
        str     r0, [sp, #4]
        trash
        mov     r10, r4
        mov     r11, r4
        spot
        call_next "[sp, #4]"
        restore \bytes
        end     \name
        .endm

        plain   native, 12
        plain   compiled, 60
        plain   jni_stub, 76

        // Found by a register that the callee saves.
        .macro  by_register name, reg, other, bytes
        begin   \name
        save    \bytes
        str     r0, [sp, #4]
        mov     \reg, sp
        .cfi_def_cfa_register \reg
        spot
        ldr     r3, [r0, #4]
        sub     sp, sp, r3
        trash
        mov     \other, r4
        spot
        call_next "[\reg, #4]"
        spot
        mov     sp, \reg
        spot
        .cfi_def_cfa_register sp
        restore \bytes
        end     \name
        .endm

        by_register generic_jni, r10, r11, 76
        by_register invoke_stub, r11, r10, 12
        by_register osr_stub, r11, r10, 44

        // The switch interpreter: its loop is C++, which saves r4.
        begin   switch
        push    {r4, lr}
        .cfi_def_cfa_offset 8
        .cfi_offset r4, -8
        .cfi_offset lr, -4
        spot
        sub     sp, sp, #8
        .cfi_def_cfa_offset 16
        str     r0, [sp]
        ldr     r4, [r0]
        mark    4
        spot    1, 1
        call_next "[sp]", 1
        spot    1, 1
        add     sp, sp, #8
        .cfi_def_cfa_offset 8
        spot    1, 1
        pop     {r4, lr}
        .cfi_def_cfa_offset 0
        .cfi_restore r4
        .cfi_restore lr
        spot    1, 0
        end     switch

        // The first interpreter in assembly.
        begin   mterp
        save    12
        str     r0, [sp, #4]
        trash
        mov     r10, r4
        mov     r11, r4
        ldr     r4, [r0]
        mark    4
        spot    1, 1
        call_next "[sp, #4]", 1
        restore 12, 1
        end     mterp

        // The second one: its frame is found by what lies below its references.
        .set    NTERP_SAVED_BYTES, 40
        begin   nterp
        save    4
        trash
        mov     r5, sp
        .cfi_def_cfa_register r5
        ldr     r3, [r0, #4]
        sub     sp, sp, #128
        sub     sp, sp, r3
        add     r10, sp, #64
        str     r5, [r10, #-4]
        str     r0, [sp]
        spot
        ldr     r11, [r0]
        .cfi_escape 0x0f, 6, 0x92, 10, 0x7c, 0x06, 0x23, NTERP_SAVED_BYTES
        mark    11
        spot    1, 1
        mov     r6, r10
        .cfi_escape 0x0f, 6, 0x92, 6, 0x7c, 0x06, 0x23, NTERP_SAVED_BYTES
        mov     r10, #0
        mov     r5, #0
        spot    1, 1
        call_next "[sp]", 1
        spot    1, 1
        ldr     r3, [r6, #-4]
        mov     sp, r3
        .cfi_def_cfa sp, NTERP_SAVED_BYTES
        restore 4, 1
        end     nterp

        .section .note.GNU-stack, "", %progbits

// SPDX-License-Identifier: Apache-2.0
// See managed.h.
#include "macros.inc"

        // What callees save, and x30, in the upper 96 bytes of a frame.
        .set    SAVED_BYTES, 96
        .macro  save bytes
        sub     sp, sp, #(\bytes + SAVED_BYTES)
        .cfi_def_cfa_offset \bytes + SAVED_BYTES
        spot
        stp     x19, x20, [sp, #\bytes]
        .cfi_offset x19, -96
        .cfi_offset x20, -88
        stp     x21, x22, [sp, #(\bytes + 16)]
        .cfi_offset x21, -80
        .cfi_offset x22, -72
        spot
        stp     x23, x24, [sp, #(\bytes + 32)]
        .cfi_offset x23, -64
        .cfi_offset x24, -56
        stp     x25, x26, [sp, #(\bytes + 48)]
        .cfi_offset x25, -48
        .cfi_offset x26, -40
        stp     x27, x28, [sp, #(\bytes + 64)]
        .cfi_offset x27, -32
        .cfi_offset x28, -24
        spot
        stp     x29, x30, [sp, #(\bytes + 80)]
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        spot
        .endm

        // An interpreter's mark stays up to the function's end. x20_ and x22_: their registers.
        .macro  restore bytes, is_interpreter=0, x20_is_dex_pc=0, x22_is_dex_pc=0
        spot    \is_interpreter, \x20_is_dex_pc | \x22_is_dex_pc
        ldp     x19, x20, [sp, #\bytes]
        .cfi_restore x19
        .cfi_restore x20
        spot    \is_interpreter, \x22_is_dex_pc
        ldp     x21, x22, [sp, #(\bytes + 16)]
        .cfi_restore x21
        .cfi_restore x22
        spot    \is_interpreter, 0
        ldp     x23, x24, [sp, #(\bytes + 32)]
        .cfi_restore x23
        .cfi_restore x24
        ldp     x25, x26, [sp, #(\bytes + 48)]
        .cfi_restore x25
        .cfi_restore x26
        ldp     x27, x28, [sp, #(\bytes + 64)]
        .cfi_restore x27
        .cfi_restore x28
        spot    \is_interpreter, 0
        ldp     x29, x30, [sp, #(\bytes + 80)]
        .cfi_restore x29
        .cfi_restore x30
        spot    \is_interpreter, 0
        add     sp, sp, #(\bytes + SAVED_BYTES)
        .cfi_def_cfa_offset 0
        spot    \is_interpreter, 0
        .endm

        // All but x28 and x29.
        .macro  trash
        mov     x19, #-0x5a5b
        mov     x20, x19
        mov     x21, x19
        mov     x22, x19
        mov     x23, x19
        mov     x24, x19
        mov     x25, x19
        mov     x26, x19
        mov     x27, x19
        .endm

        // "DEX1": the dex pc is in a register.
        .macro  mark dex_pc
        .cfi_escape 0x16, 0x00, 0x09, 0x0c, 0x44, 0x45, 0x58, 0x31, 0x13, 0x92, \dex_pc, 0x00
        .endm

        // Found by sp.
        .macro  plain name, bytes
        begin   \name
        save    \bytes
        str     x0, [sp, #8]
        trash
        mov     x28, x19
        mov     x29, x19
        spot
        call_next "[sp, #8]"
        spot
        restore \bytes
        end     \name
        .endm

        plain   native, 16
        plain   compiled, 80
        plain   jni_stub, 128

        // Found by a register that the callee saves.
        .macro  by_register name, reg, other, bytes
        begin   \name
        save    \bytes
        str     x0, [sp, #8]
        mov     \reg, sp
        .cfi_def_cfa_register \reg
        spot
        ldr     x9, [x0, #8]
        sub     sp, sp, x9
        trash
        mov     \other, x19
        spot
        call_next "[\reg, #8]"
        spot
        mov     sp, \reg
        spot
        .cfi_def_cfa_register sp
        restore \bytes
        end     \name
        .endm

        by_register generic_jni, x28, x29, 128
        by_register invoke_stub, x29, x28, 16
        by_register osr_stub, x29, x28, 48

        // The switch interpreter: its loop is C++, which saves x19.
        begin   switch
        str     x19, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset x19, -32
        spot
        str     x30, [sp, #8]
        .cfi_offset x30, -24
        str     x0, [sp, #16]
        ldr     x19, [x0]
        mark    19
        spot    1, 1
        call_next "[sp, #16]", 1
        spot    1, 1
        ldr     x30, [sp, #8]
        .cfi_restore x30
        spot    1, 1
        ldr     x19, [sp], #32
        .cfi_restore x19
        .cfi_def_cfa_offset 0
        spot    1, 0
        end     switch

        // The first interpreter in assembly.
        begin   mterp
        save    16
        str     x0, [sp, #8]
        trash
        mov     x28, x19
        ldr     x20, [x0]
        mark    20
        spot    1, 1
        call_next "[sp, #8]", 1
        spot    1, 1
        restore 16, 1, 1, 0
        end     mterp

        // The second one: its frame is found by what lies below its references.
        .set    NTERP_SAVED_BYTES, 96
        begin   nterp
        save    0
        trash
        mov     x28, x19
        mov     x23, sp
        .cfi_def_cfa_register x23
        ldr     x9, [x0, #8]
        sub     sp, sp, #128
        sub     sp, sp, x9
        add     x27, sp, #64
        stur    x23, [x27, #-8]
        str     x0, [sp]
        spot
        ldr     x22, [x0]
        .cfi_escape 0x0f, 6, 0x92, 27, 0x78, 0x06, 0x23, NTERP_SAVED_BYTES
        mark    22
        spot    1, 1
        mov     x25, x27
        .cfi_escape 0x0f, 6, 0x92, 25, 0x78, 0x06, 0x23, NTERP_SAVED_BYTES
        mov     x27, #-1
        mov     x23, #-1
        mov     x29, #-1
        spot    1, 1
        call_next "[sp]", 1
        spot    1, 1
        ldur    x9, [x25, #-8]
        mov     sp, x9
        .cfi_def_cfa sp, NTERP_SAVED_BYTES
        restore 0, 1, 0, 1
        end     nterp

        .section .note.GNU-stack, "", @progbits

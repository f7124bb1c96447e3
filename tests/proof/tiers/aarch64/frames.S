// SPDX-License-Identifier: Apache-2.0
// Frames of 64 bytes each, and what is kept in x29. See play.h.
        .text

// What all do: note the return address, ask, call from one of two places, until there is nothing to call.
        .macro  body play, keeps_data
        str     x0, \play
        mov     x1, x30
        bl      play_enter
1:
        ldr     x0, \play
        bl      play_next
        cbz     x0, 3f
        mov     x9, x0
        ldr     x0, \play
        .if     \keeps_data
        ldr     x29, [x0, #8]
        .endif
        ldr     x10, [x0]
        cbnz    x10, 2f
        blr     x9
        b       1b
2:
        blr     x9
        b       1b
3:
        .endm

        .macro  begin name
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        .endm

        .macro  end name
        .cfi_endproc
        .size   \name, . - \name
        .endm

        begin   play_plain
        str     x30, [sp, #-64]!
        .cfi_def_cfa_offset 64
        .cfi_offset x30, -64
        body    "[sp, #16]", 0
        ldr     x30, [sp], #64
        .cfi_def_cfa_offset 0
        .cfi_restore x30
        ret
        end     play_plain

        begin   play_keep_data
        stp     x29, x30, [sp, #-64]!
        .cfi_def_cfa_offset 64
        .cfi_offset x29, -64
        .cfi_offset x30, -56
        body    "[sp, #16]", 1
        ldp     x29, x30, [sp], #64
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        end     play_keep_data

        begin   play_base
        stp     x29, x30, [sp, #-64]!
        .cfi_def_cfa_offset 64
        .cfi_offset x29, -64
        .cfi_offset x30, -56
        mov     x29, sp
        .cfi_def_cfa_register x29
        ldr     x9, [x0, #16]
        sub     sp, sp, x9
        body    "[x29, #16]", 0
        mov     sp, x29
        .cfi_def_cfa_register sp
        ldp     x29, x30, [sp], #64
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        end     play_base

        begin   play_other_base
        stp     x19, x30, [sp, #-64]!
        .cfi_def_cfa_offset 64
        .cfi_offset x19, -64
        .cfi_offset x30, -56
        mov     x19, sp
        .cfi_def_cfa_register x19
        ldr     x9, [x0, #16]
        sub     sp, sp, x9
        body    "[x19, #16]", 0
        mov     sp, x19
        .cfi_def_cfa_register sp
        ldp     x19, x30, [sp], #64
        .cfi_def_cfa_offset 0
        .cfi_restore x19
        .cfi_restore x30
        ret
        end     play_other_base

        begin   play_lose
        stp     x29, x30, [sp, #-64]!
        .cfi_def_cfa_offset 64
        .cfi_undefined x29
        .cfi_offset x30, -56
        body    "[sp, #16]", 1
        ldp     x29, x30, [sp], #64
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        end     play_lose

// Here a rule says that the stack ends, at the instruction behind the call only: true of code that is interrupted
// there, not of a call that will return there.
        begin   play_turn
        str     x30, [sp, #-64]!
        .cfi_def_cfa_offset 64
        .cfi_offset x30, -64
        str     x0, [sp, #16]
        mov     x1, x30
        bl      play_enter
1:
        ldr     x0, [sp, #16]
        bl      play_next
        cbz     x0, 3f
        mov     x9, x0
        ldr     x0, [sp, #16]
        blr     x9
        .globl  play_turned
play_turned:
        .cfi_remember_state
        .cfi_undefined x30
        nop
        .cfi_restore_state
        b       1b
3:
        ldr     x30, [sp], #64
        .cfi_def_cfa_offset 0
        .cfi_restore x30
        ret
        end     play_turn

        .section .note.GNU-stack, "", @progbits

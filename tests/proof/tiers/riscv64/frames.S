// SPDX-License-Identifier: Apache-2.0
// Frames of 64 bytes each, and what is kept in s0. See play.h.
        .text

// What all do: note the return address, ask, call from one of two places, until there is nothing to call.
        .macro  body play, keeps_data
        sd      a0, \play
        mv      a1, ra
        call    play_enter
1:
        ld      a0, \play
        call    play_next
        beqz    a0, 3f
        mv      t0, a0
        ld      a0, \play
        .if     \keeps_data
        ld      s0, 8(a0)
        .endif
        ld      t1, 0(a0)
        bnez    t1, 2f
        jalr    t0
        j       1b
2:
        jalr    t0
        j       1b
3:
        .endm

        .macro  begin name
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        addi    sp, sp, -64
        .cfi_def_cfa_offset 64
        sd      ra, 56(sp)
        .cfi_offset ra, -8
        .endm

        .macro  end name
        ld      ra, 56(sp)
        .cfi_restore ra
        addi    sp, sp, 64
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   \name, . - \name
        .endm

        begin   play_plain
        body    "16(sp)", 0
        end     play_plain

        begin   play_keep_data
        sd      s0, 48(sp)
        .cfi_offset s0, -16
        body    "16(sp)", 1
        ld      s0, 48(sp)
        .cfi_restore s0
        end     play_keep_data

        begin   play_base
        sd      s0, 48(sp)
        .cfi_offset s0, -16
        addi    s0, sp, 64
        .cfi_def_cfa s0, 0
        ld      t0, 16(a0)
        sub     sp, sp, t0
        body    "-48(s0)", 0
        addi    sp, s0, -64
        .cfi_def_cfa sp, 64
        ld      s0, 48(sp)
        .cfi_restore s0
        end     play_base

        begin   play_other_base
        sd      s1, 48(sp)
        .cfi_offset s1, -16
        addi    s1, sp, 64
        .cfi_def_cfa s1, 0
        ld      t0, 16(a0)
        sub     sp, sp, t0
        body    "-48(s1)", 0
        addi    sp, s1, -64
        .cfi_def_cfa sp, 64
        ld      s1, 48(sp)
        .cfi_restore s1
        end     play_other_base

        begin   play_lose
        sd      s0, 48(sp)
        .cfi_undefined s0
        body    "16(sp)", 1
        ld      s0, 48(sp)
        .cfi_restore s0
        end     play_lose

// Here a rule says that the stack ends, at the instruction behind the call only: true of code that is interrupted
// there, not of a call that will return there.
        begin   play_turn
        sd      a0, 16(sp)
        mv      a1, ra
        call    play_enter
1:
        ld      a0, 16(sp)
        call    play_next
        beqz    a0, 3f
        mv      t0, a0
        ld      a0, 16(sp)
        jalr    t0
        .globl  play_turned
play_turned:
        .cfi_remember_state
        .cfi_undefined ra
        nop
        .cfi_restore_state
        j       1b
3:
        end     play_turn

        .section .note.GNU-stack, "", @progbits

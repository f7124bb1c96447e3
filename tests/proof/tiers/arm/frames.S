// SPDX-License-Identifier: Apache-2.0
// Frames of 32 bytes each, and what is kept in the frame pointer: r7 in Thumb code, r11 in Arm code. See play.h.
        .syntax unified
        .cfi_sections .debug_frame
#if defined(__thumb2__)
        .thumb
#define FP r7
#define SLOT_BY_FP "[r7, #8]"
#else
        .arm
#define FP r11
#define SLOT_BY_FP "[r11, #8]"
#endif
        .text

// What all do: note the return address, ask, call from one of two places, until there is nothing to call.
        .macro  body play, keeps_data
        str     r0, \play
        mov     r1, lr
        bl      play_enter
1:
        ldr     r0, \play
        bl      play_next
        cmp     r0, #0
        beq     3f
        mov     r2, r0
        ldr     r0, \play
        .if     \keeps_data
        ldr     FP, [r0, #4]
        .endif
        ldr     r3, [r0]
        cmp     r3, #0
        bne     2f
        blx     r2
        b       1b
2:
        blx     r2
        b       1b
3:
        .endm

        .macro  begin name
        .globl  \name
        .type   \name, %function
        .p2align 4
\name:
        .cfi_startproc
        sub     sp, sp, #32
        .cfi_def_cfa_offset 32
        str     lr, [sp, #28]
        .cfi_offset lr, -4
        .endm

        .macro  end name
        ldr     lr, [sp, #28]
        .cfi_restore lr
        add     sp, sp, #32
        .cfi_def_cfa_offset 0
        bx      lr
        .cfi_endproc
        .size   \name, . - \name
        .endm

        begin   play_plain
        body    "[sp, #8]", 0
        end     play_plain

        begin   play_keep_data
        str     FP, [sp, #24]
        .cfi_offset FP, -8
        body    "[sp, #8]", 1
        ldr     FP, [sp, #24]
        .cfi_restore FP
        end     play_keep_data

        begin   play_base
        str     FP, [sp, #24]
        .cfi_offset FP, -8
        mov     FP, sp
        .cfi_def_cfa_register FP
        ldr     r2, [r0, #8]
        sub     sp, sp, r2
        body    SLOT_BY_FP, 0
        mov     sp, FP
        .cfi_def_cfa_register sp
        ldr     FP, [sp, #24]
        .cfi_restore FP
        end     play_base

        begin   play_other_base
        str     r4, [sp, #24]
        .cfi_offset r4, -8
        mov     r4, sp
        .cfi_def_cfa_register r4
        ldr     r2, [r0, #8]
        sub     sp, sp, r2
        body    "[r4, #8]", 0
        mov     sp, r4
        .cfi_def_cfa_register sp
        ldr     r4, [sp, #24]
        .cfi_restore r4
        end     play_other_base

        begin   play_lose
        str     FP, [sp, #24]
        .cfi_undefined FP
        body    "[sp, #8]", 1
        ldr     FP, [sp, #24]
        .cfi_restore FP
        end     play_lose

// Here a rule says that the stack ends, at the instruction behind the call only: true of code that is interrupted
// there, not of a call that will return there.
        begin   play_turn
        str     r0, [sp, #8]
        mov     r1, lr
        bl      play_enter
1:
        ldr     r0, [sp, #8]
        bl      play_next
        cmp     r0, #0
        beq     3f
        mov     r2, r0
        ldr     r0, [sp, #8]
        blx     r2
        .globl  play_turned
play_turned:
        .cfi_remember_state
        .cfi_undefined lr
        nop
        .cfi_restore_state
        b       1b
3:
        end     play_turn

        .section .note.GNU-stack, "", %progbits

// SPDX-License-Identifier: Apache-2.0
// Frames of 64 bytes each, and what is kept in rbp. See play.h.
        .text

// What all do: note the return address, ask, call from one of two places, until there is nothing to call.
        .macro  body play, keeps_data
        movq    %rdi, \play
        call    play_enter
1:
        movq    \play, %rdi
        call    play_next
        testq   %rax, %rax
        jz      3f
        movq    \play, %rdi
        .if     \keeps_data
        movq    8(%rdi), %rbp
        .endif
        cmpq    $0, (%rdi)
        jne     2f
        call    *%rax
        jmp     1b
2:
        call    *%rax
        jmp     1b
3:
        .endm

        .macro  begin name
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        movq    (%rsp), %rsi
        .endm

        .macro  end name
        .cfi_endproc
        .size   \name, . - \name
        .endm

        begin   play_plain
        subq    $56, %rsp
        .cfi_def_cfa_offset 64
        body    (%rsp), 0
        addq    $56, %rsp
        .cfi_def_cfa_offset 8
        ret
        end     play_plain

        begin   play_keep_data
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        subq    $48, %rsp
        .cfi_def_cfa_offset 64
        body    (%rsp), 1
        addq    $48, %rsp
        .cfi_def_cfa_offset 16
        popq    %rbp
        .cfi_def_cfa_offset 8
        .cfi_restore rbp
        ret
        end     play_keep_data

        begin   play_base
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
        subq    $48, %rsp
        subq    16(%rdi), %rsp
        body    -8(%rbp), 0
        movq    %rbp, %rsp
        popq    %rbp
        .cfi_def_cfa rsp, 8
        .cfi_restore rbp
        ret
        end     play_base

        begin   play_other_base
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset rbx, -16
        movq    %rsp, %rbx
        .cfi_def_cfa_register rbx
        subq    $48, %rsp
        subq    16(%rdi), %rsp
        body    -8(%rbx), 0
        movq    %rbx, %rsp
        popq    %rbx
        .cfi_def_cfa rsp, 8
        .cfi_restore rbx
        ret
        end     play_other_base

        begin   play_lose
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_undefined rbp
        subq    $48, %rsp
        .cfi_def_cfa_offset 64
        body    (%rsp), 1
        addq    $48, %rsp
        .cfi_def_cfa_offset 16
        popq    %rbp
        .cfi_def_cfa_offset 8
        .cfi_restore rbp
        ret
        end     play_lose

// Here a rule says that the stack ends, at the instruction behind the call only: true of code that is interrupted
// there, not of a call that will return there.
        begin   play_turn
        subq    $56, %rsp
        .cfi_def_cfa_offset 64
        movq    %rdi, (%rsp)
        call    play_enter
1:
        movq    (%rsp), %rdi
        call    play_next
        testq   %rax, %rax
        jz      3f
        movq    (%rsp), %rdi
        call    *%rax
        .globl  play_turned
play_turned:
        .cfi_remember_state
        .cfi_undefined rip
        nop
        nop
        .cfi_restore_state
        jmp     1b
3:
        addq    $56, %rsp
        .cfi_def_cfa_offset 8
        ret
        end     play_turn

        .section .note.GNU-stack, "", @progbits

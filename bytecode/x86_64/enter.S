// SPDX-License-Identifier: Apache-2.0
// How machine code of programs (translate.c) is entered, and how it calls helpers. It changes rsp nowhere and keeps
// nothing else than what stands here, so one rule holds for all of it: that of x86_64_call, which stands for it
// in walks. Helpers are called from here: whoever walks from within them meets no address of that code.
        .set    HEAD_BYTES, 16                  // translate.c
        .set    STACK_BYTES, 512
        .set    GO_ON, 8                        // from rsp, in the code: where it goes on behind a helper
        .set    FRAME_BYTES, 16 + STACK_BYTES
        .set    KEPT_BYTES, 8 + 6 * 8           // ra, and the registers

        .text
        .balign 16
        .globl  x86_64_enter
        .hidden x86_64_enter
        .type   x86_64_enter, @function
x86_64_enter:                                   // rdi: the code, rsi: fields, rdx: the host
        .cfi_startproc
        .macro  keep register
        pushq   \register
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset \register, 0
        .endm
        .macro  give_back register
        popq    \register
        .cfi_adjust_cfa_offset -8
        .cfi_restore \register
        .endm
        .irp    register, %rbp, %rbx, %r12, %r13, %r14, %r15
        keep    \register
        .endr
        subq    $FRAME_BYTES, %rsp
        .cfi_adjust_cfa_offset FRAME_BYTES
        leaq    FRAME_BYTES(%rsp), %rbp         // r10
        movq    %rdx, %r12
        movq    %rsi, %rdx                      // r1
        addq    $HEAD_BYTES, %rdi
        call    *%rdi
        addq    $FRAME_BYTES, %rsp
        .cfi_adjust_cfa_offset -FRAME_BYTES
        .cfi_remember_state
        .irp    register, %r15, %r14, %r13, %r12, %rbx, %rbp
        give_back \register
        .endr
        ret

        // Not called: the code jumps here. rsp is a word lower than at its call, and a multiple of 16. esi: the helper,
        // rdx, rcx, r8: r1 to r3, r11: where to go on; rax becomes r0.
        .globl  x86_64_call
        .hidden x86_64_call
x86_64_call:
        .cfi_restore_state
        .cfi_def_cfa_offset KEPT_BYTES + FRAME_BYTES + 8 // clang 14 does not adjust what it has restored
        movq    %r11, GO_ON(%rsp)
        movq    %r12, %rdi
        call    *(%r12)
        jmp     *GO_ON(%rsp)
        .cfi_endproc
        .size   x86_64_enter, . - x86_64_enter

        .section .note.GNU-stack, "", @progbits

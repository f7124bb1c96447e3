// SPDX-License-Identifier: Apache-2.0
        .text
        .globl  native_call
        .type   native_call, @function
        .p2align 4
native_call:
        .cfi_startproc
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r15, 0
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        leaq    1f(%rip), %rax
        movq    %rax, 80(%rsi)
        movq    %rsp, 88(%rsi)
        movq    0(%rsi), %rbp
        movq    8(%rsi), %rbx
        movq    16(%rsi), %r12
        movq    24(%rsi), %r13
        movq    32(%rsi), %r14
        movq    40(%rsi), %r15
        movq    %rdi, %rax
        movq    72(%rsi), %rdx
        movq    56(%rsi), %rdi
        movq    64(%rsi), %rsi
        call    *%rax
1:
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbp
        ret
        .cfi_endproc
        .size   native_call, . - native_call

        .globl  native_store
        .type   native_store, @function
        .p2align 4
native_store:
        .cfi_startproc
        movl    $1, (%rbx)
        ret
        .cfi_endproc
        .size   native_store, . - native_store

        .section .note.GNU-stack, "", @progbits

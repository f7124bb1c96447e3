// SPDX-License-Identifier: Apache-2.0
// See exchange.h. What is at (%rsp) at entry is the slot; its shadow at (%rsp) - 2^46.
        .text
        .set    DISTANCE, 0x400000000000

        .globl  exchange_enter, exchange_twice, exchange_exit
        .type   exchange_enter, @function
        .p2align 4
exchange_twice:
        .cfi_startproc
        movq    (%rsp), %rcx
        movabsq $-DISTANCE, %rax
        movq    %rcx, (%rsp,%rax)
        movq    %rcx, 32(%rdi)
        leaq    exchange_exit(%rip), %rcx
        movq    %rcx, (%rsp)
        .cfi_escape 0x11, 16, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 2 // rip at cfa - 8 * (1 + 2^43)
        jmp     1f
        .cfi_endproc

        .p2align 4
exchange_enter:
        .cfi_startproc
1:
        movq    (%rsp), %rcx
        leaq    exchange_exit(%rip), %rdx
        cmpq    %rcx, %rdx
        je      2f
        movabsq $-DISTANCE, %rax
        movq    %rcx, (%rsp,%rax)
        movq    %rcx, 32(%rdi)
2:
        movq    24(%rdi), %r11
        leaq    8(%rsp), %rsp
        .cfi_def_cfa_offset 0
        // The slot is as it was, until it is exchanged.
        .cfi_remember_state
        .cfi_def_cfa_offset 8
        // rip at cfa - 8 * (2 + 2^43), by hand: clang's .cfi_offset has 32 bits
        .cfi_escape 0x11, 16, 0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 2
        .cfi_escape 0x16, 7, 2, 0x77, 0 // DW_CFA_val_expression: rsp = rsp
        call    3f
exchange_exit:
        leaq    -8(%rsp), %rsp
        .cfi_def_cfa_offset 16
        .cfi_escape 0x16, 7, 2, 0x77, 8
        pushq   %rax
        .cfi_def_cfa_offset 24
        .cfi_escape 0x16, 7, 2, 0x77, 16
        movabsq $-DISTANCE, %rax
        movq    8(%rsp,%rax), %rax
        movq    %rax, 8(%rsp)
        popq    %rax
        .cfi_def_cfa_offset 8
        .cfi_offset rip, -8
        .cfi_restore rsp
        ret
        .cfi_restore_state
        .cfi_def_cfa_offset 8
3:
        jmp     *%r11
        .cfi_endproc
        .size   exchange_enter, . - exchange_enter

        .section .note.GNU-stack, "", @progbits

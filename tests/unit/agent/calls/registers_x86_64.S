// SPDX-License-Identifier: Apache-2.0
// Calls a traced function with a value of its own in every register, and looks at all of them where the function begins
// and when it is back. Nothing but rsp, and the flags, may be another one.
//
// long registers_call(struct registers given[1], struct registers at_entry[1], struct registers at_exit[1], void *function,
//                     long has_avx)
//
// struct registers: 16 words in the order of their numbers, then 16 times 32 bytes of ymm, then mxcsr.

        .set    YMM, 128

        .macro  each_vector what
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        \what   \n
        .endr
        .endm

        .macro  load_ymm n
        vmovdqu YMM+\n*32(%rdi), %ymm\n
        .endm
        .macro  load_xmm n
        movdqu  YMM+\n*32(%rdi), %xmm\n
        .endm
        .macro  store_ymm n
        vmovdqu %ymm\n, YMM+\n*32(%rdi)
        .endm
        .macro  store_xmm n
        movdqu  %xmm\n, YMM+\n*32(%rdi)
        .endm

        // All registers into the struct whose address is in `place`.
        .macro  store_all place, label
        pushq   %rdi
        movq    \place(%rip), %rdi
        movq    %rax, 0(%rdi)
        movq    %rcx, 8(%rdi)
        movq    %rdx, 16(%rdi)
        movq    %rbx, 24(%rdi)
        movq    %rbp, 40(%rdi)
        movq    %rsi, 48(%rdi)
        popq    %rax
        movq    %rsp, 32(%rdi)
        movq    %rax, 56(%rdi)
        movq    %r8, 64(%rdi)
        movq    %r9, 72(%rdi)
        movq    %r10, 80(%rdi)
        movq    %r11, 88(%rdi)
        movq    %r12, 96(%rdi)
        movq    %r13, 104(%rdi)
        movq    %r14, 112(%rdi)
        movq    %r15, 120(%rdi)
        stmxcsr 640(%rdi)
        cmpq    $0, registers_has_avx(%rip)
        je      1f
        each_vector store_ymm
        jmp     2f
1:      each_vector store_xmm
2:
        .endm

        .macro  load_all
        ldmxcsr 640(%rdi)
        cmpq    $0, registers_has_avx(%rip)
        je      1f
        each_vector load_ymm
        jmp     2f
1:      each_vector load_xmm
2:      movq    0(%rdi), %rax
        movq    8(%rdi), %rcx
        movq    16(%rdi), %rdx
        movq    24(%rdi), %rbx
        movq    40(%rdi), %rbp
        movq    48(%rdi), %rsi
        movq    64(%rdi), %r8
        movq    72(%rdi), %r9
        movq    80(%rdi), %r10
        movq    88(%rdi), %r11
        movq    96(%rdi), %r12
        movq    104(%rdi), %r13
        movq    112(%rdi), %r14
        movq    120(%rdi), %r15
        movq    56(%rdi), %rdi
        .endm

        .text
        .globl  registers_call
        .type   registers_call, @function
registers_call:
        pushq   %rbx
        pushq   %rbp
        pushq   %r12
        pushq   %r13
        pushq   %r14
        pushq   %r15
        subq    $8, %rsp
        movq    %rdi, registers_given(%rip)
        movq    %rsi, registers_at_entry(%rip)
        movq    %rdx, registers_at_exit(%rip)
        movq    %rcx, registers_function(%rip)
        movq    %r8, registers_has_avx(%rip)
        load_all
        call    *registers_function(%rip)
        store_all registers_at_exit
        addq    $8, %rsp
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbp
        popq    %rbx
        ret
        .size   registers_call, . - registers_call

        // What is traced: begins with nops, and leaves all registers as they were.
        .balign 16
        .globl  registers_function_traced
        .type   registers_function_traced, @function
registers_function_traced:
        .byte   0x0f, 0x1f, 0x44, 0, 0
        store_all registers_at_entry
        movq    registers_given(%rip), %rdi
        load_all
        ret
        .size   registers_function_traced, . - registers_function_traced

        .section .bss
        .balign 8
registers_given:        .quad 0
registers_at_entry:     .quad 0
registers_at_exit:      .quad 0
registers_function:     .quad 0
registers_has_avx:      .quad 0

        .section .note.GNU-stack, "", @progbits

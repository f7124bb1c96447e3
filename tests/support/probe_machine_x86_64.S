// SPDX-License-Identifier: Apache-2.0
// As bytecode/x86_64/enter.S, with a stack of the caller's for the program.
        .text
        .type   enter, @function
enter:                                          // rdi: the code, rsi: fields, rdx: the host, rcx: its stack's end
        .irp    register, %rbp, %rbx, %r12, %r13, %r14, %r15
        pushq   \register
        .endr
        subq    $16, %rsp
        movq    %rcx, %rbp
        movq    %rdx, %r12
        movq    %rsi, %rdx
        call    *%rdi
        addq    $16, %rsp
        .irp    register, %r15, %r14, %r13, %r12, %rbx, %rbp
        popq    \register
        .endr
        ret
        .size   enter, . - enter

        .section .data.rel.ro, "aw", @progbits
        .balign 8
        .globl  probe_machine_enter
        .hidden probe_machine_enter
        .type   probe_machine_enter, @object
        .size   probe_machine_enter, 8
probe_machine_enter:
        .quad   enter

        .section .note.GNU-stack, "", @progbits

// SPDX-License-Identifier: Apache-2.0
// At the entry of a function the callee-saved registers are still the caller's: nothing has to be unwound to get them.
// The frame: the 9 words of struct arch_capture, of which the last is not used, keep rsp aligned to 16.

#ifdef __CET__
#include <cet.h> // the note that says so
#endif

        .macro capture
        .cfi_startproc
        endbr64
        subq    $72, %rsp
        .cfi_adjust_cfa_offset 72
        movq    72(%rsp), %rax          // pc: the return address
        movq    %rax, 0(%rsp)
        leaq    80(%rsp), %rax          // sp: as it is behind the call
        movq    %rax, 8(%rsp)
        movq    %rbp, 16(%rsp)
        movq    %rbx, 24(%rsp)
        movq    %r12, 32(%rsp)
        movq    %r13, 40(%rsp)
        movq    %r14, 48(%rsp)
        movq    %r15, 56(%rsp)
        .endm

        .macro leave_capture
        addq    $72, %rsp
        .cfi_adjust_cfa_offset -72
        ret
        .cfi_endproc
        .endm

        .hidden walk_backtrace_captured
        .hidden walk_cursor_captured
        .hidden feed_trace_sample_captured

        .text
        .globl  qut_backtrace
        .type   qut_backtrace, @function
        .p2align 4
// size_t qut_backtrace(uintptr_t *pcs, size_t max, struct qut_end *end)
qut_backtrace:
        capture
        movq    %rsp, %rcx
        call    walk_backtrace_captured
        leave_capture
        .size   qut_backtrace, . - qut_backtrace

        .globl  qut_cursor_here
        .type   qut_cursor_here, @function
        .p2align 4
// void qut_cursor_here(struct qut_cursor *cursor)
qut_cursor_here:
        capture
        movq    %rsp, %rsi
        call    walk_cursor_captured
        leave_capture
        .size   qut_cursor_here, . - qut_cursor_here

        .globl  qut_trace_sample
        .type   qut_trace_sample, @function
        .p2align 4
// int qut_trace_sample(const void *ucontext, const struct qut_event *event)
qut_trace_sample:
        capture
        movq    %rsp, %rdx
        call    feed_trace_sample_captured
        leave_capture
        .size   qut_trace_sample, . - qut_trace_sample

        .section .note.GNU-stack, "", @progbits

// SPDX-License-Identifier: Apache-2.0
// At the entry of a function the callee-saved registers are still the caller's: nothing has to be unwound to get them.
// The frame, from esp on: 4 words of arguments, 6 words of struct arch_capture, and 5 that keep esp aligned to 16 (the
// last three of struct arch_capture, which are not used, among them).

#ifdef __CET__
#include <cet.h> // the note that says so
#endif

        .macro capture
        .cfi_startproc
        endbr32
        subl    $60, %esp
        .cfi_adjust_cfa_offset 60
        movl    60(%esp), %eax          // pc: the return address
        movl    %eax, 16(%esp)
        leal    64(%esp), %eax          // sp: as it is behind the call
        movl    %eax, 20(%esp)
        movl    %ebp, 24(%esp)
        movl    %ebx, 28(%esp)
        movl    %esi, 32(%esp)
        movl    %edi, 36(%esp)
        leal    16(%esp), %edx
        .endm

        .macro leave_capture
        addl    $60, %esp
        .cfi_adjust_cfa_offset -60
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
        movl    64(%esp), %eax
        movl    %eax, 0(%esp)
        movl    68(%esp), %eax
        movl    %eax, 4(%esp)
        movl    72(%esp), %eax
        movl    %eax, 8(%esp)
        movl    %edx, 12(%esp)
        call    walk_backtrace_captured
        leave_capture
        .size   qut_backtrace, . - qut_backtrace

        .globl  qut_cursor_here
        .type   qut_cursor_here, @function
        .p2align 4
// void qut_cursor_here(struct qut_cursor *cursor)
qut_cursor_here:
        capture
        movl    64(%esp), %eax
        movl    %eax, 0(%esp)
        movl    %edx, 4(%esp)
        call    walk_cursor_captured
        leave_capture
        .size   qut_cursor_here, . - qut_cursor_here

        .globl  qut_trace_sample
        .type   qut_trace_sample, @function
        .p2align 4
// int qut_trace_sample(const void *ucontext, const struct qut_event *event)
qut_trace_sample:
        capture
        movl    64(%esp), %eax
        movl    %eax, 0(%esp)
        movl    68(%esp), %eax
        movl    %eax, 4(%esp)
        movl    %edx, 8(%esp)
        call    feed_trace_sample_captured
        leave_capture
        .size   qut_trace_sample, . - qut_trace_sample

        .section .note.GNU-stack, "", @progbits

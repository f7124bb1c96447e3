// SPDX-License-Identifier: Apache-2.0
// At the entry of a function the callee-saved registers are still the caller's: nothing has to be unwound to get them.
// The frame, from sp on: the 9 words of struct arch_capture, and lr, which keep sp aligned to 8. Assembles as Thumb-2 and
// as Arm code; bit 0 of the return address says what the caller is.

        .syntax unified
        .cfi_sections .debug_frame      // .ARM.exidx is what is loaded
#if defined(__thumb2__)
        .thumb
#else
        .arm
#endif

        .macro capture
        .fnstart
        .cfi_startproc
        push    {lr}
        .save   {lr}
        .cfi_def_cfa_offset 4
        .cfi_offset lr, -4
        sub     sp, sp, #36
        .pad    #36
        .cfi_def_cfa_offset 40
        add     ip, sp, #40             // sp: as it is behind the call
        str     lr, [sp, #0]            // pc: the return address
        str     ip, [sp, #4]
        str     r11, [sp, #8]
        str     r7, [sp, #12]
        str     r4, [sp, #16]
        str     r6, [sp, #20]
        str     r10, [sp, #24]
        str     r5, [sp, #28]
        str     r8, [sp, #32]
        .endm

        .macro leave_capture
        add     sp, sp, #36
        .cfi_def_cfa_offset 4
        pop     {pc}
        .cfi_endproc
        .fnend
        .endm

        .hidden walk_backtrace_captured
        .hidden walk_cursor_captured
        .hidden feed_trace_sample_captured

        .text
        .globl  qut_backtrace
        .type   qut_backtrace, %function
        .p2align 2
// size_t qut_backtrace(uintptr_t *pcs, size_t max, struct qut_end *end)
qut_backtrace:
        capture
        mov     r3, sp
        bl      walk_backtrace_captured
        leave_capture
        .size   qut_backtrace, . - qut_backtrace

        .globl  qut_cursor_here
        .type   qut_cursor_here, %function
        .p2align 2
// void qut_cursor_here(struct qut_cursor *cursor)
qut_cursor_here:
        capture
        mov     r1, sp
        bl      walk_cursor_captured
        leave_capture
        .size   qut_cursor_here, . - qut_cursor_here

        .globl  qut_trace_sample
        .type   qut_trace_sample, %function
        .p2align 2
// int qut_trace_sample(const void *ucontext, const struct qut_event *event)
qut_trace_sample:
        capture
        mov     r2, sp
        bl      feed_trace_sample_captured
        leave_capture
        .size   qut_trace_sample, . - qut_trace_sample

        .section .note.GNU-stack, "", %progbits

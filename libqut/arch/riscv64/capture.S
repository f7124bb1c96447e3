// SPDX-License-Identifier: Apache-2.0
// At the entry of a function the callee-saved registers are still the caller's: nothing has to be unwound to get them.
// The frame, from sp on: the 9 words of struct arch_capture, and ra, which keep sp aligned to 16.

        .macro capture
        .cfi_startproc
        addi    sp, sp, -80
        .cfi_def_cfa_offset 80
        sd      ra, 72(sp)
        .cfi_offset ra, -8
        addi    t0, sp, 80              // sp: as it is behind the call
        sd      ra, 0(sp)               // pc: the return address
        sd      t0, 8(sp)
        sd      s0, 16(sp)
        sd      s1, 24(sp)
        sd      s2, 32(sp)
        sd      s3, 40(sp)
        sd      s4, 48(sp)
        sd      s5, 56(sp)
        sd      s6, 64(sp)
        .endm

        .macro leave_capture
        ld      ra, 72(sp)
        .cfi_restore ra
        addi    sp, sp, 80
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .endm

        .hidden walk_backtrace_captured
        .hidden walk_cursor_captured
        .hidden feed_trace_sample_captured

        .text
        .globl  qut_backtrace
        .type   qut_backtrace, @function
        .p2align 2
// size_t qut_backtrace(uintptr_t *pcs, size_t max, struct qut_end *end)
qut_backtrace:
        capture
        mv      a3, sp
        call    walk_backtrace_captured
        leave_capture
        .size   qut_backtrace, . - qut_backtrace

        .globl  qut_cursor_here
        .type   qut_cursor_here, @function
        .p2align 2
// void qut_cursor_here(struct qut_cursor *cursor)
qut_cursor_here:
        capture
        mv      a1, sp
        call    walk_cursor_captured
        leave_capture
        .size   qut_cursor_here, . - qut_cursor_here

        .globl  qut_trace_sample
        .type   qut_trace_sample, @function
        .p2align 2
// int qut_trace_sample(const void *ucontext, const struct qut_event *event)
// From a context nothing is captured: that saves the 80 bytes of stack that its walk is short of here.
qut_trace_sample:
        .cfi_startproc
        beqz    a0, sample_here
        li      a2, 0
        tail    feed_trace_sample_captured
        .cfi_endproc
        .size   qut_trace_sample, . - qut_trace_sample

        .type   sample_here, @function
        .p2align 2
sample_here:
        capture
        mv      a2, sp
        call    feed_trace_sample_captured
        leave_capture
        .size   sample_here, . - sample_here

        .section .note.GNU-stack, "", @progbits

// SPDX-License-Identifier: Apache-2.0
// At the entry of a function the callee-saved registers are still the caller's: nothing has to be unwound to get them.
// The frame, from sp on: a frame record, the 9 words of struct arch_capture, and one that keeps sp aligned to 16.

        .macro capture
        .cfi_startproc
        hint    #34                     // bti c
        stp     x29, x30, [sp, #-96]!
        .cfi_def_cfa_offset 96
        .cfi_offset x29, -96
        .cfi_offset x30, -88
        add     x9, sp, #96             // sp: as it is behind the call
        stp     x30, x9, [sp, #16]      // pc: the return address
        stp     x29, x19, [sp, #32]
        stp     x20, x22, [sp, #48]
        stp     x25, x27, [sp, #64]
        str     x28, [sp, #80]
        mov     x29, sp
        .endm

        .macro leave_capture
        ldp     x29, x30, [sp], #96
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        .cfi_endproc
        .endm

        .hidden walk_backtrace_captured
        .hidden walk_cursor_captured
        .hidden feed_trace_sample_captured

        .text
        .globl  qut_backtrace
        .type   qut_backtrace, %function
        .p2align 4
// size_t qut_backtrace(uintptr_t *pcs, size_t max, struct qut_end *end)
qut_backtrace:
        capture
        add     x3, sp, #16
        bl      walk_backtrace_captured
        leave_capture
        .size   qut_backtrace, . - qut_backtrace

        .globl  qut_cursor_here
        .type   qut_cursor_here, %function
        .p2align 4
// void qut_cursor_here(struct qut_cursor *cursor)
qut_cursor_here:
        capture
        add     x1, sp, #16
        bl      walk_cursor_captured
        leave_capture
        .size   qut_cursor_here, . - qut_cursor_here

        .globl  qut_trace_sample
        .type   qut_trace_sample, %function
        .p2align 4
// int qut_trace_sample(const void *ucontext, const struct qut_event *event)
qut_trace_sample:
        capture
        add     x2, sp, #16
        bl      feed_trace_sample_captured
        leave_capture
        .size   qut_trace_sample, . - qut_trace_sample

// GNU_PROPERTY_AARCH64_FEATURE_1_AND: BTI. Without it the linker would take the mark from the whole library.
        .section .note.gnu.property, "a", %note
        .p2align 3
        .word   4, 16, 5                // name, description, NT_GNU_PROPERTY_TYPE_0
        .asciz  "GNU"
        .word   0xc0000000, 4, 1, 0

        .section .note.GNU-stack, "", %progbits

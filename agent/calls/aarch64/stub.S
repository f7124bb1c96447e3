// SPDX-License-Identifier: Apache-2.0
// Entry and exit of traced functions, as x86_64/stub.S, whose remarks hold here as well. A thunk has branched here with
// x17 at the moved instruction and the function's id before it (formats/qut_calls.md); x30 is the return address, not
// signed; sp is the slot. Every register is live but x16, x17, which a linker's veneers may change at any call, and the
// flags. Nothing can be kept below sp: there is no red zone.
//
// What unwinds looks a return address up in the `bl` before calls_exit. There, and behind it until x30 is the true one
// again, the rule is: the return address is at slot - 2^38, sp stays as it is. The CFA is slot + 8, which is no
// function's, since those are multiples of 16: libgcc tells frames by their CFA.
//
// Where a function has put its return address, and whether it has signed it, is not known here, so nobody can look for
// calls that have not returned by their slots, as on x86-64. They are told by words of the shadow that are not 0.

        .set    DISTANCE_BIT, 0x40              // of a halfword at bit 32: 2^QUT_CALLS_AARCH64_SHADOW_LOG2
        .set    GRANULE_SHIFT, 24
        .set    ADDRESS_BITS, 48
        .set    MAPPED, 1
        .set    TAIL_BIT, 0x080000
        .set    EXIT_BIT, 0x100000
        .set    SLOT_SHIFT, 18                  // slot >> 3 << 21
        .set    FRAME, 272                      // x0-x18, x30, x1 as it is handed on,
        .set    JUMPED_FROM, 168                // the exit's word of what has jumped here, and
        .set    KEPT, 176                       // x19-x29, for who takes a stack: the function's, not to be loaded

        // Of struct calls_own; the head is at 0, the limit behind it.
        .set    RING, 16
        .set    MASK, 24
        .set    COUNTS, 32

        // sp is the slot.
        .macro  cfi_behind_the_call
        .cfi_def_cfa sp, 8
        // offset_extended_sf: x30 at cfa - 8 * (1 + 2^35). By hand: assemblers' offsets have 32 bits
        .cfi_escape 0x11, 30, 0x81, 0x80, 0x80, 0x80, 0x80, 0x1
        .cfi_escape 0x16, 31, 2, 0x8f, 0        // sp = val_expression(breg31 0)
        .endm
        // sp is FRAME below it.
        .macro  cfi_behind_the_call_with_frame
        .cfi_def_cfa_offset FRAME + 8
        .cfi_escape 0x16, 31, 3, 0x8f, 0x90, 2  // sp = val_expression(breg31 FRAME)
        .endm

        .macro  keep
        sub     sp, sp, #FRAME
        .endm
        .macro  keep_some
        stp     x0, x1, [sp]
        stp     x2, x3, [sp, #16]
        stp     x4, x5, [sp, #32]
        .endm
        .macro  take_back
        ldp     x4, x5, [sp, #32]
        ldp     x2, x3, [sp, #16]
        ldp     x0, x1, [sp]
        add     sp, sp, #FRAME
        .endm

        // The thread's own, into a register.
        .macro  load_own to, with
        adrp    \to, :gottprel:calls_own
        ldr     \to, [\to, #:gottprel_lo12:calls_own]
        mrs     \with, tpidr_el0
        ldr     \to, [\with, \to]
        .endm

        // Adds to what \at points to; \old is what it was. What interrupts us and adds as well makes the store fail: the
        // return from an exception clears the monitor.
        .macro  add_alone at, number, old, new, status
.Lonce_more\@:
        ldxr    \old, [\at]
        add     \new, \old, #\number
        stxr    \status, \new, [\at]
        cbnz    \status, .Lonce_more\@
        .endm

        // An event whose word is in x1. Uses x2-x5.
        .macro  write_event full
        load_own x2, x3
        ldp     x3, x4, [x2]
        cmp     x3, x4
        b.hs    \full
        add_alone x2, 16, x3, x4, w5
        ldp     x4, x5, [x2, #RING]             // and the mask
        and     x3, x3, x5
        add     x3, x3, x4
        mrs     x4, cntvct_el0
        str     x4, [x3], #8
        stlr    x1, [x3]                        // last: then it is there
        .endm

        // Calls a C function that uses general registers only. Hands x0 over, keeps x1, gives w0.
        .macro  call_c function
        stp     x6, x7, [sp, #48]
        stp     x8, x9, [sp, #64]
        stp     x10, x11, [sp, #80]
        stp     x12, x13, [sp, #96]
        stp     x14, x15, [sp, #112]
        stp     x16, x17, [sp, #128]
        stp     x18, x30, [sp, #144]
        str     x1, [sp, #160]
        stp     x19, x20, [sp, #KEPT]
        stp     x21, x22, [sp, #KEPT + 16]
        stp     x23, x24, [sp, #KEPT + 32]
        stp     x25, x26, [sp, #KEPT + 48]
        stp     x27, x28, [sp, #KEPT + 64]
        str     x29, [sp, #KEPT + 80]
        .cfi_offset x30, 152 - FRAME
        bl      \function
        ldp     x6, x7, [sp, #48]
        ldp     x8, x9, [sp, #64]
        ldp     x10, x11, [sp, #80]
        ldp     x12, x13, [sp, #96]
        ldp     x14, x15, [sp, #112]
        ldp     x16, x17, [sp, #128]
        ldp     x18, x30, [sp, #144]
        ldr     x1, [sp, #160]
        .cfi_restore x30
        .endm

        .macro  begin name
        .globl  \name
        .hidden \name
\name:
        .endm

        .text
        .p2align 6
        begin   calls_stub_begin
        .type   calls_enter, %function
        begin   calls_enter
        .cfi_startproc
        hint    #34                             // bti c
        keep
        .cfi_def_cfa_offset FRAME
        keep_some
.Lagain:
        add     x0, sp, #FRAME
        tst     x0, #15
        b.ne    .Lno_shadow
        lsr     x1, x0, #ADDRESS_BITS
        cbnz    x1, .Lno_shadow
        adrp    x1, calls_granules
        ldr     x1, [x1, #:lo12:calls_granules]
        lsr     x2, x0, #GRANULE_SHIFT
        ldrb    w1, [x1, x2]
        cmp     w1, #MAPPED
        b.ne    .Lno_shadow
        movz    x1, #DISTANCE_BIT, lsl #32
        sub     x2, x0, x1
        adr     x3, calls_exit
        cmp     x30, x3
        b.eq    .Ltail_call                     // the shadow has the return address already
        str     x30, [x2]
.Ltail_call:
        add     x2, x2, x1, lsr #1              // 2^QUT_CALLS_AARCH64_WORDS_LOG2
        ldur    w3, [x17, #-4]
        orr     x1, x3, x0, lsl #SLOT_SHIFT
        ldr     x4, [x2]
        str     x4, [sp, #JUMPED_FROM]
        orr     x3, x1, #EXIT_BIT
        orr     x4, x3, #TAIL_BIT
        csel    x3, x4, x3, eq
        str     x3, [x2]
        orr     x3, x1, #TAIL_BIT
        csel    x1, x3, x1, eq
.Lenter_event:
        write_event .Lenter_full
.Lenter_go:
        take_back
        cfi_behind_the_call
        bl      .Lto_function
        begin   calls_exit
        keep
        cfi_behind_the_call_with_frame
        keep_some
        add     x0, sp, #FRAME
        movz    x1, #DISTANCE_BIT, lsl #32
        sub     x2, x0, x1
        ldr     x30, [x2]
        .cfi_def_cfa_offset FRAME
        .cfi_restore x30
        .cfi_restore sp
        str     xzr, [x2]                       // nobody comes back here for it
        add     x2, x2, x1, lsr #1
        ldr     x1, [x2]
.Lexit_event:
        write_event .Lexit_full
.Lexit_go:
        take_back
        .cfi_def_cfa_offset 0
        ret
.Lexit_full:
        .cfi_def_cfa_offset FRAME
        mov     w0, #1
        call_c  calls_prepare_room
        tbnz    w0, #0, .Lexit_event
        b       .Lexit_go
        begin   calls_exit_end

        // x30 is calls_exit.
.Lto_function:
        .cfi_def_cfa_offset 0
        br      x17

.Lenter_full:
        .cfi_def_cfa_offset FRAME
        mov     w0, #0
        call_c  calls_prepare_room
        tbnz    w0, #0, .Lenter_event
        b       .Lenter_go

.Lno_shadow:
        add     x0, sp, #FRAME
        call_c  calls_prepare_stack
        tbnz    w0, #0, .Lagain
        take_back                               // it passes: the function returns to where it was called
        .cfi_def_cfa_offset 0
        br      x17
        .cfi_endproc
        .size   calls_enter, . - calls_enter

        .p2align 4
        .type   calls_count, %function
        begin   calls_count
        .cfi_startproc
        hint    #34                             // bti c
        keep
        .cfi_def_cfa_offset FRAME
        keep_some
.Lcount_again:
        load_own x2, x3
        ldr     x3, [x2, #COUNTS]
        cbz     x3, .Lno_counts
        ldur    w4, [x17, #-4]
        add     x3, x3, x4, lsl #3
        add_alone x3, 1, x4, x5, w2
.Lcount_go:
        take_back
        .cfi_def_cfa_offset 0
        br      x17
.Lno_counts:
        .cfi_def_cfa_offset FRAME
        call_c  calls_prepare_counts
        tbnz    w0, #0, .Lcount_again
        b       .Lcount_go
        .cfi_endproc
        .size   calls_count, . - calls_count
        begin   calls_stub_end

// GNU_PROPERTY_AARCH64_FEATURE_1_AND: BTI. Without it the linker would take the mark from the whole agent.
        .section .note.gnu.property, "a", %note
        .p2align 3
        .word   4, 16, 5                // name, description, NT_GNU_PROPERTY_TYPE_0
        .asciz  "GNU"
        .word   0xc0000000, 4, 1, 0

        .section .note.GNU-stack, "", %progbits

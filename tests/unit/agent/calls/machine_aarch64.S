// SPDX-License-Identifier: Apache-2.0
// Functions that begin with each kind of instruction; one that keeps all registers, and one that looks at them; one that
// catches exceptions.

        .macro  function name
        .globl  \name
        .type   \name, %function
        .p2align 2
\name:
        .cfi_startproc
        .endm
        .macro  ends name
        .cfi_endproc
        .size   \name, . - \name
        .endm

        .text
        function begins_adr
        adr     x1, .Lwords
        ldr     x1, [x1]
        add     x0, x0, x1
        ret
        ends    begins_adr

        function begins_adrp
        adrp    x1, machine_data
        ldr     x1, [x1, #:lo12:machine_data]
        add     x0, x0, x1
        ret
        ends    begins_adrp

        function begins_ldr
        ldr     x1, .Lwords
        add     x0, x0, x1
        ret
        ends    begins_ldr

        function begins_ldr_w
        ldr     w1, .Lwords + 4
        add     x0, x0, x1
        ret
        ends    begins_ldr_w

        function begins_ldrsw
        ldrsw   x1, .Lwords + 4
        add     x0, x0, x1
        ret
        ends    begins_ldrsw

        function begins_ldr_d
        ldr     d0, .Lwords
        fmov    x1, d0
        add     x0, x0, x1
        ret
        ends    begins_ldr_d

        function begins_ldr_q
        ldr     q1, .Lwords
        mov     x1, v1.d[1]
        add     x0, x0, x1
        ret
        ends    begins_ldr_q

        function begins_prfm
        prfm    pldl1keep, .Lwords
        add     x0, x0, #9
        ret
        ends    begins_prfm

        function begins_b
        b       begins_add
        ends    begins_b

        function begins_add
        add     x0, x0, #3
        ret
        ends    begins_add

        function begins_ret
        ret
        ends    begins_ret

        function begins_cbz
        cbz     x0, 1f
        add     x0, x0, #5
        ret
1:      mov     x0, #77
        ret
        ends    begins_cbz

        function begins_cbnz
        cbnz    w0, 1f
        mov     x0, #78
        ret
1:      add     x0, x0, #6
        ret
        ends    begins_cbnz

        function begins_tbz
        tbz     x0, #0, 1f
        add     x0, x0, #7
        ret
1:      sub     x0, x0, #7
        ret
        ends    begins_tbz

        function begins_tbnz
        tbnz    x0, #33, 1f
        add     x0, x0, #8
        ret
1:      sub     x0, x0, #8
        ret
        ends    begins_tbnz

        function begins_stp
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        bl      begins_add
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        ends    begins_stp

        function begins_paciasp
        hint    #25
        .cfi_negate_ra_state
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        bl      begins_add
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        hint    #29
        .cfi_negate_ra_state
        ret
        ends    begins_paciasp

        function begins_pacibsp                 // key B; the literal is moved
        hint    #27
        ldr     x1, .Lwords
        stp     x29, x30, [sp, #-16]!
        bl      begins_add
        ldp     x29, x30, [sp], #16
        hint    #31
        add     x0, x0, x1
        ret
        ends    begins_pacibsp

        .p2align 4
.Lwords:
        .quad   0x8123456789abcde1, 0x1122334455667788

// ---- registers: x0-x15, then v0-v31, 16 bytes each

        .macro  store_general base
        stp     x0, x1, [\base]
        stp     x2, x3, [\base, #16]
        stp     x4, x5, [\base, #32]
        stp     x6, x7, [\base, #48]
        stp     x8, x9, [\base, #64]
        stp     x10, x11, [\base, #80]
        stp     x12, x13, [\base, #96]
        stp     x14, x15, [\base, #112]
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        str     q\n, [\base, #128 + \n * 16]
        .endr
        .endm

        // void machine_call(const struct registers *given, struct registers *at_exit, void (*function)(void))
        function machine_call
        stp     x29, x30, [sp, #-96]!
        .cfi_def_cfa_offset 96
        .cfi_offset x29, -96
        .cfi_offset x30, -88
        stp     x1, x2, [sp, #16]
        stp     d8, d9, [sp, #32]
        stp     d10, d11, [sp, #48]
        stp     d12, d13, [sp, #64]
        stp     d14, d15, [sp, #80]
        mov     x16, x2
        mov     x17, x0
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        ldr     q\n, [x17, #128 + \n * 16]
        .endr
        ldp     x0, x1, [x17]
        ldp     x2, x3, [x17, #16]
        ldp     x4, x5, [x17, #32]
        ldp     x6, x7, [x17, #48]
        ldp     x8, x9, [x17, #64]
        ldp     x10, x11, [x17, #80]
        ldp     x12, x13, [x17, #96]
        ldp     x14, x15, [x17, #112]
        blr     x16
        ldr     x16, [sp, #16]
        store_general x16
        ldp     d14, d15, [sp, #80]
        ldp     d12, d13, [sp, #64]
        ldp     d10, d11, [sp, #48]
        ldp     d8, d9, [sp, #32]
        ldp     x29, x30, [sp], #96
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        ends    machine_call

        // Looks at them where it begins, and leaves them as they are.
        function machine_looks
        hint    #34
        nop
        adrp    x16, machine_at_entry
        add     x16, x16, #:lo12:machine_at_entry
        store_general x16
        ret
        ends    machine_looks

// ---- exceptions

        // int machine_catches(void (*function)(int), int argument): 1 where one came
        function machine_catches
        .cfi_personality 0x1b, machine_personality
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov     x2, x0
        mov     w0, w1
        blr     x2
        mov     w0, #0
        b       1f
        .globl  machine_landing
machine_landing:
        hint    #36                             // bti j
        mov     w0, #1
1:      ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        ends    machine_catches

        .data
        .p2align 3
machine_data:
        .quad   0x1020304050607080

        .section .note.GNU-stack, "", %progbits

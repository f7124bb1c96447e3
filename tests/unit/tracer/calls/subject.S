// SPDX-License-Identifier: Apache-2.0
// A function for each way of moving a prologue. All take (a, b) in rdi, rsi and give a number in rax.

        .text

.macro  function name
        .p2align 4
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc
.endm

.macro  done name
        .cfi_endproc
        .size   \name, . - \name
.endm

// Instructions that are the same everywhere.
        function plain
        mov     %rdi, %rax
        add     %rsi, %rax
        ret
        done plain

        function pushes
        push    %rbx
        .cfi_adjust_cfa_offset 8
        mov     %rdi, %rbx
        lea     7(%rbx,%rsi,2), %rax
        pop     %rbx
        .cfi_adjust_cfa_offset -8
        ret
        done pushes

// Memory relative to the instruction, with and without an immediate behind the distance.
        function reads_data
        mov     datum(%rip), %rax
        add     %rdi, %rax
        ret
        done reads_data

        function compares_data
        cmpl    $0x11223344, datum(%rip)
        sete    %al
        movzbl  %al, %eax
        ret
        done compares_data

        function takes_address
        lea     datum(%rip), %rax
        ret
        done takes_address

// Branches in the first bytes.
        function branches
        test    %rdi, %rdi
        je      1f
        mov     $1, %eax
        ret
1:      mov     $2, %eax
        ret
        done branches

        function branches_far
        cmp     %rsi, %rdi
        jg      far_away
        mov     $3, %eax
        ret
        done branches_far

        function jumps
        jmp     1f
        ud2
        ud2
1:      lea     5(%rdi), %rax
        ret
        done jumps

        function jumps_far
        jmp     far_away_too
        done jumps_far

        function loops_if
        mov     %edi, %ecx
        jrcxz   1f
        mov     $4, %eax
        ret
1:      mov     $5, %eax
        ret
        done loops_if

        function loop_down
        mov     %esi, %ecx
        loop    1f
        mov     $6, %eax
        ret
1:      mov     %rcx, %rax
        ret
        done loop_down

// Calls: what is called gives back where it returns to.
        function calls
        call    where_from
        ret
        done calls

        function calls_later
        push    %rbx
        .cfi_adjust_cfa_offset 8
        xor     %ebx, %ebx
        call    where_from
        pop     %rbx
        .cfi_adjust_cfa_offset -8
        ret
        done calls_later

        function calls_by_memory
        call    *pointer(%rip)
        ret
        done calls_by_memory

        function calls_by_register
        mov     %rsi, %rcx
        call    *%rcx
        ret
        done calls_by_register

        function calls_by_table
        push    %rbp
        .cfi_adjust_cfa_offset 8
        nop
        call    *0x8(%rdi)
        pop     %rbp
        .cfi_adjust_cfa_offset -8
        ret
        done calls_by_table

// A call that returns into the first bytes: no 5-byte jump.
        function calls_early
        call    *%rsi
        add     $1, %rax
        ret
        done calls_early

// Shorter than the jump, with padding.
        function tiny
        xor     %eax, %eax
        ret
        done tiny

        function tiniest
        ret
        done tiniest

// Something leads into the first bytes.
        function into_third
        mov     %rdi, %rax
1:      add     %rsi, %rax
        dec     %edi
        jg      1b
        ret
        done into_third

        function into_second
        inc     %edi
        .byte   0x90
        nop
        jmp     2f
1:      ud2
2:      mov     %edi, %eax
        ret
        done into_second

// Nothing but a trap: the second byte is led to, and there is no padding to take.
        .p2align 4, 0x48
        .globl  into_first
        .type   into_first, @function
into_first:
        .cfi_startproc
        push    %rax
        .cfi_adjust_cfa_offset 8
1:      add     $3, %rdi
        cmp     $100, %rdi
        jl      1b
        mov     %rdi, %rax
        pop     %rcx
        .cfi_adjust_cfa_offset -8
        ret
        done into_first

// Jumps to its own entry: each round is one.
        function to_itself
5:      sub     $1, %rsi
        lea     2(%rdi), %rdi
        jg      1f
        mov     %rdi, %rax
        ret
1:      jmp     5b
        done to_itself

// Without unwind information, but with a place that a compiler left: nops; some of them before the function; XRay's
// sled; and one that has no name, either.
        .p2align 4
        .globl  left_nops
        .type   left_nops, @function
left_nops:
5:      .fill   5, 1, 0x90
        lea     (%rdi,%rsi,2), %rax
        ret
        .size   left_nops, . - left_nops
        .section __patchable_function_entries, "aw", @progbits
        .quad   5b
        .text

        .p2align 4
6:      .fill   5, 1, 0x90
        .globl  left_before
        .type   left_before, @function
left_before:
        .fill   2, 1, 0x90
7:      lea     (%rdi,%rsi,4), %rax
        sub     $100, %rdi
        jg      7b
        ret
        .size   left_before, . - left_before
        .section __patchable_function_entries, "aw", @progbits
        .quad   6b
        .text

        .p2align 4
        .globl  sled
        .type   sled, @function
sled:
.Lsled: .byte   0xeb, 0x09
        .byte   0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00
        lea     5(%rdi,%rsi), %rax
        ret
        .size   sled, . - sled
        .section xray_instr_map, "a", @progbits
8:      .quad   .Lsled - 8b, .Lsled - (8b + 8)
        .byte   0, 1, 2
        .fill   13, 1, 0
        .text

        .p2align 4
9:      .fill   5, 1, 0x90
        lea     6(%rdi,%rsi), %rax
        ret
        .p2align 4
        .section __patchable_function_entries, "aw", @progbits
        .quad   9b
        .text
        function enters_nameless
        sub     $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    9b
        add     $8, %rsp
        .cfi_adjust_cfa_offset -8
        ret
        done enters_nameless

// It reads its return address, at its first instruction.
        .p2align 4
        .globl  left_reads
        .type   left_reads, @function
left_reads:
5:      .fill   5, 1, 0x90
        mov     (%rsp), %rax
        ret
        .size   left_reads, . - left_reads
        .section __patchable_function_entries, "aw", @progbits
        .quad   5b
        .text

        .p2align 4
        .globl  untold
        .type   untold, @function
untold: lea     (%rdi,%rsi,2), %rax
        ret
        .size   untold, . - untold

        function marked
        endbr64
        mov     $9, %eax
        add     %edi, %eax
        ret
        done marked

        function nops
        .byte   0x0f, 0x1f, 0x44, 0, 0
        lea     (%rdi,%rsi), %rax
        ret
        done nops

        function five_nops
        nop
        nop
        nop
        nop
        nop
        lea     1(%rdi,%rsi), %rax
        ret
        done five_nops

// A table of distances, one of which leads into its first bytes.
        function has_table
        mov     %edi, %eax
1:      add     $3, %eax
        lea     table(%rip), %rcx
        cmp     $20, %eax
        jg      9f
        movslq  (%rcx,%rsi,4), %rdx
        add     %rcx, %rdx
        jmp     *%rdx
9:      ret
8:      mov     $77, %eax
        ret
        done has_table
        .section .rodata
        .p2align 2
table:  .long   8b - table
        .long   1b - table
        .text

// Reads its return address.
        function reads_return
        mov     (%rsp), %rax
        ret
        done reads_return

        function where_from
        mov     (%rsp), %rax
        ret
        done where_from

        function far_away
        mov     $11, %eax
        ret
        done far_away

        function far_away_too
        lea     12(%rsi), %rax
        ret
        done far_away_too

        .data
        .p2align 3
datum:  .quad   0x11223344
pointer: .quad  where_from

        .section .note.GNU-stack, "", @progbits

// SPDX-License-Identifier: Apache-2.0
// Entry and exit of traced functions. A thunk has jumped here with the function's id and the address of its moved
// prologue below rsp (formats/qut_calls.md); rsp is the slot. Every register is live but the flags.
//
// The call that the enter stub makes is the one that the function returns from, so the processor's guess of where its
// `ret` goes is right: a return address that is merely exchanged costs a wrong guess at each return. The same with the
// exit's own `ret`, which goes with the caller's `call`.
//
// What unwinds looks a return address up one byte before it, in that call. There, and up to the exit's end, rsp is
// slot + 8, and the rule is: the return address is at slot - 2^46; rsp stays as it is. The CFA is slot + 16 and not the
// function's own, since libgcc tells frames by their CFA: with that of the function it would take ours for the
// handler's. rsp by val_expression, since LLVM's unwinder does not know val_offset.

#ifdef __CET__
#include <cet.h> // the note that says so
#endif

        .set    DISTANCE, 0x400000000000        // 2^QUT_CALLS_X86_64_SHADOW_LOG2
        .set    GRANULE_SHIFT, 24
        .set    MAPPED, 1
        .set    TAIL_BIT, 0x080000
        .set    EXIT_BIT, 0x100000
        .set    TRAP, 0xcc                      // QUT_CALLS_TRAP_BYTE
        .set    JUMPED_FROM, -64                // below the slot: the exit's word of what has jumped here
        .set    SLOT_SHIFT, 18                  // slot >> 3 << 21; 2^46, which each slot has, is shifted out

        // Of struct calls_own.
        .set    HEAD, 0
        .set    LIMIT, 8
        .set    RING, 16
        .set    MASK, 24
        .set    COUNTS, 32

        // As long as rsp is slot + 8.
        .macro  cfi_behind_the_call
        .cfi_def_cfa %rsp, 8
        // offset_extended_sf: rip at cfa - 8 * (2 + 2^43). By hand: clang's .cfi_offset has 32 bits
        .cfi_escape 0x11, 16, 0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x2
        .cfi_escape 0x16, 7, 2, 0x77, 0         // rsp = val_expression(breg7 0)
        .endm

        .macro  cfi_at_the_slot
        .cfi_def_cfa %rsp, 8
        .cfi_offset %rip, -8
        .cfi_restore %rsp
        .endm

        // The words of the call at rsp: of its entry in rsi, of its exit where the exit stub finds it. rsi is rsp, rcx
        // -DISTANCE.
        .macro  make_words
        movl    -16(%rsp), %eax
        shlq    $SLOT_SHIFT, %rsi
        orq     %rax, %rsi
        leaq    EXIT_BIT(%rsi), %rax
        sarq    $1, %rcx                        // 2^QUT_CALLS_X86_64_WORDS_LOG2
        movq    %rax, (%rsp,%rcx)
        .endm

        // An event whose word is in rsi. Uses rax, rcx, rdx; to `full` if there is no room. The place is taken by one
        // instruction: what interrupts us takes places behind it. Its word is written last: then it is there.
        .macro  write_event full
        movq    calls_own@gottpoff(%rip), %rcx
        movq    %fs:(%rcx), %rcx
        movq    HEAD(%rcx), %rax
        cmpq    LIMIT(%rcx), %rax
        jae     \full
        movl    $16, %eax
        xaddq   %rax, HEAD(%rcx)
        andq    MASK(%rcx), %rax
        addq    RING(%rcx), %rax
        movq    %rax, %rcx
        rdtsc
        shlq    $32, %rdx
        orq     %rdx, %rax
        movq    %rax, (%rcx)
        movq    %rsi, 8(%rcx)
        .endm

        // Calls a C function that uses general registers only, with what is kept below rsp left alone, and rsp aligned.
        // Hands rax over, keeps rsi, gives rax. From the exit rsp is slot + 8.
        .macro  call_c function, is_exit
        leaq    -192(%rsp), %rsp
        .cfi_adjust_cfa_offset 192
        .if     \is_exit
        .cfi_escape 0x16, 7, 3, 0x77, 0xc0, 1   // rsp = val_expression(breg7 192)
        .endif
        movq    %rbp, 56(%rsp)                  // those that a walk may ask for: calls_kept_registers
        movq    %r12, 64(%rsp)
        movq    %r13, 72(%rsp)
        movq    %r14, 80(%rsp)
        movq    %r15, 88(%rsp)
        movq    %rbx, 48(%rsp)
        .cfi_offset %rbx, 48 - 192 - 8
        movq    %rsi, 40(%rsp)
        movq    %rdi, 32(%rsp)
        movq    %r8, 24(%rsp)
        movq    %r9, 16(%rsp)
        movq    %r10, 8(%rsp)
        movq    %r11, (%rsp)
        movq    %rsp, %rbx
        .cfi_def_cfa_register %rbx
        .if     \is_exit
        .cfi_escape 0x16, 7, 3, 0x73, 0xc0, 1   // ... breg3
        .endif
        andq    $-16, %rsp
        movq    %rax, %rdi
        call    \function
        movq    %rbx, %rsp
        .cfi_def_cfa_register %rsp
        .if     \is_exit
        .cfi_escape 0x16, 7, 3, 0x77, 0xc0, 1
        .endif
        movq    (%rsp), %r11
        movq    8(%rsp), %r10
        movq    16(%rsp), %r9
        movq    24(%rsp), %r8
        movq    32(%rsp), %rdi
        movq    40(%rsp), %rsi
        movq    48(%rsp), %rbx
        .cfi_restore %rbx
        leaq    192(%rsp), %rsp
        .cfi_adjust_cfa_offset -192
        .if     \is_exit
        .cfi_escape 0x16, 7, 2, 0x77, 0
        .endif
        .endm

        .macro  begin name
        .globl  \name
        .hidden \name
\name:
        .endm

        .text
        .balign 64
        begin   calls_stub_begin
        .type   calls_enter, @function
        begin   calls_enter
        .cfi_startproc
        movq    %rax, -24(%rsp)
        movq    %rdx, -32(%rsp)
        movq    %rcx, -48(%rsp)
        movq    %rsi, -56(%rsp)
.Lagain:
        movq    %rsp, %rsi
        testb   $7, %sil
        jnz     .Lno_shadow
        movq    %rsi, %rax
        shrq    $GRANULE_SHIFT, %rax
        movq    calls_granules(%rip), %rdx
        cmpb    $MAPPED, (%rdx,%rax)
        jne     .Lno_shadow
        movabsq $-DISTANCE, %rcx
        leaq    calls_exit(%rip), %rdx
        movq    (%rsp), %rax
        cmpq    %rdx, %rax
        je      .Ltail_call
        movq    %rax, (%rsp,%rcx)
        make_words
.Lenter_event:
        write_event .Lenter_full
.Lenter_go:
        movq    -24(%rsp), %rax
        movq    -32(%rsp), %rdx
        movq    -48(%rsp), %rcx
        movq    -56(%rsp), %rsi
        leaq    8(%rsp), %rsp
        cfi_behind_the_call
        call    .Lto_function
        begin   calls_exit
        movq    %rax, -16(%rsp)
        movq    %rcx, -32(%rsp)
        movabsq $-DISTANCE, %rcx
        movq    %rsi, -40(%rsp)
        movq    -8(%rsp,%rcx), %rax
        sarq    $1, %rcx
        movq    -8(%rsp,%rcx), %rsi
        movq    %rdx, -24(%rsp)
        movq    %rax, -8(%rsp)
.Lexit_event:
        write_event .Lexit_full
.Lexit_go:
        movq    -16(%rsp), %rax
        movq    -24(%rsp), %rdx
        movq    -32(%rsp), %rcx
        movq    -40(%rsp), %rsi
        leaq    -8(%rsp), %rsp
        cfi_at_the_slot
        ret
.Lexit_full:
        cfi_behind_the_call
        movl    $1, %eax
        call_c  calls_prepare_room, 1
        testb   %al, %al
        jnz     .Lexit_event
        jmp     .Lexit_go
        begin   calls_exit_end

        // Here rsp is the slot again.
.Lto_function:
        cfi_at_the_slot
        jmp     *-40(%rsp)

.Ltail_call:                                    // the shadow has the return address already
        movq    %rcx, %rdx
        sarq    $1, %rdx
        movq    (%rsp,%rdx), %rax
        movq    %rax, JUMPED_FROM(%rsp)
        make_words
        orq     $TAIL_BIT, (%rsp,%rcx)
        orq     $TAIL_BIT, %rsi
        jmp     .Lenter_event

.Lenter_full:
        xorl    %eax, %eax
        call_c  calls_prepare_room, 0
        testb   %al, %al
        jnz     .Lenter_event
        jmp     .Lenter_go

.Lno_shadow:
        movq    %rsp, %rax
        call_c  calls_prepare_stack, 0
        testb   %al, %al
        jnz     .Lagain
        movq    -24(%rsp), %rax                 // it passes: the function returns to where it was called
        movq    -32(%rsp), %rdx
        movq    -48(%rsp), %rcx
        movq    -56(%rsp), %rsi
        jmp     *-40(%rsp)
        .cfi_endproc
        .size   calls_enter, . - calls_enter

        .balign 16
        .type   calls_count, @function
        begin   calls_count                     // rax is at -24(%rsp)
        .cfi_startproc
        movq    %rdx, -32(%rsp)
        movq    %rcx, -48(%rsp)
.Lcount_again:
        movq    calls_own@gottpoff(%rip), %rax
        movq    %fs:(%rax), %rax
        movq    COUNTS(%rax), %rax
        testq   %rax, %rax
        jz      .Lno_counts
        movl    -16(%rsp), %edx
        incq    (%rax,%rdx,8)
.Lcount_go:
        movq    -24(%rsp), %rax
        movq    -32(%rsp), %rdx
        movq    -48(%rsp), %rcx
        jmp     *-40(%rsp)
.Lno_counts:
        call_c  calls_prepare_counts, 0
        testb   %al, %al
        jnz     .Lcount_again
        jmp     .Lcount_go
        .cfi_endproc
        .size   calls_count, . - calls_count

        // A place within a function. rsp is QUT_CALLS_PLACE_BYTES lower than there, and all is live: nothing that the
        // program can see is changed. Who is looked at here is, by its frame, in the thunk where that goes on. What is
        // called uses general registers only, so the others stay as they are.
        .balign 16
        .type   calls_place, @function
        begin   calls_place
        .cfi_startproc
        .cfi_signal_frame                       // what its caller's address is looked up by is not a call's
        .cfi_def_cfa %rsp, 0                    // where the thunk goes on rsp is still as it is here
        .cfi_offset %rip, 8
        .macro  keep register
        pushq   \register
        .cfi_adjust_cfa_offset 8
        .endm
        .macro  give_back register
        popq    \register
        .cfi_adjust_cfa_offset -8
        .endm
        pushfq
        .cfi_adjust_cfa_offset 8
        .irp    register, %rax, %rcx, %rdx, %rsi, %rdi, %r8, %r9, %r10, %r11
        keep    \register
        .endr
        keep    %rbx
        .cfi_rel_offset %rbx, 0
        .irp    register, %rbp, %r12, %r13, %r14, %r15
        keep    \register
        .endr
        movq    %rsp, %rdi
        movq    %rsp, %rbx
        .cfi_def_cfa_register %rbx
        andq    $-16, %rsp
        cld
        call    calls_place_run
        movq    %rbx, %rsp
        .cfi_def_cfa_register %rsp
        .irp    register, %r15, %r14, %r13, %r12, %rbp
        give_back \register
        .endr
        give_back %rbx
        .cfi_restore %rbx
        .irp    register, %r11, %r10, %r9, %r8, %rdi, %rsi, %rdx, %rcx, %rax
        give_back \register
        .endr
        popfq
        .cfi_adjust_cfa_offset -8
        jmp     *8(%rsp)
        .cfi_endproc
        .size   calls_place, . - calls_place

        .balign 16
        .type   calls_trap_go, @function
        begin   calls_trap_go
        .cfi_startproc
        movq    (%rdi), %rax
        decq    %rax
        cmpb    $TRAP, (%rax)
        cmoveq  %rsi, %rax
        movq    %rax, (%rdi)
        ret
        .cfi_endproc
        .size   calls_trap_go, . - calls_trap_go
        begin   calls_stub_end

        .section .note.GNU-stack, "", @progbits

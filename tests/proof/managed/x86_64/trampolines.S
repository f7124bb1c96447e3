// SPDX-License-Identifier: Apache-2.0
// What the runtime itself puts between methods: frames that all its trampolines share, laid out by kind, and native
// calls without them. See managed.h. The lowest word of such a frame is a method's: here the chain, which is given
// where a method would be.
#include "macros.inc"

        // Return address, saved registers from r15 down, floating-point ones, the method.
        .set    SAVE_ALL_BYTES, 96
        .set    SAVE_REFS_ONLY_BYTES, 96
        .set    SAVE_REFS_AND_ARGS_BYTES, 208 // Android 6 and 7: 176, without xmm12 to xmm15
        .set    SAVE_EVERYTHING_BYTES, 272
        .set    WORD_BYTES, 8
        .set    OUT_BYTES, 32 // for a native function's arguments

        .macro  take bytes:vararg
        subq    $\bytes, %rsp
        .cfi_adjust_cfa_offset \bytes
        spot
        .endm

        .macro  drop bytes:vararg
        addq    $\bytes, %rsp
        .cfi_adjust_cfa_offset -(\bytes)
        spot
        .endm

        .macro  push_all regs:vararg
        .irp    reg, \regs
        push    \reg
        spot
        .endr
        .endm

        .macro  pop_all regs:vararg
        .irp    reg, \regs
        pop     \reg
        spot
        .endr
        .endm

        // Each 8 bytes, from rsp + `at` on.
        .macro  store_fp at, regs:vararg
        .set    SLOT, \at
        .irp    n, \regs
        movq    %xmm\n, SLOT(%rsp)
        .set    SLOT, SLOT + 8
        .endr
        .endm

        .macro  load_fp at, regs:vararg
        .set    SLOT, \at
        .irp    n, \regs
        movq    SLOT(%rsp), %xmm\n
        .set    SLOT, SLOT + 8
        .endr
        .endm

        .macro  trash_all
        trash
        movq    %rbx, %rbp
        spot
        .endm

        // Saves what callees save, in managed code too: also SaveRefsOnly, as there is no other such register.
        .macro  callee_saves name, bytes
        begin   \name, \bytes
        push_all r15, r14, r13, r12, rbp, rbx
        take    \bytes - 7 * WORD_BYTES
        store_fp 8, 12, 13, 14, 15
        movq    %rdi, (%rsp)
        trash_all
        call_next (%rsp)
        spot
        load_fp 8, 12, 13, 14, 15
        drop    \bytes - 7 * WORD_BYTES
        pop_all rbx, rbp, r12, r13, r14, r15
        end     \name
        .endm

        callee_saves save_all, SAVE_ALL_BYTES
        callee_saves save_refs_only, SAVE_REFS_ONLY_BYTES

        // And the arguments, all but the first.
        .macro  save_args
        push_all r15, r14, r13, r12, r9, r8, rsi, rbp, rbx, rdx, rcx
        take    SAVE_REFS_AND_ARGS_BYTES - 12 * WORD_BYTES
        store_fp 16, 0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15
        movq    %rdi, (%rsp)
        trash_all
        .endm

        .macro  restore_args
        spot
        load_fp 16, 0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15
        drop    SAVE_REFS_AND_ARGS_BYTES - 12 * WORD_BYTES
        pop_all rcx, rdx, rbx, rbp, rsi, r8, r9, r12, r13, r14, r15
        .endm

        begin   save_refs_and_args, SAVE_REFS_AND_ARGS_BYTES
        save_args
        call_next (%rsp)
        restore_args
        end     save_refs_and_args

        // The bridge to an interpreter, which is native code: a value may be in either kind of register.
        begin   to_interpreter, SAVE_REFS_AND_ARGS_BYTES
        save_args
        movq    %rsp, %rdx
        call_next (%rsp)
        restore_args
        movq    %rax, %xmm0
        spot
        end     to_interpreter

        // All there are: called where no call is expected.
        begin   save_everything, SAVE_EVERYTHING_BYTES
        push_all r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax
        take    SAVE_EVERYTHING_BYTES - 16 * WORD_BYTES
        store_fp 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movq    %rdi, (%rsp)
        trash_all
        call_next (%rsp)
        spot
        load_fp 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        drop    SAVE_EVERYTHING_BYTES - 16 * WORD_BYTES
        pop_all rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
        end     save_everything

        // @FastNative: the stub's frame as any; nothing tells the runtime of the call.
        .set    FAST_STUB_BYTES, 144
        begin   fast_native, FAST_STUB_BYTES+OUT_BYTES
        push_all r15, r14, r13, r12, rbp, rbx
        take    FAST_STUB_BYTES - 7 * WORD_BYTES
        store_fp 56, 12, 13, 14, 15
        movq    %rdi, (%rsp)
        trash_all
        take    OUT_BYTES
        call_next OUT_BYTES(%rsp)
        spot
        drop    OUT_BYTES
        load_fp 56, 12, 13, 14, 15
        drop    FAST_STUB_BYTES - 7 * WORD_BYTES
        pop_all rbx, rbp, r12, r13, r14, r15
        end     fast_native

        // @CriticalNative: a compiled method calls native code itself.
        .set    CRITICAL_CALLER_BYTES, 80
        begin   critical_native, CRITICAL_CALLER_BYTES+OUT_BYTES
        push_all r13, rbp, rbx
        take    CRITICAL_CALLER_BYTES - 4 * WORD_BYTES
        movq    %rdi, (%rsp)
        movq    $-0x5a5b, %rbx
        movq    %rbx, %rbp
        movq    %rbx, %r13
        take    OUT_BYTES
        call_next OUT_BYTES(%rsp)
        spot
        drop    OUT_BYTES
        drop    CRITICAL_CALLER_BYTES - 4 * WORD_BYTES
        pop_all rbx, rbp, r13
        end     critical_native

        // A stub for it, where the method must be called as others are: room for arguments, nothing saved, no method.
        .set    CRITICAL_STUB_BYTES, 64
        begin   critical_stub, CRITICAL_STUB_BYTES
        take    CRITICAL_STUB_BYTES - WORD_BYTES
        movq    %rdi, 48(%rsp)
        call_next 48(%rsp)
        spot
        drop    CRITICAL_STUB_BYTES - WORD_BYTES
        end     critical_stub

        // What such a call meets first: finds the function, under a frame of its own, and goes there without one.
        begin   critical_lookup, SAVE_REFS_AND_ARGS_BYTES
        save_args
        look_up (%rsp)
        movq    (%rsp), %rdi
        restore_args
        jmp     *%rax
        .cfi_endproc
        .size   managed_critical_lookup, . - managed_critical_lookup

        .section .note.GNU-stack, "", @progbits

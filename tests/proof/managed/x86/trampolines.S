// SPDX-License-Identifier: Apache-2.0
// What the runtime itself puts between methods: frames that all its trampolines share, laid out by kind, and native
// calls without them. See managed.h. The lowest word of such a frame is a method's: here the chain. Under it lie the
// arguments of what it calls.
#include "macros.inc"

        // Return address, saved registers from edi down, floating-point ones, the method.
        .set    SAVE_ALL_BYTES, 32
        .set    SAVE_REFS_ONLY_BYTES, 32
        .set    SAVE_REFS_AND_ARGS_BYTES, 64
        .set    SAVE_EVERYTHING_BYTES, 112
        .set    WORD_BYTES, 4
        .set    CALL_BYTES, 16 // for arguments of a call
        .set    OUT_BYTES, 32  // for those of a native function

        .macro  take bytes:vararg
        subl    $\bytes, %esp
        .cfi_adjust_cfa_offset \bytes
        spot
        .endm

        .macro  drop bytes:vararg
        addl    $\bytes, %esp
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

        // ecx.
        .macro  push_method
        pushl   %ecx
        .cfi_adjust_cfa_offset 4
        spot
        .endm

        // Each 8 bytes, from esp + `at` on.
        .macro  store_fp at, regs:vararg
        .set    SLOT, \at
        .irp    n, \regs
        movsd   %xmm\n, SLOT(%esp)
        .set    SLOT, SLOT + 8
        .endr
        .endm

        .macro  load_fp at, regs:vararg
        .set    SLOT, \at
        .irp    n, \regs
        movsd   SLOT(%esp), %xmm\n
        .set    SLOT, SLOT + 8
        .endr
        .endm

        // All but ebx, which managed code does not save for its callers.
        .macro  trash_refs
        movl    $-0x5a5b, %esi
        movl    %esi, %edi
        movl    %esi, %ebp
        spot
        .endm

        // Saves what callees in managed code save.
        .macro  callee_saves name, bytes
        begin   \name, \bytes+CALL_BYTES
        push_all edi, esi, ebp
        take    \bytes - 5 * WORD_BYTES
        push_method
        trash_refs
        take    CALL_BYTES
        call_next CALL_BYTES(%esp)
        spot
        drop    CALL_BYTES
        drop    \bytes - 4 * WORD_BYTES
        pop_all ebp, esi, edi
        end     \name
        .endm

        callee_saves save_all, SAVE_ALL_BYTES
        callee_saves save_refs_only, SAVE_REFS_ONLY_BYTES

        // And the arguments, all but the first: ebx is one.
        .macro  save_args
        push_all edi, esi, ebp, ebx, edx, ecx
        take    SAVE_REFS_AND_ARGS_BYTES - 8 * WORD_BYTES
        store_fp 0, 0, 1, 2, 3
        push_method
        trash_refs
        movl    %esi, %ebx
        take    CALL_BYTES
        .endm

        .macro  restore_args
        spot
        drop    CALL_BYTES
        load_fp 4, 0, 1, 2, 3
        drop    SAVE_REFS_AND_ARGS_BYTES - 7 * WORD_BYTES
        pop_all ecx, edx, ebx, ebp, esi, edi
        .endm

        begin   save_refs_and_args, SAVE_REFS_AND_ARGS_BYTES+CALL_BYTES
        save_args
        call_next CALL_BYTES(%esp)
        restore_args
        end     save_refs_and_args

        // The bridge to an interpreter, which is native code: no argument is needed any more, and a value may be in
        // either kind of register.
        begin   to_interpreter, SAVE_REFS_AND_ARGS_BYTES+CALL_BYTES
        save_args
        call_next CALL_BYTES(%esp)
        spot
        drop    CALL_BYTES
        movd    %eax, %xmm0
        movl    SAVE_REFS_AND_ARGS_BYTES - 5 * WORD_BYTES(%esp), %ebx // callees save it here, not in managed code
        .cfi_restore ebx
        movl    $-1, SAVE_REFS_AND_ARGS_BYTES - 5 * WORD_BYTES(%esp)
        spot
        drop    SAVE_REFS_AND_ARGS_BYTES - 4 * WORD_BYTES
        .cfi_restore ecx
        .cfi_restore edx
        pop_all ebp, esi, edi
        end     to_interpreter

        // All there are: called where no call is expected.
        begin   save_everything, SAVE_EVERYTHING_BYTES+CALL_BYTES
        push_all edi, esi, ebp, ebx, edx, ecx, eax
        take    SAVE_EVERYTHING_BYTES - 9 * WORD_BYTES
        store_fp 12, 0, 1, 2, 3, 4, 5, 6, 7
        push_method
        trash_refs
        movl    %esi, %ebx
        take    CALL_BYTES
        call_next CALL_BYTES(%esp)
        spot
        drop    CALL_BYTES
        load_fp 16, 0, 1, 2, 3, 4, 5, 6, 7
        drop    SAVE_EVERYTHING_BYTES - 8 * WORD_BYTES
        pop_all eax, ecx, edx, ebx, ebp, esi, edi
        end     save_everything

        // @FastNative: the stub's frame as any; nothing tells the runtime of the call.
        .set    FAST_STUB_BYTES, 64
        begin   fast_native, FAST_STUB_BYTES+OUT_BYTES
        push_all edi, esi, ebp
        take    FAST_STUB_BYTES - 5 * WORD_BYTES
        push_method
        trash_refs
        take    OUT_BYTES
        call_next OUT_BYTES(%esp)
        spot
        drop    OUT_BYTES
        drop    FAST_STUB_BYTES - 4 * WORD_BYTES
        pop_all ebp, esi, edi
        end     fast_native

        // @CriticalNative: a compiled method calls native code itself.
        .set    CRITICAL_CALLER_BYTES, 48
        begin   critical_native, CRITICAL_CALLER_BYTES+OUT_BYTES
        push_all esi, ebp
        take    CRITICAL_CALLER_BYTES - 4 * WORD_BYTES
        push_method
        movl    $-0x5a5b, %esi
        movl    %esi, %ebp
        take    OUT_BYTES
        call_next OUT_BYTES(%esp)
        spot
        drop    OUT_BYTES
        drop    CRITICAL_CALLER_BYTES - 3 * WORD_BYTES
        pop_all ebp, esi
        end     critical_native

        // A stub for it, where the method must be called as others are: room for arguments, nothing saved, no method.
        .set    CRITICAL_STUB_BYTES, 64
        begin   critical_stub, CRITICAL_STUB_BYTES
        take    CRITICAL_STUB_BYTES - WORD_BYTES
        movl    %ecx, 48(%esp)
        call_next 48(%esp)
        spot
        drop    CRITICAL_STUB_BYTES - WORD_BYTES
        end     critical_stub

        // What such a call meets first: finds the function, under a frame of its own, and goes there without one. The
        // arguments are where they were.
        begin   critical_lookup, SAVE_REFS_AND_ARGS_BYTES+CALL_BYTES
        save_args
        look_up CALL_BYTES(%esp)
        restore_args
        jmp     *%eax
        .cfi_endproc
        .size   managed_critical_lookup, . - managed_critical_lookup

        .section .note.GNU-stack, "", @progbits

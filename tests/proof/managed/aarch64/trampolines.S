// SPDX-License-Identifier: Apache-2.0
// What the runtime itself puts between methods: frames that all its trampolines share, laid out by kind, and native
// calls without them. See managed.h. The lowest word of such a frame is a method's: here the chain, which is given
// where a method would be.
#include "macros.inc"

        // The method, floating-point registers, x0 to x30 as far as they are saved, up to the frame's end.
        .set    SAVE_ALL_BYTES, 176
        .set    SAVE_REFS_ONLY_BYTES, 96
        .set    SAVE_REFS_AND_ARGS_BYTES, 224
        .set    SAVE_EVERYTHING_BYTES, 512
        .set    REFS_BYTES, 88 // x20 to x30
        .set    OUT_BYTES, 32  // for a native function's arguments

        .macro  take bytes:vararg
        sub     sp, sp, #(\bytes)
        .cfi_adjust_cfa_offset \bytes
        spot
        .endm

        .macro  drop bytes:vararg
        add     sp, sp, #(\bytes)
        .cfi_adjust_cfa_offset -(\bytes)
        spot
        .endm

        .macro  store reg, at:vararg
        str     \reg, [sp, #(\at)]
        .cfi_rel_offset \reg, \at
        .endm

        // Where it was is anyone's then.
        .macro  load reg, at:vararg
        ldr     \reg, [sp, #(\at)]
        .cfi_restore \reg
        str     xzr, [sp, #(\at)]
        .endm

        .macro  store_pair first, second, at:vararg
        stp     \first, \second, [sp, #(\at)]
        .cfi_rel_offset \first, \at
        .cfi_rel_offset \second, \at + 8
        .endm

        .macro  load_pair first, second, at:vararg
        ldp     \first, \second, [sp, #(\at)]
        .cfi_restore \first
        .cfi_restore \second
        stp     xzr, xzr, [sp, #(\at)]
        .endm

        // Registers d, from sp + `at` on.
        .macro  store_fp at, regs:vararg
        .set    SLOT, \at
        .irp    n, \regs
        str     d\n, [sp, #SLOT]
        .set    SLOT, SLOT + 8
        .endr
        .endm

        .macro  load_fp at, regs:vararg
        .set    SLOT, \at
        .irp    n, \regs
        ldr     d\n, [sp, #SLOT]
        .set    SLOT, SLOT + 8
        .endr
        .endm

        // What managed code saves for its callers: x19 is the thread's.
        .macro  store_refs at:vararg
        store   x20, \at
        store_pair x21, x22, \at + 8
        spot
        store_pair x23, x24, \at + 24
        store_pair x25, x26, \at + 40
        spot
        store_pair x27, x28, \at + 56
        spot
        store_pair x29, x30, \at + 72
        spot
        .endm

        .macro  load_refs at:vararg
        spot
        load    x20, \at
        load_pair x21, x22, \at + 8
        spot
        load_pair x23, x24, \at + 24
        load_pair x25, x26, \at + 40
        spot
        load_pair x27, x28, \at + 56
        spot
        load_pair x29, x30, \at + 72
        spot
        .endm

        .macro  trash_refs
        mov     x20, #-0x5a5b
        .irp    n, 21, 22, 23, 24, 25, 26, 27, 28, 29
        mov     x\n, x20
        .endr
        spot
        .endm

        // All that native code saves for its callers.
        begin   save_all, SAVE_ALL_BYTES
        take    SAVE_ALL_BYTES
        store_fp 16, 8, 9, 10, 11, 12, 13, 14, 15
        store   x19, SAVE_ALL_BYTES - REFS_BYTES - 8
        store_refs SAVE_ALL_BYTES - REFS_BYTES
        str     x0, [sp]
        trash_refs
        mov     x19, x20
        call_next "[sp]"
        spot
        load_fp 16, 8, 9, 10, 11, 12, 13, 14, 15
        load    x19, SAVE_ALL_BYTES - REFS_BYTES - 8
        load_refs SAVE_ALL_BYTES - REFS_BYTES
        drop    SAVE_ALL_BYTES
        end     save_all

        begin   save_refs_only, SAVE_REFS_ONLY_BYTES
        take    SAVE_REFS_ONLY_BYTES
        store_refs SAVE_REFS_ONLY_BYTES - REFS_BYTES
        str     x0, [sp]
        trash_refs
        call_next "[sp]"
        load_refs SAVE_REFS_ONLY_BYTES - REFS_BYTES
        drop    SAVE_REFS_ONLY_BYTES
        end     save_refs_only

        // And the arguments, all but the first.
        .macro  save_args
        take    SAVE_REFS_AND_ARGS_BYTES
        store_fp 16, 0, 1, 2, 3, 4, 5, 6, 7
        store   x1, 80
        store_pair x2, x3, 88
        store_pair x4, x5, 104
        store_pair x6, x7, 120
        store_refs SAVE_REFS_AND_ARGS_BYTES - REFS_BYTES
        str     x0, [sp]
        trash_refs
        .endm

        .macro  restore_args
        load_fp 16, 0, 1, 2, 3, 4, 5, 6, 7
        load    x1, 80
        load_pair x2, x3, 88
        load_pair x4, x5, 104
        load_pair x6, x7, 120
        load_refs SAVE_REFS_AND_ARGS_BYTES - REFS_BYTES
        drop    SAVE_REFS_AND_ARGS_BYTES
        .endm

        begin   save_refs_and_args, SAVE_REFS_AND_ARGS_BYTES
        save_args
        call_next "[sp]"
        restore_args
        end     save_refs_and_args

        // The bridge to an interpreter, which is native code: a value may be in either kind of register.
        begin   to_interpreter, SAVE_REFS_AND_ARGS_BYTES
        save_args
        mov     x2, sp
        call_next "[sp]"
        restore_args
        fmov    d0, x0
        spot
        end     to_interpreter

        // All there are: called where no call is expected.
        .set    X0, SAVE_EVERYTHING_BYTES - 31 * 8
        begin   save_everything, SAVE_EVERYTHING_BYTES
        take    SAVE_EVERYTHING_BYTES
        store_fp 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        store_fp 136, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
        store   x\n, X0 + 8 * \n
        .endr
        store_refs SAVE_EVERYTHING_BYTES - REFS_BYTES
        str     x0, [sp]
        trash_refs
        mov     x19, x20
        call_next "[sp]"
        spot
        load_fp 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        load_fp 136, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
        load    x\n, X0 + 8 * \n
        .endr
        load_refs SAVE_EVERYTHING_BYTES - REFS_BYTES
        drop    SAVE_EVERYTHING_BYTES
        end     save_everything

        // @FastNative: the stub's frame as any; nothing tells the runtime of the call.
        .set    FAST_STUB_BYTES, 160
        begin   fast_native, FAST_STUB_BYTES+OUT_BYTES
        take    FAST_STUB_BYTES
        store_fp 8, 8, 9, 10, 11, 12, 13, 14, 15
        store_refs FAST_STUB_BYTES - REFS_BYTES
        str     x0, [sp]
        trash_refs
        take    OUT_BYTES
        call_next "[sp, #OUT_BYTES]"
        spot
        drop    OUT_BYTES
        load_fp 8, 8, 9, 10, 11, 12, 13, 14, 15
        load_refs FAST_STUB_BYTES - REFS_BYTES
        drop    FAST_STUB_BYTES
        end     fast_native

        // @CriticalNative: a compiled method calls native code itself.
        .set    CRITICAL_CALLER_BYTES, 48
        begin   critical_native, CRITICAL_CALLER_BYTES+OUT_BYTES
        take    CRITICAL_CALLER_BYTES
        store_pair x20, x22, 16
        store_pair x28, x30, 32
        str     x0, [sp]
        mov     x20, #-0x5a5b
        mov     x22, x20
        mov     x28, x20
        take    OUT_BYTES
        call_next "[sp, #OUT_BYTES]"
        spot
        drop    OUT_BYTES
        load_pair x20, x22, 16
        spot
        load_pair x28, x30, 32
        spot
        drop    CRITICAL_CALLER_BYTES
        end     critical_native

        // A stub for it, where the method must be called as others are: room for arguments, x30, no method.
        .set    CRITICAL_STUB_BYTES, 64
        begin   critical_stub, CRITICAL_STUB_BYTES
        take    CRITICAL_STUB_BYTES
        store   x30, CRITICAL_STUB_BYTES - 8
        str     x0, [sp, #48]
        spot
        call_next "[sp, #48]"
        spot
        load    x30, CRITICAL_STUB_BYTES - 8
        spot
        drop    CRITICAL_STUB_BYTES
        end     critical_stub

        // What such a call meets first: finds the function, under a frame of its own, and goes there without one.
        begin   critical_lookup, SAVE_REFS_AND_ARGS_BYTES
        save_args
        look_up "[sp]"
        mov     x16, x0
        ldr     x0, [sp]
        restore_args
        br      x16
        .cfi_endproc
        .size   managed_critical_lookup, . - managed_critical_lookup

        .section .note.GNU-stack, "", @progbits

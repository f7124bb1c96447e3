// SPDX-License-Identifier: Apache-2.0
// What the runtime itself puts between methods: frames that all its trampolines share, laid out by kind, and native
// calls without them. See managed.h. The lowest word of such a frame is a method's: here the chain, which is given
// where a method would be.
#include "macros.inc"

        // The method, floating-point registers, those of x5 to x27 that are saved, ra, up to the frame's end. Of
        // Android 14 and 15. Later s2 is not saved, and SAVE_ALL_BYTES is 192.
        .set    SAVE_ALL_BYTES, 208
        .set    SAVE_REFS_ONLY_BYTES, 112
        .set    SAVE_REFS_AND_ARGS_BYTES, 224
        .set    SAVE_EVERYTHING_BYTES, 480
        .set    OUT_BYTES, 32 // for a native function's arguments

        .macro  take bytes:vararg
        addi    sp, sp, -(\bytes)
        .cfi_adjust_cfa_offset \bytes
        spot
        .endm

        .macro  drop bytes:vararg
        addi    sp, sp, \bytes
        .cfi_adjust_cfa_offset -(\bytes)
        spot
        .endm

        // From sp + `at` on.
        .macro  store at, regs:vararg
        .set    SLOT, \at
        .irp    reg, \regs
        sd      \reg, SLOT(sp)
        .cfi_rel_offset \reg, SLOT
        .set    SLOT, SLOT + 8
        .endr
        spot
        .endm

        // Where they were is anyone's then.
        .macro  load at, regs:vararg
        .set    SLOT, \at
        .irp    reg, \regs
        ld      \reg, SLOT(sp)
        .cfi_restore \reg
        sd      zero, SLOT(sp)
        .set    SLOT, SLOT + 8
        .endr
        spot
        .endm

        .macro  store_fp at, regs:vararg
        .set    SLOT, \at
        .irp    reg, \regs
        fsd     \reg, SLOT(sp)
        .set    SLOT, SLOT + 8
        .endr
        .endm

        .macro  load_fp at, regs:vararg
        .set    SLOT, \at
        .irp    reg, \regs
        fld     \reg, SLOT(sp)
        .set    SLOT, SLOT + 8
        .endr
        .endm

        // What managed code saves for its callers: s1 is the thread's.
        .macro  trash_refs
        li      s0, -0x5a5b
        .irp    n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
        mv      s\n, s0
        .endr
        spot
        .endm

        begin   save_all, SAVE_ALL_BYTES
        take    SAVE_ALL_BYTES
        store_fp 16, fs0, fs1, fs2, fs3, fs4, fs5, fs6, fs7, fs8, fs9, fs10, fs11
        store   112, s0, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11
        store   200, ra
        sd      a0, 0(sp)
        trash_refs
        call_next 0(sp)
        spot
        load_fp 16, fs0, fs1, fs2, fs3, fs4, fs5, fs6, fs7, fs8, fs9, fs10, fs11
        load    112, s0, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11
        load    200, ra
        drop    SAVE_ALL_BYTES
        end     save_all

        begin   save_refs_only, SAVE_REFS_ONLY_BYTES
        take    SAVE_REFS_ONLY_BYTES
        store   16, s0, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11
        store   104, ra
        sd      a0, 0(sp)
        trash_refs
        call_next 0(sp)
        spot
        load    16, s0, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11
        load    104, ra
        drop    SAVE_REFS_ONLY_BYTES
        end     save_refs_only

        // And the arguments, all but the first.
        .macro  save_args
        take    SAVE_REFS_AND_ARGS_BYTES
        store_fp 8, fa0, fa1, fa2, fa3, fa4, fa5, fa6, fa7
        store   72, s0, a1, a2, a3, a4, a5, a6, a7
        store   136, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11
        store   216, ra
        sd      a0, 0(sp)
        trash_refs
        .endm

        .macro  restore_args
        spot
        load_fp 8, fa0, fa1, fa2, fa3, fa4, fa5, fa6, fa7
        load    72, s0, a1, a2, a3, a4, a5, a6, a7
        load    136, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11
        load    216, ra
        drop    SAVE_REFS_AND_ARGS_BYTES
        .endm

        begin   save_refs_and_args, SAVE_REFS_AND_ARGS_BYTES
        save_args
        call_next 0(sp)
        restore_args
        end     save_refs_and_args

        // The bridge to an interpreter, which is native code: a value may be in either kind of register.
        begin   to_interpreter, SAVE_REFS_AND_ARGS_BYTES
        save_args
        mv      a2, sp
        call_next 0(sp)
        restore_args
        fmv.d.x fa0, a0
        spot
        end     to_interpreter

        // All there are: called where no call is expected.
        begin   save_everything, SAVE_EVERYTHING_BYTES
        take    SAVE_EVERYTHING_BYTES
        store_fp 8, ft0, ft1, ft2, ft3, ft4, ft5, ft6, ft7, fs0, fs1, fa0, fa1, fa2, fa3, fa4, fa5
        store_fp 136, fa6, fa7, fs2, fs3, fs4, fs5, fs6, fs7, fs8, fs9, fs10, fs11, ft8, ft9, ft10, ft11
        store   264, t0, t1, t2, s0, a0, a1, a2, a3, a4, a5, a6, a7
        store   360, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11
        store   440, t3, t4, t5, t6, ra
        sd      a0, 0(sp)
        trash_refs
        call_next 0(sp)
        spot
        load_fp 8, ft0, ft1, ft2, ft3, ft4, ft5, ft6, ft7, fs0, fs1, fa0, fa1, fa2, fa3, fa4, fa5
        load_fp 136, fa6, fa7, fs2, fs3, fs4, fs5, fs6, fs7, fs8, fs9, fs10, fs11, ft8, ft9, ft10, ft11
        load    264, t0, t1, t2, s0, a0, a1, a2, a3, a4, a5, a6, a7
        load    360, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11
        load    440, t3, t4, t5, t6, ra
        drop    SAVE_EVERYTHING_BYTES
        end     save_everything

        // @FastNative: the stub's frame as any; nothing tells the runtime of the call.
        .set    FAST_STUB_BYTES, 208
        begin   fast_native, FAST_STUB_BYTES+OUT_BYTES
        take    FAST_STUB_BYTES
        store_fp 16, fs0, fs1, fs2, fs3, fs4, fs5, fs6, fs7, fs8, fs9, fs10, fs11
        store   112, s0, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11
        store   200, ra
        sd      a0, 0(sp)
        trash_refs
        take    OUT_BYTES
        call_next OUT_BYTES(sp)
        spot
        drop    OUT_BYTES
        load_fp 16, fs0, fs1, fs2, fs3, fs4, fs5, fs6, fs7, fs8, fs9, fs10, fs11
        load    112, s0, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11
        load    200, ra
        drop    FAST_STUB_BYTES
        end     fast_native

        // @CriticalNative: a compiled method calls native code itself.
        .set    CRITICAL_CALLER_BYTES, 48
        begin   critical_native, CRITICAL_CALLER_BYTES+OUT_BYTES
        take    CRITICAL_CALLER_BYTES
        store   16, s0, s2, s11, ra
        sd      a0, 0(sp)
        li      s0, -0x5a5b
        mv      s2, s0
        mv      s11, s0
        take    OUT_BYTES
        call_next OUT_BYTES(sp)
        spot
        drop    OUT_BYTES
        load    16, s0, s2, s11, ra
        drop    CRITICAL_CALLER_BYTES
        end     critical_native

        // A stub for it, where the method must be called as others are: room for arguments, ra, no method.
        .set    CRITICAL_STUB_BYTES, 64
        begin   critical_stub, CRITICAL_STUB_BYTES
        take    CRITICAL_STUB_BYTES
        store   56, ra
        sd      a0, 40(sp)
        call_next 40(sp)
        spot
        load    56, ra
        drop    CRITICAL_STUB_BYTES
        end     critical_stub

        // What such a call meets first: finds the function, under a frame of its own, and goes there without one.
        begin   critical_lookup, SAVE_REFS_AND_ARGS_BYTES
        save_args
        look_up 0(sp)
        mv      t1, a0
        ld      a0, 0(sp)
        restore_args
        jr      t1
        .cfi_endproc
        .size   managed_critical_lookup, . - managed_critical_lookup

        .section .note.GNU-stack, "", @progbits

// SPDX-License-Identifier: Apache-2.0
// What the runtime itself puts between methods: frames that all its trampolines share, laid out by kind, and native
// calls without them. See managed.h. The lowest word of such a frame is a method's: here the chain, which is given
// where a method would be.
#include "macros.inc"

        // The method, floating-point registers, r0 to lr as far as they are saved, up to the frame's end.
        .set    SAVE_ALL_BYTES, 112
        .set    SAVE_REFS_ONLY_BYTES, 32
        .set    SAVE_REFS_AND_ARGS_BYTES, 112
        .set    SAVE_EVERYTHING_BYTES, 192
        .set    OUT_BYTES, 16 // for a native function's arguments

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

        // In ascending order.
        .macro  push_all regs:vararg
        push    {\regs}
        .set    SLOT, 0
        .irp    reg, \regs
        .set    SLOT, SLOT + 4
        .endr
        .cfi_adjust_cfa_offset SLOT
        .set    SLOT, 0
        .irp    reg, \regs
        .cfi_rel_offset \reg, SLOT
        .set    SLOT, SLOT + 4
        .endr
        spot
        .endm

        // Any code may overwrite where they were then: r12, stored there, has none of these values.
        .macro  pop_all regs:vararg
        pop     {\regs}
        .set    SLOT, 0
        .irp    reg, \regs
        .cfi_restore \reg
        .set    SLOT, SLOT + 4
        .endr
        .cfi_adjust_cfa_offset -SLOT
        .irp    reg, \regs
        str     r12, [sp, #-SLOT]
        .set    SLOT, SLOT - 4
        .endr
        spot
        .endm

        .macro  push_fp regs, bytes
        vpush   {\regs}
        .cfi_adjust_cfa_offset \bytes
        spot
        .endm

        .macro  pop_fp regs, bytes
        vpop    {\regs}
        .cfi_adjust_cfa_offset -\bytes
        spot
        .endm

        // What managed code saves for its callers: r9 is the thread's, r4 is free.
        .macro  trash_refs
        mvn     r5, #0x5a
        mov     r6, r5
        mov     r7, r5
        mov     r8, r5
        mov     r10, r5
        mov     r11, r5
        spot
        .endm

        .macro  trash_all
        trash_refs
        mov     r4, r5
        mov     r9, r5
        .endm

        // All that native code saves for its callers.
        begin   save_all, SAVE_ALL_BYTES
        push_all r4, r5, r6, r7, r8, r9, r10, r11, lr
        push_fp s16-s31, 64
        take    SAVE_ALL_BYTES - 100
        str     r0, [sp]
        trash_all
        call_next "[sp]"
        spot
        drop    SAVE_ALL_BYTES - 100
        pop_fp  s16-s31, 64
        pop_all r4, r5, r6, r7, r8, r9, r10, r11, lr
        end     save_all

        begin   save_refs_only, SAVE_REFS_ONLY_BYTES
        push_all r5, r6, r7, r8, r10, r11, lr
        take    SAVE_REFS_ONLY_BYTES - 28
        str     r0, [sp]
        trash_refs
        call_next "[sp]"
        spot
        drop    SAVE_REFS_ONLY_BYTES - 28
        pop_all r5, r6, r7, r8, r10, r11, lr
        end     save_refs_only

        // And the arguments, all but the first.
        .macro  save_args
        push_all r1, r2, r3, r5, r6, r7, r8, r10, r11, lr
        push_fp s0-s15, 64
        take    SAVE_REFS_AND_ARGS_BYTES - 104
        str     r0, [sp]
        trash_refs
        .endm

        .macro  restore_args
        spot
        drop    SAVE_REFS_AND_ARGS_BYTES - 104
        pop_fp  s0-s15, 64
        pop_all r1, r2, r3, r5, r6, r7, r8, r10, r11, lr
        .endm

        begin   save_refs_and_args, SAVE_REFS_AND_ARGS_BYTES
        save_args
        call_next "[sp]"
        restore_args
        end     save_refs_and_args

        // The bridge to an interpreter, which is native code: a value may be in either kind of register.
        begin   to_interpreter, SAVE_REFS_AND_ARGS_BYTES
        save_args
        mov     r2, sp
        call_next "[sp]"
        restore_args
        vmov    d0, r0, r1
        spot
        end     to_interpreter

        // All there are: called where no call is expected.
        begin   save_everything, SAVE_EVERYTHING_BYTES
        push_all r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, lr
        push_fp d0-d15, 128
        take    SAVE_EVERYTHING_BYTES - 184
        str     r0, [sp]
        trash_all
        call_next "[sp]"
        spot
        drop    SAVE_EVERYTHING_BYTES - 184
        pop_fp  d0-d15, 128
        pop_all r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, lr
        end     save_everything

        // @FastNative: the stub's frame as any; nothing tells the runtime of the call.
        .set    FAST_STUB_BYTES, 112
        begin   fast_native, FAST_STUB_BYTES+OUT_BYTES
        push_all r5, r6, r7, r8, r10, r11, lr
        push_fp s16-s31, 64
        take    FAST_STUB_BYTES - 92
        str     r0, [sp]
        trash_refs
        take    OUT_BYTES
        call_next "[sp, #OUT_BYTES]"
        spot
        drop    OUT_BYTES
        drop    FAST_STUB_BYTES - 92
        pop_fp  s16-s31, 64
        pop_all r5, r6, r7, r8, r10, r11, lr
        end     fast_native

        // @CriticalNative: a compiled method calls native code itself.
        .set    CRITICAL_CALLER_BYTES, 48
        begin   critical_native, CRITICAL_CALLER_BYTES+OUT_BYTES
        push_all r6, r10, r11, lr
        take    CRITICAL_CALLER_BYTES - 16
        str     r0, [sp]
        mvn     r6, #0x5a
        mov     r10, r6
        mov     r11, r6
        take    OUT_BYTES
        call_next "[sp, #OUT_BYTES]"
        spot
        drop    OUT_BYTES
        drop    CRITICAL_CALLER_BYTES - 16
        pop_all r6, r10, r11, lr
        end     critical_native

        // A stub for it, where the method must be called as others are: room for arguments, lr, no method.
        .set    CRITICAL_STUB_BYTES, 32
        begin   critical_stub, CRITICAL_STUB_BYTES
        push_all lr
        take    CRITICAL_STUB_BYTES - 4
        str     r0, [sp, #16]
        call_next "[sp, #16]"
        spot
        drop    CRITICAL_STUB_BYTES - 4
        pop_all lr
        end     critical_stub

        // What such a call meets first: finds the function, under a frame of its own, and goes there without one.
        begin   critical_lookup, SAVE_REFS_AND_ARGS_BYTES
        save_args
        look_up "[sp]"
        mov     r12, r0
        ldr     r0, [sp]
        restore_args
        bx      r12
        .cfi_endproc
        .size   managed_critical_lookup, . - managed_critical_lookup

        .section .note.GNU-stack, "", %progbits

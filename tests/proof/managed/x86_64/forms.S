// SPDX-License-Identifier: Apache-2.0
// See managed.h. Sizes are those of Android's runtime where they matter: a multiple of 16 less than a page.
#include "macros.inc"

        .macro  save bytes
        push    rbp
        spot
        push    rbx
        push    r12
        spot
        push    r13
        push    r14
        push    r15
        subq    $\bytes, %rsp
        .cfi_adjust_cfa_offset \bytes
        spot
        .endm

        // An interpreter's mark stays up to the function's end.
        .macro  restore bytes, is_interpreter=0, r12_is_dex_pc=0
        addq    $\bytes, %rsp
        .cfi_adjust_cfa_offset -\bytes
        spot    \is_interpreter, \r12_is_dex_pc
        pop     r15
        pop     r14
        pop     r13
        spot    \is_interpreter, \r12_is_dex_pc
        pop     r12
        spot    \is_interpreter, 0
        pop     rbx
        pop     rbp
        spot    \is_interpreter, 0
        .endm

        // "DEX1": the dex pc is in a register.
        .macro  mark temporary, dex_pc
        .cfi_escape 0x16, \temporary, 0x09, 0x0c, 0x44, 0x45, 0x58, 0x31, 0x13, 0x92, \dex_pc, 0x00
        .endm

        // Found by sp.
        .macro  plain name, bytes
        begin   \name
        save    \bytes
        movq    %rdi, 8(%rsp)
        trash
        movq    %rbx, %rbp
        spot
        call_next 8(%rsp)
        spot
        restore \bytes
        end     \name
        .endm

        plain   native, 24
        plain   compiled, 56
        plain   jni_stub, 184

        // Found by rbp, which the callee saves.
        .macro  by_rbp name, bytes
        begin   \name
        save    \bytes
        movq    %rdi, 8(%rsp)
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
        spot
        subq    8(%rdi), %rsp
        trash
        spot
        call_next 8(%rbp)
        spot
        movq    %rbp, %rsp
        spot
        .cfi_def_cfa_register rsp
        restore \bytes
        end     \name
        .endm

        by_rbp  generic_jni, 152

        // rbp where it usually is.
        .macro  by_fp name, bytes
        begin   \name
        push    rbp
        spot
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
        pushq   %rbx
        .cfi_offset rbx, -24
        spot
        pushq   %r12
        .cfi_offset r12, -32
        pushq   %r13
        .cfi_offset r13, -40
        pushq   %r14
        .cfi_offset r14, -48
        pushq   %r15
        .cfi_offset r15, -56
        pushq   %rdi
        subq    8(%rdi), %rsp
        subq    $\bytes, %rsp
        trash
        spot
        call_next -48(%rbp)
        spot
        leaq    -40(%rbp), %rsp
        popq    %r15
        .cfi_restore r15
        popq    %r14
        .cfi_restore r14
        popq    %r13
        .cfi_restore r13
        popq    %r12
        .cfi_restore r12
        spot
        popq    %rbx
        .cfi_restore rbx
        popq    %rbp
        .cfi_def_cfa rsp, 8
        .cfi_restore rbp
        spot
        end     \name
        .endm

        by_fp   invoke_stub, 0
        by_fp   osr_stub, 128

        // The switch interpreter: its loop is C++, which saves rbx.
        begin   switch
        push    rbx
        spot
        subq    $16, %rsp
        .cfi_adjust_cfa_offset 16
        movq    %rdi, (%rsp)
        movq    (%rdi), %rbx
        mark    0, 3
        spot    1, 1
        call_next (%rsp), 1
        spot    1, 1
        addq    $16, %rsp
        .cfi_adjust_cfa_offset -16
        spot    1, 1
        pop     rbx
        spot    1, 0
        end     switch

        // The first interpreter in assembly.
        begin   mterp
        save    24
        movq    %rdi, (%rsp)
        trash
        movq    (%rdi), %r12
        mark    5, 12
        spot    1, 1
        call_next (%rsp), 1
        spot    1, 1
        restore 24, 1, 1
        end     mterp

        // The second one: its frame is found by what lies below its references.
        .set    NTERP_SAVED_BYTES, 56
        begin   nterp
        save    0
        trash
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
        subq    $136, %rsp
        subq    8(%rdi), %rsp
        leaq    64(%rsp), %r9
        movq    %rbp, -8(%r9)
        movq    %rdi, (%rsp)
        spot
        movq    (%rdi), %r12
        .cfi_escape 0x0f, 6, 0x92, 9, 0x78, 0x06, 0x23, NTERP_SAVED_BYTES
        mark    5, 12
        spot    1, 1
        movq    %r9, %r15
        .cfi_escape 0x0f, 6, 0x92, 15, 0x78, 0x06, 0x23, NTERP_SAVED_BYTES
        movq    $-1, %rbp
        movq    $-1, %r9
        spot    1, 1
        call_next (%rsp), 1
        spot    1, 1
        movq    -8(%r15), %rsp
        .cfi_def_cfa rsp, NTERP_SAVED_BYTES
        restore 0, 1, 1
        end     nterp

        .section .note.GNU-stack, "", @progbits

// SPDX-License-Identifier: Apache-2.0
// See managed.h.
#include "macros.inc"

        .macro  save bytes
        push    ebp
        spot
        push    ebx
        push    esi
        spot
        push    edi
        subl    $\bytes, %esp
        .cfi_adjust_cfa_offset \bytes
        spot
        .endm

        // An interpreter's mark stays up to the function's end.
        .macro  restore bytes, is_interpreter=0
        spot    \is_interpreter, \is_interpreter
        addl    $\bytes, %esp
        .cfi_adjust_cfa_offset -\bytes
        spot    \is_interpreter, \is_interpreter
        pop     edi
        pop     esi
        spot    \is_interpreter, 0
        pop     ebx
        pop     ebp
        spot    \is_interpreter, 0
        .endm

        .macro  trash
        movl    $-0x5a5b, %ebx
        movl    %ebx, %esi
        movl    %ebx, %edi
        .endm

        // "DEX1": the dex pc is in a register.
        .macro  mark dex_pc
        .cfi_escape 0x16, 0x00, 0x09, 0x0c, 0x44, 0x45, 0x58, 0x31, 0x13, 0x92, \dex_pc, 0x00
        .endm

        // Found by esp.
        .macro  plain name, bytes
        begin   \name
        save    \bytes
        movl    %ecx, 16(%esp)
        trash
        movl    %ebx, %ebp
        spot
        call_next 16(%esp)
        restore \bytes
        end     \name
        .endm

        plain   native, 28
        plain   compiled, 60
        plain   jni_stub, 76

        // Found by ebp, which the callee saves.
        .macro  by_ebp name, bytes
        begin   \name
        save    \bytes
        movl    %ecx, 16(%esp)
        movl    %esp, %ebp
        .cfi_def_cfa_register ebp
        spot
        subl    4(%ecx), %esp
        trash
        spot
        call_next 16(%ebp)
        spot
        movl    %ebp, %esp
        spot
        .cfi_def_cfa_register esp
        restore \bytes
        end     \name
        .endm

        by_ebp  generic_jni, 76
        by_ebp  invoke_stub, 28
        by_ebp  osr_stub, 44

        // The switch interpreter: its loop is C++, which saves ebx.
        begin   switch
        push    ebx
        spot
        subl    $24, %esp
        .cfi_adjust_cfa_offset 24
        movl    %ecx, 16(%esp)
        movl    (%ecx), %ebx
        mark    3
        spot    1, 1
        call_next 16(%esp), 1
        spot    1, 1
        addl    $24, %esp
        .cfi_adjust_cfa_offset -24
        spot    1, 1
        pop     ebx
        spot    1, 0
        end     switch

        // The first interpreter in assembly.
        begin   mterp
        save    28
        movl    %ecx, 16(%esp)
        trash
        movl    %ebx, %ebp
        movl    (%ecx), %esi
        mark    6
        spot    1, 1
        call_next 16(%esp), 1
        restore 28, 1
        end     mterp

        // The second one: its frame is found by what lies below its references.
        .set    NTERP_SAVED_BYTES, 32
        begin   nterp
        save    12
        trash
        movl    %esp, %edi
        .cfi_def_cfa_register edi
        subl    $128, %esp
        subl    4(%ecx), %esp
        leal    64(%esp), %eax
        movl    %edi, -4(%eax)
        movl    %ecx, 16(%esp)
        spot
        movl    (%ecx), %esi
        .cfi_escape 0x0f, 6, 0x92, 0, 0x7c, 0x06, 0x23, NTERP_SAVED_BYTES
        mark    6
        spot    1, 1
        movl    %eax, %ebp
        .cfi_escape 0x0f, 6, 0x92, 5, 0x7c, 0x06, 0x23, NTERP_SAVED_BYTES
        movl    $-1, %eax
        movl    $-1, %edi
        spot    1, 1
        call_next 16(%esp), 1
        spot    1, 1
        movl    -4(%ebp), %esp
        .cfi_def_cfa esp, NTERP_SAVED_BYTES
        restore 12, 1
        end     nterp

        .section .note.GNU-stack, "", @progbits

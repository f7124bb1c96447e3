// SPDX-License-Identifier: Apache-2.0
        .text
        .globl  native_call
        .type   native_call, @function
        .p2align 4
native_call:
        .cfi_startproc
        pushl   %ebp
        .cfi_adjust_cfa_offset 4
        .cfi_rel_offset ebp, 0
        pushl   %ebx
        .cfi_adjust_cfa_offset 4
        .cfi_rel_offset ebx, 0
        pushl   %esi
        .cfi_adjust_cfa_offset 4
        .cfi_rel_offset esi, 0
        pushl   %edi
        .cfi_adjust_cfa_offset 4
        .cfi_rel_offset edi, 0
        subl    $12, %esp
        .cfi_adjust_cfa_offset 12
        movl    36(%esp), %ecx
        call    2f
2:
        .cfi_adjust_cfa_offset 4
        popl    %edx
        .cfi_adjust_cfa_offset -4
        addl    $1f - 2b, %edx
        movl    %edx, 40(%ecx)
        movl    %esp, 44(%ecx)
        movl    28(%ecx), %eax
        movl    %eax, 0(%esp)
        movl    32(%ecx), %eax
        movl    %eax, 4(%esp)
        movl    36(%ecx), %eax
        movl    %eax, 8(%esp)
        movl    32(%esp), %eax
        movl    0(%ecx), %ebp
        movl    4(%ecx), %ebx
        movl    8(%ecx), %esi
        movl    12(%ecx), %edi
        call    *%eax
1:
        addl    $12, %esp
        .cfi_adjust_cfa_offset -12
        popl    %edi
        .cfi_adjust_cfa_offset -4
        .cfi_restore edi
        popl    %esi
        .cfi_adjust_cfa_offset -4
        .cfi_restore esi
        popl    %ebx
        .cfi_adjust_cfa_offset -4
        .cfi_restore ebx
        popl    %ebp
        .cfi_adjust_cfa_offset -4
        .cfi_restore ebp
        ret
        .cfi_endproc
        .size   native_call, . - native_call

        .globl  native_store
        .type   native_store, @function
        .p2align 4
native_store:
        .cfi_startproc
        movl    $1, (%ebx)
        ret
        .cfi_endproc
        .size   native_store, . - native_store

        .section .note.GNU-stack, "", @progbits

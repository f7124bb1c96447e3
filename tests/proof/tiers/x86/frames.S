// SPDX-License-Identifier: Apache-2.0
// Frames of 48 bytes each, and what is kept in ebp. See play.h.
        .text

// What all do: note the return address, ask, call from one of two places, until there is nothing to call.
        .macro  body play, keeps_data
        movl    %ecx, \play
        movl    %ecx, (%esp)
        movl    %edx, 4(%esp)
        call    play_enter
1:
        movl    \play, %ecx
        movl    %ecx, (%esp)
        call    play_next
        testl   %eax, %eax
        jz      3f
        movl    \play, %ecx
        movl    %ecx, (%esp)
        .if     \keeps_data
        movl    4(%ecx), %ebp
        .endif
        cmpl    $0, (%ecx)
        jne     2f
        call    *%eax
        jmp     1b
2:
        call    *%eax
        jmp     1b
3:
        .endm

        .macro  begin name
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        movl    (%esp), %edx
        movl    4(%esp), %ecx
        .endm

        .macro  end name
        .cfi_endproc
        .size   \name, . - \name
        .endm

        begin   play_plain
        subl    $44, %esp
        .cfi_def_cfa_offset 48
        body    12(%esp), 0
        addl    $44, %esp
        .cfi_def_cfa_offset 4
        ret
        end     play_plain

        begin   play_keep_data
        pushl   %ebp
        .cfi_def_cfa_offset 8
        .cfi_offset ebp, -8
        subl    $40, %esp
        .cfi_def_cfa_offset 48
        body    12(%esp), 1
        addl    $40, %esp
        .cfi_def_cfa_offset 8
        popl    %ebp
        .cfi_def_cfa_offset 4
        .cfi_restore ebp
        ret
        end     play_keep_data

        begin   play_base
        pushl   %ebp
        .cfi_def_cfa_offset 8
        .cfi_offset ebp, -8
        movl    %esp, %ebp
        .cfi_def_cfa_register ebp
        subl    $40, %esp
        subl    8(%ecx), %esp
        body    -4(%ebp), 0
        movl    %ebp, %esp
        popl    %ebp
        .cfi_def_cfa esp, 4
        .cfi_restore ebp
        ret
        end     play_base

        begin   play_other_base
        pushl   %ebx
        .cfi_def_cfa_offset 8
        .cfi_offset ebx, -8
        movl    %esp, %ebx
        .cfi_def_cfa_register ebx
        subl    $40, %esp
        subl    8(%ecx), %esp
        body    -4(%ebx), 0
        movl    %ebx, %esp
        popl    %ebx
        .cfi_def_cfa esp, 4
        .cfi_restore ebx
        ret
        end     play_other_base

        begin   play_lose
        pushl   %ebp
        .cfi_def_cfa_offset 8
        .cfi_undefined ebp
        subl    $40, %esp
        .cfi_def_cfa_offset 48
        body    12(%esp), 1
        addl    $40, %esp
        .cfi_def_cfa_offset 8
        popl    %ebp
        .cfi_def_cfa_offset 4
        .cfi_restore ebp
        ret
        end     play_lose

// Here a rule says that the stack ends, at the instruction behind the call only: true of code that is interrupted
// there, not of a call that will return there.
        begin   play_turn
        subl    $44, %esp
        .cfi_def_cfa_offset 48
        movl    %ecx, 12(%esp)
        movl    %ecx, (%esp)
        movl    %edx, 4(%esp)
        call    play_enter
1:
        movl    12(%esp), %ecx
        movl    %ecx, (%esp)
        call    play_next
        testl   %eax, %eax
        jz      3f
        movl    12(%esp), %ecx
        movl    %ecx, (%esp)
        call    *%eax
        .globl  play_turned
play_turned:
        .cfi_remember_state
        .cfi_undefined eip
        nop
        nop
        .cfi_restore_state
        jmp     1b
3:
        addl    $44, %esp
        .cfi_def_cfa_offset 4
        ret
        end     play_turn

        .section .note.GNU-stack, "", @progbits

// SPDX-License-Identifier: Apache-2.0
// Assembly as some write it: a function for others without a size, behind it functions that only the file knows. It is
// looked at, never run.
#define NOPS "nop\nnop\nnop\nnop\n"

__asm__(".text\n"
        ".balign 16\n"
        ".globl names_unsized\n"
        ".type names_unsized, %function\n"
        "names_unsized:\n" NOPS                                // without unwind information
        "names_local:\n.cfi_startproc\n" NOPS ".cfi_endproc\n" // with it
        "names_hole:\n" NOPS                                   // without
        ".globl names_described\n"
        ".type names_described, %function\n"
        "names_described:\n.cfi_startproc\n" NOPS "names_inside:\n" NOPS ".cfi_endproc\n"); // both

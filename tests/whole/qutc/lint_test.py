#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qutc lint on functions of x86-64 that are right, wrong, and not to be followed, each for one reason.
usage: lint_test.py QUTC CC
"""
import json
import os
import platform
import subprocess
import sys
import tempfile

ENTER, LEAVE = ".cfi_startproc\n", ".cfi_endproc\n"
# name: (code, differences as "start in bytes, what"; outcome)
FUNCTIONS = {
    "right": (ENTER + "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3, -16\nxor %ebx, %ebx\ncall target\npop %rbx\n"
              ".cfi_def_cfa_offset 8\n.cfi_restore 3\nret\n" + LEAVE, [], "followed"),
    "forgets_push": (ENTER + "push %rbx\nxor %ebx, %ebx\npop %rbx\nret\n" + LEAVE, [(1, "CFA")], "followed"),
    "says_same": (ENTER + "push %rbx\n.cfi_def_cfa_offset 16\nxor %ebx, %ebx\npop %rbx\n.cfi_def_cfa_offset 8\nret\n" +
                  LEAVE, [(3, "rbx")], "followed"),
    # Vectors' alignment: the old sp is kept in a register, then in memory. gcc 12 states rbp as if it still pointed into
    # the frame, two instructions long.
    "aligns": (ENTER + "lea 8(%rsp), %r10\n.cfi_def_cfa 10, 0\nand $-32, %rsp\npush -8(%r10)\npush %rbp\nmov %rsp, %rbp\n"
               ".cfi_escape 0x10, 6, 2, 0x76, 0\npush %r10\n.cfi_escape 0x0f, 3, 0x76, 0x78, 6\nsub $64, %rsp\n"
               "call target\nmov -8(%rbp), %r10\n.cfi_def_cfa 10, 0\nleave\nlea -8(%r10), %rsp\n.cfi_def_cfa 7, 8\nret\n" +
               LEAVE, [(33, "rbp"), (37, "rbp")], "followed"),
    "table": (ENTER + "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3, -16\ncmp $2, %edi\nja 9f\nlea 5f(%rip), %rdx\n"
              "movslq (%rdx,%rdi,4), %rax\nadd %rdx, %rax\njmp *%rax\n6: xor %ebx, %ebx\n7: nop\n9: pop %rbx\n"
              ".cfi_def_cfa_offset 8\nret\n" + LEAVE + ".section .rodata\n5: .long 6b-5b, 7b-5b, 9b-5b\n.text\n",
              [], "followed"),
    # Of a table that is known in part nothing is: what the rest leads to may have another frame.
    "table_of_others": (ENTER + "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3, -16\ncmp $2, %edi\nja 9f\n"
                        "lea 5f(%rip), %rdx\nmovslq (%rdx,%rdi,4), %rax\nadd %rdx, %rax\njmp *%rax\n6: xor %ebx, %ebx\n"
                        "9: pop %rbx\n.cfi_def_cfa_offset 8\nret\n" + LEAVE +
                        ".section .rodata\n5: .long 6b-5b, 9b-5b, target-5b\n.text\n", [], "a jump to what is not known"),
    "lowers": (ENTER + "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6, -16\nmov %rsp, %rbp\n.cfi_def_cfa_register 6\n"
               "sub %rdi, %rsp\npush %rbx\ncall target\nleave\n.cfi_def_cfa 7, 8\nret\n" + LEAVE, [], "followed"),
    # What is behind a call that does not come back is another's, whatever it leaves on the stack.
    "calls_last": (ENTER + "sub $24, %rsp\n.cfi_def_cfa_offset 32\ntest %edi, %edi\nje 1f\nadd $24, %rsp\n"
                   ".cfi_def_cfa_offset 8\nret\n1: .cfi_def_cfa_offset 32\ncall target\n" + LEAVE, [], "followed"),
    # A call that does not come back: zeros up to the next function; a landing pad, which has the frame of another place.
    "zeros_behind": (ENTER + "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3, -16\ncall target\n" + LEAVE +
                     ".skip 3\n.byte 0\n" + ENTER + "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6, -16\nmov %rsp, %rbp\n"
                     ".cfi_def_cfa_register 6\npop %rbp\n.cfi_def_cfa 7, 8\nret\n" + LEAVE, [], "followed"),
    "pad_behind": (ENTER + "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3, -16\ncall target\n"
                   ".cfi_def_cfa_offset 64\nmov %rax, %rdi\ncall target\n" + LEAVE, [], "followed"),
    # Nothing shows that the call comes back, and what stands behind it does not return: it may be another's.
    "may_not_come_back": (ENTER + "sub $24, %rsp\ncall 8f\nnop\n.cfi_def_cfa_offset 64\n1: pause\njmp 1b\n" + LEAVE +
                          "8: sub $24, %rsp\njmp *8(%rdi)\n", [(4, "CFA")], "followed"),
    "comes_back": (ENTER + "sub $24, %rsp\ncall 8f\nnop\n.cfi_def_cfa_offset 64\nadd $24, %rsp\n"
                   ".cfi_def_cfa_offset 8\nret\n" + LEAVE + "8: sub $24, %rsp\njmp *8(%rdi)\n",
                   [(4, "CFA"), (10, "CFA")], "followed"),
    "jumps_anywhere": (ENTER + "sub $24, %rsp\n.cfi_def_cfa_offset 32\njmp *8(%rdi)\n" + LEAVE, [],
                       "a jump to what is not known"),
    "returns_wrongly": (ENTER + "push %rdi\n.cfi_def_cfa_offset 16\nret\n" + LEAVE, [],
                        "returns with something left on the stack"),
    # Registers that its callers have saved: an assembler's subroutine says nothing of them.
    "overwrites": (ENTER + "imul %rdi, %rbx\nnop\nret\n" + LEAVE, [(4, "rbx")], "followed"),
    "overwrites_what_it_loaded": (ENTER + "mov (%rdi), %r12\nnop\nshl $3, %r12\nret\n" + LEAVE, [(3, "r12")], "followed"),
    "overwrites_an_argument": (ENTER + "mov %rbp, %rcx\nmov $5, %ecx\nmul %rbx\nmov %rax, %rbp\nnop\nret\n" + LEAVE,
                               [(14, "rbp")], "followed"),
    "passes_an_argument_by": (ENTER + "1: mov (%r14), %rax\nlea 8(%r14), %r14\ntest %rax, %rax\njne 1b\nnop\nret\n" + LEAVE,
                              [(0, "r14")], "followed"),
    # What was computed may be taken back, or loaded again from where it was kept.
    "takes_back": (ENTER + "xor %rdi, %rbx\nnop\nxor %rdi, %rbx\nret\n" + LEAVE, [], "followed"),
    "loads_anything": (ENTER + "mov (%rdi), %rbx\nnop\nret\n" + LEAVE, [], "followed"),
    "keeps_elsewhere": (ENTER + "mov %rbx, (%rdi)\nimul %rsi, %rbx\nmov (%rdi), %rbx\nret\n" + LEAVE, [], "followed"),
    "keeps_in_vector": (ENTER + "movq %rbx, %xmm0\nimul %rsi, %rbx\nmovq %xmm0, %rbx\nret\n" + LEAVE, [], "followed"),
    "joins_wrongly": (ENTER + "test %edi, %edi\nje 1f\nsub $8, %rsp\n1: nop\nret\n" + LEAVE, None, None),
}


def main():
    if platform.machine() != "x86_64":
        print("SKIP: the code is of x86-64")
        return 77
    qutc, compiler = sys.argv[1], sys.argv[2:]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (code, differences, outcome) in FUNCTIONS.items():
            path = os.path.join(folder, name)
            with open(path + ".s", "w", encoding="ascii") as file:
                file.write(f".text\n.globl {name}\n.type {name}, @function\n{name}:\n{code}.size {name}, .-{name}\n"
                           f".p2align 4\n.type target, @function\ntarget:\n{ENTER}ret\n{LEAVE}"
                           ".size target, .-target\n.section .note.GNU-stack,\"\",@progbits\n")
            subprocess.run(compiler + ["-shared", "-nostdlib", "-o", path, path + ".s"], check=True)
            run = subprocess.run([qutc, "lint", "--json", path], capture_output=True, text=True)
            [report] = json.loads(run.stdout)
            if differences is None:  # ways that meet with different stacks: nothing is said from there on
                good = not report["findings"] and report["not_known"] > 0
            else:
                start = int(subprocess.run(f"nm {path} | grep ' {name}$'", shell=True, capture_output=True,
                                           text=True).stdout.split()[0], 16)
                found = [(finding["start"] - start, finding["what"]) for finding in report["findings"]
                         if finding["name"] == name and finding["instructions"] > 0]
                good = found == differences and outcome in report["outcomes"] and run.returncode == (found != [])
            if not good:
                print(f"{name}: {json.dumps(report, indent=1)}")
                failed += 1
    print(f"{len(FUNCTIONS)} functions, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

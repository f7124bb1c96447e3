#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holes that are filled: what is known of the functions that code calls and goes on in. usage: fill_calls_test.py QUTC CC
"""
import os
import platform
import re
import subprocess
import sys
import tempfile

from fill_test import rule_at, rows

LOOP = "1: pause\njmp 1b\n"
# In each, what stands behind `behind_NAME` is reached by a call alone, and never leaves: whether it has a rule shows what
# is known of the callee. Only what stands between .cfi_startproc and .cfi_endproc is described.
SOURCE = f"""
.macro function name
.p2align 4
.type \\name, @function
\\name:
.endm
.text
function described
.cfi_startproc
xor %eax, %eax
ret
.cfi_endproc
.size described, .-described
function describes_no_return
.cfi_startproc
mov $60, %eax
syscall
call describes_no_return
.cfi_endproc
.size describes_no_return, .-describes_no_return
# Not followed, but what it is called says that it never returns.
.globl __fortify_fail
function __fortify_fail
jmp *8(%rdi)
.size __fortify_fail, .-__fortify_fail
function tail
xor %edi, %edi
jmp described
.size tail, .-tail
function by_description
sub $24, %rsp
call described
behind_description: {LOOP}
.size by_description, .-by_description
function by_tail
sub $24, %rsp
call tail
behind_tail: {LOOP}
.size by_tail, .-by_tail
function calls_all
sub $8, %rsp
test %edi, %edi
je 1f
call by_description
ud2
1: test %esi, %esi
je 1f
call by_tail
ud2
1: add $8, %rsp
ret
.size calls_all, .-calls_all
# Ends in a call that does not come back; behind it another function begins, with a call of its own.
function ends_by_name
sub $24, %rsp
test %edi, %edi
jne 1f
add $24, %rsp
ret
1: call __fortify_fail
.p2align 4
behind_name: sub $40, %rsp
call helps
add $40, %rsp
ret
function ends_by_description
sub $24, %rsp
test %edi, %edi
jne 1f
add $24, %rsp
ret
1: call describes_no_return
.p2align 4
behind_no_return: sub $40, %rsp
call helps
add $40, %rsp
ret
function helps
jmp *8(%rdi)
.size helps, .-helps
# What only a table has the address of is followed first; what it calls is known later.
.p2align 4
in_a_table: push %rbx
test %edi, %edi
je 2f
call comes_back
behind_later: {LOOP}
2: pop %rbx
ret
.p2align 4
comes_back: push %rbp
xor %ebp, %ebp
pop %rbp
ret
# Goes on in what turns out to be a function later: what that saves is in other places then.
.p2align 4
jumps_on: push %r12
mov $5, %r12d
pop %r12
jmp turns_out
ud2
turns_out: push %r12
push %rbx
behind_jump: xor %ebx, %ebx
pop %rbx
pop %r12
ret
.p2align 4
tells: sub $8, %rsp
call turns_out
add $8, %rsp
ret
# Falls into another one, with a register that is not its caller's.
function takes_a_register
mov 16(%rsp), %r15
function goes_on
add %r15, %rax
behind_register: inc %eax
ret
.size goes_on, .-goes_on
# A register is lost two calls down, in what stands behind: that is known only when the first was followed.
function calls_second
sub $8, %rsp
call second
behind_third: add $8, %rsp
ret
.size calls_second, .-calls_second
function second
sub $24, %rsp
call takes_r14
add $24, %rsp
ret
.size second, .-second
function takes_r14
mov 16(%rsp), %r14
ret
.size takes_r14, .-takes_r14
.p2align 4
in_table_too: sub $8, %rsp
call unnamed_second
behind_unnamed_third: add $8, %rsp
ret
.p2align 4
unnamed_second: sub $24, %rsp
call unnamed_takes_r14
add $24, %rsp
ret
.p2align 4
unnamed_takes_r14: mov 16(%rsp), %r14
ret
# Where little is not described, described code is not looked at.
function fills_up
.rept 600
push %rbx
pop %rbx
.endr
ret
.size fills_up, .-fills_up
function calls_both
sub $8, %rsp
call takes_a_register
call goes_on
add $8, %rsp
ret
.data
.quad in_a_table, jumps_on, tells, in_table_too
.section .note.GNU-stack,"",@progbits
"""
EXPECTED = {
    "name": "cfa=rsp+8 ra=[cfa-8] fp=same from-code",
    "no_return": "cfa=rsp+8 ra=[cfa-8] fp=same from-code",
    "description": "cfa=rsp+32 ra=[cfa-8] fp=same from-code",
    "tail": "cfa=rsp+32 ra=[cfa-8] fp=same from-code",
    "later": "cfa=rsp+16 ra=[cfa-8] fp=same rbx=[cfa-16] from-code",
    "jump": "cfa=rsp+24 ra=[cfa-8] fp=same rbx=[cfa-24] r12=[cfa-16] from-code",
    "third": "cfa=rsp+16 ra=[cfa-8] fp=same r14=undefined from-code",
    "unnamed_third": "cfa=rsp+16 ra=[cfa-8] fp=same r14=undefined from-code",
    "register": "cfa=rsp+8 ra=[cfa-8] fp=same r15=undefined from-code",
}


def main():
    if platform.machine() != "x86_64":
        print("SKIP: the code is of x86-64")
        return 77
    qutc, compiler = sys.argv[1], sys.argv[2:]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "calls")
        with open(path + ".s", "w", encoding="ascii") as file:
            file.write(SOURCE)
        subprocess.run(compiler + ["-shared", "-nostdlib", "-o", path, path + ".s"], check=True)
        table = rows(qutc, path, "--fill")
        text = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        places = {match[2]: int(match[1], 16) for match in re.finditer(r"^([0-9a-f]+) . behind_(\w+)$", text, re.MULTILINE)}
        for name, wanted in EXPECTED.items():
            found = rule_at(table, places[name])
            if found != wanted:
                print(f"behind_{name}: {found}, should be {wanted}")
                failed += 1
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

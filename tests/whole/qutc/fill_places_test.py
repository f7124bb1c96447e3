#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Code that is followed by numbers beside it, by addresses that it keeps on the stack, and over places where ways meet
with the stack at different depths. usage: fill_places_test.py QUTC CC
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Ways meet with sp in two places; the frame pointer knows the frame, and a call leaves what is above sp as it was.
MEETS_X86_64 = """
.globl meets
.type meets, @function
meets: push %rbp
mov %rsp, %rbp
push %rbx
push %rbx
test %rdi, %rdi
je 1f
sub %rdi, %rsp
1: call *%rsi
at_call: lea -8(%rbp), %rsp
pop %rbx
pop %rbp
ret
.size meets, .-meets
.section .note.GNU-stack,"",@progbits
"""

# What is compared is a byte of an index: the table has as many elements, which are data among the code.
PICKS_X86_64 = """
.globl picks
.type picks, @function
picks: push %rbx
lea 1(%rdi), %eax
cmp $1, %al
ja 2f
lea table(%rip), %rdx
movzbl %al, %eax
movslq (%rdx,%rax,4), %rax
add %rdx, %rax
jmp *%rax
1: call *%rsi
at_call: nop
2: pop %rbx
ret
table: .long 1b - table, 2b - table
.size picks, .-picks
.section .note.GNU-stack,"",@progbits
"""

# As vfprintf of Debian's armhf libc: a byte of one table is the index of another, both found by kept addresses; and what
# is jumped to is an address without Thumb's bit, which is set at last. A frame too large for an instruction is a literal.
THUMB = """
.syntax unified
.thumb
.globl jumps
.type jumps, %function
jumps: .fnstart
.cantunwind
push {r4, lr}
ldr r3, 8f
add sp, r3
ldr r3, 7f
5: add r3, pc
str r3, [sp, #12]
ldr r3, 6f
4: add r3, pc
str r3, [sp, #16]
mov r4, r1
blx r2
ldr r2, [sp, #12]
ldrb r3, [r4]
adds r3, r2, r3
ldrb r3, [r3, #4]
add r3, r2, r3, lsl #2
ldr r3, [r3, #260]
ldr r2, [sp, #16]
add r2, r3
orr r2, r2, #1
bx r2
first: blx r4
in_first: b 3f
second: blx r0
in_second: add sp, #8
sub sp, #8
3: add sp, #1024
pop {r4, pc}
.p2align 2
6: .word 9f - (4b + 4)
7: .word numbers - 4 - (5b + 4)
8: .word -1024
9: .fnend
.size jumps, .-jumps
.section .rodata
.p2align 2
numbers: .zero 256
.word first - 9b, second - 9b
.section .note.GNU-stack,"",%progbits
"""


def rows(qutc, path):
    text = subprocess.run([qutc, "dump", "--all", path], capture_output=True, text=True, check=True).stdout
    return [(int(match[1], 16), int(match[2], 16), match[3])
            for match in re.finditer(r"^0x([0-9a-f]+)-0x([0-9a-f]+) (.*)$", text, re.MULTILINE)]


def symbols(path, nm):
    text = subprocess.run([nm, path], capture_output=True, text=True, check=True).stdout
    return {match[2]: int(match[1], 16) & ~1
            for match in re.finditer(r"^([0-9a-f]+) [a-zA-Z] (\w+)$", text, re.MULTILINE)}


def expect(qutc, compiler, nm, code, folder, rules):
    """The rules at labels. Returns the library's path; None: another rule."""
    path = os.path.join(folder, "library.so")
    with open(path + ".s", "w", encoding="ascii") as file:
        file.write(".text\n" + code)
    subprocess.run(compiler + ["-shared", "-nostdlib", "-Wl,-Ttext-segment=0x10000", "-o", path, path + ".s"], check=True)
    table, places, good = rows(qutc, path), symbols(path, nm), True
    for label, wanted in rules.items():
        found = next((rule for start, end, rule in table if start <= places[label] < end), "none")
        if found != wanted:
            print(f"{label}: {found}, not {wanted}")
            good = False
    return path if good else None


def counts_data(qutc, path, wanted):
    [stat] = json.loads(subprocess.run([qutc, "stat", "--json", path], capture_output=True, text=True).stdout)
    if stat["data_among_code_bytes"] != wanted:
        print(f"data among code, not {wanted}: {stat}")
    return stat["data_among_code_bytes"] == wanted


def main():
    qutc, compiler, failed, done = sys.argv[1], sys.argv[2:], 0, 0
    machine = subprocess.run(compiler + ["-dumpmachine"], capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        if machine.startswith("x86_64"):
            failed += not expect(qutc, compiler, "nm", MEETS_X86_64, folder,
                                 {"at_call": "cfa=rbp+16 ra=[cfa-8] fp=[cfa-16] rbx=[cfa-24] from-code"})
            path = expect(qutc, compiler, "nm", PICKS_X86_64, folder,
                          {"at_call": "cfa=rsp+16 ra=[cfa-8] fp=same rbx=[cfa-16] from-code"})
            failed += not path or not counts_data(qutc, path, 8)
            done += 1
        cross = "arm-linux-gnueabihf-"
        if shutil.which(cross + "gcc"):
            frame = "cfa=sp+1032 ra=[cfa-4] fp=same r4=[cfa-8] from-code"
            path = expect(qutc, [cross + "gcc"], cross + "nm", THUMB, folder, {"in_first": frame, "in_second": frame})
            failed += not path or not counts_data(qutc, path, 12) # three literals
            done += 1
    if not done:
        print("SKIP: neither a compiler for x86-64 nor one for Arm")
        return 77
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

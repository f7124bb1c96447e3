#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/code-coverage: what it counts as a contradiction, and what it makes of a library whose unwind information lies.
usage: code_coverage_test.py ROOT QUTC CC
"""
import importlib.machinery
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile

SOURCE = """
.text
.globl {name}
.type {name}, @function
.p2align 4
{name}: .cfi_startproc
push %rbx
.cfi_adjust_cfa_offset {said}
.cfi_offset %rbx, -16
xor %ebx, %ebx
pop %rbx
.cfi_adjust_cfa_offset -{said}
.cfi_restore %rbx
ret
.cfi_endproc
.size {name}, .-{name}
"""
RULES = [  # stated, found, whether they contradict
    ("cfa=rsp+8 ra=[cfa-8] fp=same", "cfa=rsp+16 ra=[cfa-8] fp=same from-code", True),
    ("cfa=rsp+8 ra=[cfa-8] fp=same", "cfa=rsp+8 ra=[cfa-8] fp=same rbx=undefined from-code", False),
    ("cfa=rbp+16 ra=[cfa-8] fp=[cfa-16]", "cfa=rsp+96 ra=[cfa-8] fp=[cfa-16] from-code", False),
    ("cfa=rbp+16 ra=[cfa-8] fp=[cfa-16]", "cfa=rsp+96 ra=[cfa-24] fp=[cfa-16] from-code", True),
    ("cfa=rdi+0 ra=rdx fp=r9", "cfa=rsp+8 ra=[cfa-8] fp=same from-code", False),
    ("cfa=rsp+8 ra=undefined (outermost frame) fp=same", "cfa=rsp+24 ra=[cfa-8] fp=same from-code", False),
    ("cfa=sp+32 ra=x30 fp=same", "cfa=sp+32 ra=[cfa-8] fp=same from-code", False),
    ("cfa=sp+32 ra=x30 fp=same", "cfa=sp+48 ra=[cfa-8] fp=same from-code", True),
]


def main():
    root, qutc, compiler = sys.argv[1], sys.argv[2], sys.argv[3:]
    loader = importlib.machinery.SourceFileLoader("code_coverage", os.path.join(root, "tools/code-coverage"))
    tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("code_coverage", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(tool)
    failed = 0
    for stated, found, wanted in RULES:
        if tool.contradicts(stated, found) != wanted:
            print(f"contradicts({stated!r}, {found!r}) is {not wanted}")
            failed += 1
    unknown = subprocess.run([loader.path, qutc, "no_such_table"], capture_output=True, text=True, check=False)
    if unknown.returncode == 0 or "no table no_such_table" not in unknown.stderr:
        print(f"an unknown table: {unknown.returncode} {unknown.stderr}")
        failed += 1
    if platform.machine() != "x86_64":
        return int(failed > 0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "library")
        with open(path + ".s", "w", encoding="ascii") as file:
            file.write(SOURCE.format(name="true", said=8) + SOURCE.format(name="lies", said=24) +
                       '.section .note.GNU-stack,"",@progbits\n')
        subprocess.run(compiler + ["-shared", "-nostdlib", "-o", path, path + ".s"], check=True)
        total, covered, bad = tool.compare_stripped(qutc, path, folder)
        ranges = tool.linted(qutc, path)
        if total != 10 or covered != total or len(bad) != 1 or len(ranges) != 1:
            print(f"{covered} of {total} bytes, contradictions {bad}, lint {ranges}")
            failed += 1
        stat = tool.stats(qutc, [path])[path]
        # Eleven bytes of padding between the two functions.
        if tool.shares(stat) != (100 * 10 / 21, 100.0):
            print(f"shares: {tool.shares(stat)} of {stat['text_bytes']}")
            failed += 1
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A decoder against objdump: of every instruction of a file that objdump knows, once, the length; and whether a general
register that objdump's text has as the destination is said to be written. usage: decoder_test.py READ_LINES ARCH FILE...
"""
import os
import re
import shutil
import subprocess
import sys

NUMBERS = {"x86_64": {name: number for number, names in enumerate([
    "rax eax ax al", "rdx edx dx dl", "rcx ecx cx cl", "rbx ebx bx bl", "rsi esi si sil", "rdi edi di dil",
    "rbp ebp bp bpl", "rsp esp sp spl"] + [f"r{i} r{i}d r{i}w r{i}b" for i in range(8, 16)]) for name in names.split()}}
NUMBERS["x86_64"].update({"ah": 0, "dh": 1, "ch": 2, "bh": 3})
NUMBERS["x86"] = {name: number for number, names in enumerate([
    "eax ax al ah", "ecx cx cl ch", "edx dx dl dh", "ebx bx bl bh", "esp sp", "ebp bp", "esi si", "edi di"])
    for name in names.split()}
# What has its last operand as a source, or does not change it.
READS = re.compile(r"^(cmp|test|push|call|jmp|j[a-z]+|bt[wlq]? |i?(mul|div)[bwlq]? +[^,]*$|nop|lgdt|out|verr|verw|ltr|lldt|clflush|prefetch|wr|ud|"
                   r"xchg +%(?P<same>[a-z0-9]+),%(?P=same)$|bnd|vucomis|ucomis|comis|ptwrite|endbr|umwait|umonitor|incssp|tpause|loop|inv|rstorssp|clwb|mov +%[a-z0-9]+,%[cdefgs][rs])")
PREFIXES = re.compile(r"^((repz?|repnz|lock|notrack|bnd|data16|addr32|cs|ds|es|ss|fs|gs|rex(\.[WRXB]+)?)\s+)+")


def instructions(path):
    listing = subprocess.run(["objdump", "-d", "-w", "--insn-width=16", path], capture_output=True, text=True,
                             env={**os.environ, "LC_ALL": "C"}, check=True).stdout
    seen = set()
    for line in listing.splitlines():
        match = re.match(r"\s*([0-9a-f]+):\t([0-9a-f ]+?)\s*\t(.*)$", line)
        if not match or "(bad)" in match[3] or ".byte" in match[3] or match[2] in seen:
            continue
        seen.add(match[2])
        yield match[1], match[2], match[3]


def destination(text):
    """The general register that is written, by the text; None: none, or it is not told."""
    text = PREFIXES.sub("", re.sub(r"\s*[#<].*", "", text)).strip()
    if READS.match(text) or " " not in text:
        return None
    match = re.search(r"(?:^|[ ,])%([a-z0-9]+)$", text)
    return match[1] if match else None


def main():
    if not shutil.which("objdump"):
        print("SKIP: no objdump")
        return 77
    reader, arch, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    wrong = total = 0
    for path in files:
        if not os.path.exists(path):
            print(f"SKIP: no {path}")
            return 77
        rows = list(instructions(path))
        # What stands behind an instruction must not matter.
        lines = "".join(f"{vaddr} {code} 0f 0b 0f 0b 0f 0b 0f 0b\n" for vaddr, code, _ in rows)
        said = subprocess.run([reader, arch], input=lines, capture_output=True, text=True, check=True).stdout
        for (vaddr, code, text), answer in zip(rows, said.splitlines(), strict=True):
            total += 1
            size, flow = answer.split()[:2]
            # A prefix before what needs none is listed alone; data among code reads as such, or as far returns.
            if re.match(r"(rex(\.[WRXB]+)?|fwait|[c-g]s|addr32|data16|lock|repz|repnz)$", text.split()[-1]):
                continue
            if int(size) != len(code.split()) and not code.startswith("9b"):
                print(f"{path}: {vaddr}: {code}: {text}: size {size}")
                wrong += 1
            register = NUMBERS[arch].get(destination(text) or "")
            if register is not None and flow != "unknown" and \
                    not re.search(rf" (lose|compute|set|add|and|shift|insert|extend|load|indexed):{register},", answer):
                print(f"{path}: {vaddr}: {code}: {text}: not said to write register {register}: {answer}")
                wrong += 1
    print(f"{total} different instructions, {wrong} wrong")
    return int(wrong > 0 or total < 1000)


if __name__ == "__main__":
    sys.exit(main())

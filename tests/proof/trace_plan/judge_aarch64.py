#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans of real files of aarch64 against binutils: what is exchanged is one instruction, of the kind that the plan says;
before it stands nothing but a landing mark; no patched function calls without saving its return address; and nearly all
are patched.

usage: judge_aarch64.py PLAN_LIST OBJDUMP FILE...
"""
import bisect
import os
import re
import shutil
import subprocess
import sys

LINE = re.compile(r"^ *([0-9a-f]+):\t([0-9a-f]{8}) \t(\S+)\s*(.*?)(?:\s+//.*)?$")
FUNCTION = re.compile(r"^f (\w+) (\w+) (.+?) (\d+) (\d+) (\d+) (\w+) (\S*) (.*)$")
MARKS = ("paciasp", "pacibsp", "bti")
COPY, SKIP, ADDRESS, JUMP, CONDITION = range(5)
SHARE_MIN = 0.995  # of those that are not refused by name


def lines(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, errors="replace").stdout.splitlines()


def expected_move(name, operands):
    if name == "nop":
        return SKIP
    if name in ("adr", "adrp") or (name in ("ldr", "ldrsw", "prfm") and "[" not in operands):
        return ADDRESS
    if name == "b":
        return JUMP
    if name.startswith("b.") or name in ("cbz", "cbnz", "tbz", "tbnz"):
        return CONDITION
    return COPY


def judge(plan_list, objdump, path):
    code = {}
    for line in lines(objdump, "-d", "-w", path):
        match = LINE.match(line)
        if match:
            code[int(match[1], 16)] = (match[3], match[4])
    places = sorted(code)
    wrong, patched, refused_by_code = [], 0, 0
    for line in lines(plan_list, "--functions", path):
        match = FUNCTION.match(line)
        if not match:
            continue
        entry, size, kind, at, patch, moved = int(match[1], 16), int(match[2], 16), match[3], *map(int, match.group(4, 5, 6))
        if kind not in ("jump", "nops"):
            refused_by_code += "return address" in kind or "instruction" in kind
            continue
        patched += 1
        name, operands = code.get(entry + at, ("none", ""))
        if (patch, moved) != (4, 4) or match[8] != f"4/{expected_move(name, operands)}":
            wrong.append(f"{match[9]}: {patch}, {moved}, {match[8]} for {name} {operands}")
        if at not in (0, 4) or (at == 4) != (code.get(entry, ("none",))[0] in MARKS and size > 4):
            wrong.append(f"{match[9]}: begins with {code.get(entry)}, patched at {at}")
        saves = calls = False
        for place in places[bisect.bisect_left(places, entry):bisect.bisect_left(places, entry + size)]:
            name, operands = code[place]
            saves |= name in ("stp", "str") and "x30" in operands.split("[")[0]
            calls |= name in ("bl", "blr")
        if calls and not saves:
            wrong.append(f"{match[9]}: calls, and does not save x30")
    share = patched / max(1, patched + refused_by_code)
    print(f"{path}: {patched} patched, {share:.2%} of those not refused by name, {len(wrong)} wrong")
    for text in wrong[:10]:
        print(f"  {text}")
    return bool(wrong) or share < SHARE_MIN or patched < 10


def main():
    plan_list, objdump, *paths = sys.argv[1:]
    paths = [path for path in paths if os.path.exists(path)]
    if not paths:
        print("SKIP: no libraries of aarch64")
        return 77
    if not shutil.which(objdump):
        print(f"SKIP: no {objdump}")
        return 77
    return any([judge(plan_list, objdump, path) for path in paths])


if __name__ == "__main__":
    sys.exit(main())

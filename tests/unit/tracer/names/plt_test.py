#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of procedure linkage table entries as objdump has them, at each instruction.

    plt_test.py NAMES_DUMP OBJDUMP FILE...      FILE: missing ones are skipped
"""
import os
import re
import subprocess
import sys

dump, objdump = sys.argv[1:3]
failed = compared = 0


def entries(path):
    """address of an instruction -> name of its entry"""
    sections = [option for name in (".plt", ".plt.sec", ".plt.got") for option in ("-j", name)]
    text = subprocess.run([objdump, "-d", *sections, path], capture_output=True, text=True).stdout
    found, name = {}, None
    for line in text.splitlines():
        head = re.match(r"^([0-9a-f]+) <(.*)>:$", line)
        instruction = re.match(r"^ +([0-9a-f]+):\t", line)
        if head:
            name = re.sub(r"@@?[A-Z][A-Za-z_0-9.]*@plt$", "@plt", head[2])
        elif not line:
            name = None
        elif instruction and name and name.endswith("@plt") and not name.startswith("*"):
            found[int(instruction[1], 16)] = name
    return found


for path in sys.argv[3:]:
    if not os.path.exists(path):
        continue
    wanted = entries(path)
    text = subprocess.run([dump, path], input="\n".join(f"{at:x}" for at in wanted), capture_output=True, text=True,
                          check=True).stdout.splitlines()
    got = {int(line, 16): text[i + 1] for i, line in enumerate(text) if re.fullmatch(r"0x[0-9a-f]{16}", line)}
    wrong = [at for at in wanted if got[at] != wanted[at]]
    print(f"{path}: {len(wanted)} instructions, {len(wrong)} other than objdump's")
    for at in wrong[:5]:
        print(f"  0x{at:x}: {got[at]}, not {wanted[at]}")
    failed += len(wrong)
    compared += len(wanted)
if compared == 0:
    print("SKIP: objdump names no entry")
    sys.exit(77)
sys.exit(1 if failed else 0)

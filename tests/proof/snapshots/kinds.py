#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the JSON of stacks (output.json) has the frames of output.txt, and says of each what it is: by its module alone,
a second opinion on what the walk found. Usage: kinds.py DIRECTORY..."""
import json
import re
import sys

DEX = re.compile(r"(\.vdex|\.dex|\.jar)$")
JIT = re.compile(r"^(memfd:jit-cache|jit_map\d\.so|<?anonymous:[0-9a-f]+>?)$")
COMPILED = re.compile(r"\.(oat|odex)(_|$)")


def is_dex(lines, index):
    # Nothing is mapped there in art_quick_osr_stub_arm.
    interprets = index > 0 and "(ExecuteMterpImpl+" in lines[index - 1].string
    return bool(DEX.search(lines[index].group(2))) or (interprets and lines[index].group(2) == "<unknown>")


def wanted_kind(lines, index):
    module = lines[index].group(2)
    if is_dex(lines, index):
        return "dex"
    if index + 1 < len(lines) and is_dex(lines, index + 1):
        return "interpreter"
    if JIT.search(module):
        return "jit"
    return "managed" if COMPILED.search(module) else "native"


def difference(directory):
    with open(f"{directory}/output.json", encoding="utf-8") as file:
        frames = json.load(file)["stacks"][0]["frames"]
    with open(f"{directory}/output.txt", encoding="utf-8") as file:
        lines = [re.match(r"  #\d+ pc ([0-9a-f]+)  (\S+)", line) for line in file]
    if len(frames) != len(lines):
        return f"{len(frames)} frames, not {len(lines)}"
    for index, frame in enumerate(frames):
        pc = int(frame.get("module_pc", frame["pc"]), 16)
        kind = wanted_kind(lines, index)
        if frame["kind"] != kind or pc != int(lines[index].group(1), 16):
            return f"#{index:02d} {frame['kind']} pc {pc:x}, wanted {kind}: {lines[index].group(0)}"
    return None


differences = [f"{name}: {what}" for name in sys.argv[1:] if (what := difference(name))]
if differences:
    sys.exit("\n".join(differences))

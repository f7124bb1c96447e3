#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans of real files against binutils, which share nothing with the planner: where instructions begin, what branches,
relocations and landing pads of exceptions lead to, what is padding.

usage: judge.py [--shares] PLAN_LIST FILE...

  --shares   only how many functions are patched in which way, of all files together

Of each function that is patched, what is exchanged begins at an instruction; what is moved ends at one; nothing leads
behind the first byte of what is exchanged; what is exchanged belongs to the function or to no function; padding that is
taken is nops, and taken once.
"""
import bisect
import os
import re
import struct
import subprocess
import sys

LINE = re.compile(r"^ *([0-9a-f]+):\t(\S.*)$")
BRANCH = re.compile(r"^(?:(?:bnd|notrack|repz?|addr32|data16|cs|ds|es|rex\S*) )*(j\w+|call\w*|loop\w*|xbegin)(?:,p[tn])? +([0-9a-f]+)\b")
LEA = re.compile(r"^lea\w* .*# ([0-9a-f]+)\b")
RELATIVE = re.compile(r"R_X86_64_(?:I?RELATIVE|IRELATIV)\S*\s+([0-9a-f]+)")
NOP = re.compile(r"^(?:(?:data16|cs|ds|rex\S*|repz) )*(?:nop|xchg +%ax,%ax|int3|\(bad\))")
FUNCTION = re.compile(r"^f (\w+) (\w+) (.+?) (\d+) (\d+) (\d+) (\w+) (\S*) (.*)$")
PATCHED = ("nops", "jump", "short jump", "trap")


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    return done.stdout.splitlines()


class File:
    def __init__(self, path):
        self.path = path
        self.starts, self.nops, self.targets = [], set(), set()
        for line in run("objdump", "-d", "-w", "--no-show-raw-insn", path):
            match = LINE.match(line)
            if not match:
                continue
            at, text = int(match[1], 16), match[2]
            self.starts.append(at)
            if NOP.match(text):
                self.nops.add(at)
            branch = BRANCH.match(text) or LEA.match(text)
            if branch:
                self.targets.add(int(branch[branch.lastindex], 16))
        self.begins = set(self.starts)
        for line in run("readelf", "-rW", path):
            match = RELATIVE.search(line)
            if match:
                self.targets.add(int(match[1], 16))
        self.bodies = []
        self.read_frames()
        self.bodies.sort()

    def read_frames(self):
        """FDEs, and the landing pads of those that have a table of them."""
        with open(self.path, "rb") as file:
            data = file.read()
        sections = {}
        for line in run("readelf", "-SW", self.path):
            match = re.match(r"\s*\[\s*\d+\] (\S+)\s+\S+\s+([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", line)
            if match:
                sections[match[1]] = tuple(int(x, 16) for x in match.groups()[1:])
        eh, table = sections.get(".eh_frame"), sections.get(".gcc_except_table")
        cie = None
        for line in run("readelf", "--debug-dump=frames", self.path):
            match = re.match(r"^([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
            if match:
                cie = tuple(int(x, 16) for x in match.groups())
                self.bodies.append((cie[2], cie[3]))
            elif cie and line.startswith("  Augmentation data:") and eh and table:
                raw = bytes.fromhex(line.split(":")[1].replace(" ", ""))
                at = cie[0] + 17  # of 32-bit records with pointers of 4 bytes
                if len(raw) == 4 and data[eh[1] + at:eh[1] + at + 4] == raw:
                    lsda = eh[0] + at + struct.unpack("<i", raw)[0]
                    self.read_pads(data, table[1] + lsda - table[0], cie[2])
            elif not line.strip():
                cie = None

    def read_pads(self, data, at, start):
        def uleb():
            nonlocal at
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 0x7f) << shift
                shift += 7
                if byte < 0x80:
                    return value
        if data[at] != 0xff:  # landing pads count from elsewhere: cold parts of functions
            return
        at += 1
        if data[at] != 0xff:
            at += 1
            uleb()
        else:
            at += 1
        if data[at] != 1:
            return
        at += 1
        end = uleb()
        end += at
        while at < end:
            uleb(), uleb()
            pad = uleb()
            uleb()
            if pad:
                self.targets.add(start + pad)

    def begins_when_asked(self, start, moved):
        """Behind data in the text the whole listing may be out of step."""
        lines = run("objdump", "-d", "-w", "--no-show-raw-insn", f"--start-address={start}",
                    f"--stop-address={start + moved + 16}", self.path)
        begins = {int(match[1], 16) for match in map(LINE.match, lines) if match}
        return start in begins and start + moved in begins

    def belongs_to_others(self, entry, end, first, last):
        """Whether [first, last) has bytes of a function other than [entry, end)."""
        i = max(bisect.bisect(self.bodies, (last, 0)) - 3, 0)
        return any(a < last and b > first and (a, b) != (entry, end) and not (a <= entry and b >= end)
                   for a, b in self.bodies[i:i + 4])


def padding_is_free(file, taken, first, last):
    at = bisect.bisect_right(file.starts, first) - 1
    while at < len(file.starts) and file.starts[at] < last:
        if file.starts[at] not in file.nops:
            return False
        at += 1
    return not any(byte in taken for byte in range(first, last))


def judge(plan_list, path):
    lines = run(plan_list, "--functions", path)
    print(lines[0] if lines else f"{path}: no plan")
    if not lines or ": functions " not in lines[0]:
        return False
    file = File(path)
    taken, wrong, judged = set(), [], 0
    for line in lines[1:]:
        match = FUNCTION.match(line)
        entry, size, kind = int(match[1], 16), int(match[2], 16), match[3]
        patch_at, patch, moved, pad = int(match[4]), int(match[5]), int(match[6]), int(match[7], 16)
        if kind not in PATCHED:
            continue
        judged += 1
        start, end = entry + patch_at, entry + size
        what = []
        if start not in file.begins and not file.begins_when_asked(start, moved):
            what.append("begins inside an instruction")
        elif start + moved not in file.begins and start in file.begins and start + moved != end:
            what.append("ends inside an instruction")
        what += [f"{at:x} is led to" for at in range(start + 1, start + patch) if at in file.targets]
        if start + patch > end:
            if not padding_is_free(file, taken, end, start + patch):
                what.append("takes what is no padding")
            taken.update(range(end, start + patch))
        if file.belongs_to_others(entry, end, start, start + patch):
            what.append("takes another function's bytes")
        if kind == "short jump":
            if not padding_is_free(file, taken, pad, pad + 5) or file.belongs_to_others(entry, end, pad, pad + 5):
                what.append(f"jumps to {pad:x}, which is no padding")
            what += [f"{at:x} is led to" for at in range(pad, pad + 5) if at in file.targets]
            taken.update(range(pad, pad + 5))
        if what:
            wrong.append(f"  {entry:x} {kind} {match[9]}: {', '.join(what)}")
    print("\n".join(wrong[:20]))
    print(f"  {judged} functions judged, {len(file.targets)} targets, {len(wrong)} wrong")
    return judged > 0 and not wrong


def shares(plan_list, paths):
    counts = {}
    for at in range(0, len(paths), 16):
        for line in run(plan_list, *paths[at:at + 16]):
            numbers, _, refused = line.partition(" | ")
            for name, count in re.findall(r" ([a-z][a-z ]*?) (\d+)", numbers.rpartition(":")[2]):
                counts[name] = counts.get(name, 0) + int(count)
            for name, count in re.findall(r"([^|]+?) (\d+)(?: \||$)", refused):
                if name.strip() != "ms":
                    counts["refused: " + name.strip()] = counts.get("refused: " + name.strip(), 0) + int(count)
            if ": functions " in line:
                counts["files"] = counts.get("files", 0) + 1
    planned = counts.get("functions", 0) - counts.get("refused", 0)
    for name, count in counts.items():
        share = f" {100 * count / planned:.2f} %" if name in PATCHED and planned else ""
        print(f"{count:10} {name}{share}")


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "--shares":
        shares(arguments[1], arguments[2:])
        return 0
    there = [path for path in arguments[1:] if os.path.exists(path)]
    for path in set(arguments[1:]) - set(there):
        print(f"SKIP: there is no {path}")
    if not there:
        return 77
    results = [judge(arguments[0], path) for path in there]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())

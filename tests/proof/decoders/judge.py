#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The decoders of machine code against a disassembler's text, instruction by instruction: how long each is, where it goes
on, which general registers it writes, and, of what moves whole words, adds constants, loads and stores, what it does
exactly. The judge of an architecture knows the text alone; nothing is shared with the decoders. What a decoder says not
to know is true, but counted, and bounded. A FILE may be random:COUNT, for so many random words, always the same ones:
compilers use few of the instructions that there are.

usage: judge.py READER ARCH DISASSEMBLER FILE...
"""
import collections
import importlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

LINE = re.compile(r"^ *([0-9a-f]+):\t([0-9a-f ]+?) *\t(\S+)(?:\s+(.*))?$")


SHOWS_LOST = "SHOWS_LOST" in os.environ


class Expected:
    """What the text says. Values: (register, number), or a tuple that begins with a word; None: not known."""

    def __init__(self):
        self.registers, self.stores, self.marks = {}, set(), []
        self.way, self.target = "next", None
        self.exact = True

    def unknown(self, to):
        self.registers[to] = None

    def any(self, to):
        """Something that is not what it was, whatever the decoder says of it."""
        self.registers[to] = "any"

    def add(self, to, source, number):
        self.registers[to] = (source, number)

    def constant(self, to, number):
        self.registers[to] = ("constant", number)

    def add_register(self, to, source, other, subtracts):
        self.registers[to] = ("sum", source, other, subtracts)

    def align(self, to, source, number):
        self.registers[to] = ("and", source, -number)

    def load(self, to, base, number):
        self.registers[to] = ("at", base, number)

    def store(self, source, base, number):
        self.stores.add((base, number, source))

    def change(self, what):
        self.marks.append(what)

    def flow(self, way, target=None):
        self.way, self.target = way, target


class Said:
    """What the decoder says, executed."""

    def __init__(self, answer, arch):
        size, self.way, *ops = answer.split()
        self.size, self.target = int(size), None
        self.registers, self.stores, self.marks = {}, set(), []
        self.arch = arch
        self.names = lambda number: arch.NAMES[number] if number < len(arch.NAMES) else "scratch"
        for op in ops:
            kind, _, values = op.partition(":")
            if kind == "target":
                self.target = int(values, 16)
            elif values and kind != "through":
                to, source, other, shift, size, number = values.split(",")
                self.apply(kind, int(to), int(source), int(other), int(shift), int(size.rstrip("-")), size[-1] == "-",
                           int(number))
        self.registers = {reg: value for reg, value in self.registers.items()
                          if reg != "scratch" and value != (reg, 0)}

    def value(self, number):
        if number < 0:
            return None
        return self.registers.get(self.names(number), (self.names(number), 0))

    @staticmethod
    def plain(value):
        return value is not None and len(value) == 2 and value[0] != "constant"

    def apply(self, kind, to, source, other, shift, size, negative, number):
        name = self.names(to) if to >= 0 else None
        base = self.value(source)
        width = self.arch.WORD * 8
        result = None
        if kind == "set":
            if source < 0 or (base and base[0] == "constant"):
                number += base[1] if source >= 0 else 0
                result = ("constant", number & ((1 << width) - 1))
            elif self.plain(base):
                result = (base[0], base[1] + number)
        elif kind == "add" and self.plain(base):
            by = self.value(other)
            if shift == 0 and by and number == 0 and base[1] == 0 and self.plain(by) and by[1] == 0:
                result = ("sum", base[0], by[0], bool(negative))
        elif kind == "and" and self.plain(base) and base[1] == 0:
            low = -number & ((1 << width) - 1)
            if low and low & (low - 1) == 0 and low < 1 << (width - 1):
                result = ("and", base[0], -low)
        elif kind == "load" and self.plain(base) and size == self.arch.WORD:
            result = ("at", base[0], base[1] + number)
        elif kind == "store":
            base, value = self.value(to), self.value(source)
            if self.plain(base) and size == self.arch.WORD and self.plain(value) and value[1] == 0:
                self.stores.add((base[0], base[1] + number, value[0]))
            return
        elif kind == "compare":
            return
        elif kind in ("sign", "auth"):
            self.marks.append(kind)
            return
        self.registers[name] = result


def matches(said, expected):
    """Differences, as text; what the decoder loses is true but not welcome, and counted apart."""
    wrong, lost = [], []
    for reg in said.registers.keys() | expected.registers.keys():
        mine, theirs = said.registers.get(reg, "unchanged"), expected.registers.get(reg, "unchanged")
        if theirs == (reg, 0):
            theirs = "unchanged"
        if mine == theirs or (theirs == "any" and mine != "unchanged"):
            continue
        (lost if mine is None else wrong).append(f"{reg}: {mine}, not {theirs}")
    if said.stores != expected.stores:
        wrong.append(f"stores {sorted(said.stores)}, not {sorted(expected.stores)}")
    if said.marks != expected.marks:
        wrong.append(f"{said.marks}, not {expected.marks}")
    if said.way != expected.way:
        wrong.append(f"{said.way}, not {expected.way}")
    elif expected.target is not None and said.target != expected.target:
        wrong.append(f"to {said.target}, not {expected.target}")
    return wrong, lost


def lines(disassembler, path, arch):
    """(mode, address, bytes, name, operands), each text of an instruction once where it says no address."""
    seen = set()
    output = subprocess.Popen(disassembler.split() + [path], stdout=subprocess.PIPE, text=True, errors="replace")
    for line in output.stdout:
        match = LINE.match(line.rstrip("\n"))
        if not match:
            continue
        address, groups, name, operands = match.groups()
        groups = groups.split()
        code = b"".join(bytes.fromhex(group)[::-1] for group in groups)
        if hasattr(arch, "is_skipped") and arch.is_skipped(name):
            continue
        if code in seen or (len(code) == 4 and code in seen):
            continue
        seen.add(code)
        mode = arch.mode(groups) if hasattr(arch, "mode") else 0
        yield mode, int(address, 16), code, name, operands or ""
    if output.wait() != 0:
        raise SystemExit(f"{disassembler} {path}: failed")


def judge_file(arch, reader, name, disassembler, path, counts, is_random=False):
    todo = list(lines(disassembler, path, arch))
    answers = []
    for mode in (0, 1):
        of_mode = [line for line in todo if line[0] == mode]
        asked = "".join(f"{address:x} {code.hex()}\n" for _, address, code, _, _ in of_mode)
        said = subprocess.run([reader, name, str(mode)], input=asked, capture_output=True, text=True, check=True).stdout
        answers += zip(of_mode, said.splitlines(), strict=True)
    for (mode, address, code, text, operands), answer in answers:
        expected = arch.judge(text, operands, address, mode)
        if expected is None:
            counts["skipped"] += 1
            continue
        counts["instructions"] += 1
        said = Said(answer, arch)
        if said.size == 0:
            counts["unknown"] += 1
            counts["wrong"] += not is_random
            if not is_random or SHOWS_LOST:
                print(f"{path}:{address:x}: {code.hex()} {text} {operands}: not known")
            continue
        wrong, lost = matches(said, expected)
        if said.size != len(code):
            wrong.append(f"{said.size} bytes")
        counts["wrong"] += bool(wrong)
        counts["lost"] += bool(lost and not wrong)
        if wrong or (lost and SHOWS_LOST):
            print(f"{path}:{address:x}: {code.hex()} {text} {operands}: {'; '.join(wrong)}"
                  f" ({'; '.join(lost)})")


def random_words(count, path):
    generator = random.Random(7)
    with open(path, "wb") as file:
        file.write(generator.randbytes(4 * count))


def main():
    reader, name, disassembler, *files = sys.argv[1:]
    arch = importlib.import_module(f"judge_{name}")
    files = [path for path in files if path.startswith("random:") or os.path.exists(path)]
    program = disassembler.split()[0]
    if not shutil.which(program) or not files:
        print(f"SKIP: no {program}, or no library for it")
        return 77
    counts = collections.Counter()
    for path in files:
        if not path.startswith("random:"):
            judge_file(arch, reader, name, disassembler, path, counts)
            continue
        with tempfile.TemporaryDirectory() as folder:
            words = os.path.join(folder, "words")
            random_words(int(path.partition(":")[2]), words)
            for how in arch.RANDOM if isinstance(arch.RANDOM, list) else [arch.RANDOM]:
                judge_file(arch, reader, name, f"{program} {how}", words, counts, True)
    print(f"{name}: {counts['instructions']} kinds of instructions, {counts['wrong']} wrong, {counts['lost']} that lose more "
          f"than they need, {counts['unknown']} not known, {counts['skipped']} that are none")
    return counts["wrong"] > 0 or counts["lost"] * 50 > counts["instructions"] or counts["instructions"] < 1000


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Inlined functions and lines of a compiled program, against independent readers of its debug information: at every
# instruction of ours (up to COUNT of them) one reader at least must say the same chain of functions, files and lines.
# What each is known not to read: addr2line 2.40 the range lists that clang writes in DWARF 5, eu-addr2line 0.188 what
# .debug_aranges does not list.
#
#   inlines_test.py [--llvm] DUMP PROGRAM [COUNT]     --llvm: not without llvm-addr2line
import os
import re
import shutil
import subprocess
import sys


def addresses(program, count):
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-j", ".text", program],
                          capture_output=True, text=True, check=True).stdout
    # What fills the gap between functions is in none.
    found = re.findall(r"^\s*([0-9a-f]+):\s+(?!nop|data16|cs nop|xchg|int3|$)", text, re.M)
    step = max(1, len(found) // count)
    return found[::step]


def chains(command, found):
    # eu-addr2line ends with 1 where it does not know an address.
    text = subprocess.run(command, input="\n".join(found) + "\n", stdout=subprocess.PIPE, text=True).stdout
    result = {}
    chain = None
    lines = iter(text.split("\n"))
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]+", line):
            chain = result.setdefault(int(line, 16), [])
        elif line:
            chain.append((line, next(lines)))
    return result


def place(text):
    text = re.sub(r" \(discriminator \d+\)$", "", text)
    text = re.sub(r" \(inlined by\).*$", "", text)
    parts = text.split(":")
    number = parts[1] if len(parts) > 1 and parts[1].isdigit() else "0"
    return os.path.basename(parts[0]), int(number)


# Parts of functions have names of their own in symbol tables, and none in debug information.
def plain(chain):
    result = []
    for function, where in chain:
        function = re.sub(r" inlined at .*$", "", function)
        function = re.sub(r"(\.(cold|part|constprop|isra|localalias)(\.\d+)*)+$", "", function)
        # The same code may be the constructor of a whole object and of a part of one: either name is right.
        function = re.sub(r"([CD])[12](?=E)", r"\1", function)
        # Ours say what a function is declared in, where readers have "~T" alone.
        function = function if function.startswith("_") else function.rsplit("::", 1)[-1]
        file, line = place(where)
        result.append((function, file, line))
    return result


# addr2line tells the symbol's name for the innermost function where debug information has no linker's name for that.
def as_bfd(mine, bfd):
    return mine == bfd or (len(mine) == len(bfd) > 1 and bfd[0][0] == bfd[-1][0] and mine[1:] == bfd[1:] and
                           mine[0][1:] == bfd[0][1:])


def main():
    arguments = [a for a in sys.argv[1:] if a != "--llvm"]
    dump, program = arguments[:2]
    found = addresses(program, int(arguments[2]) if len(arguments) > 2 else 600)
    readers = {}
    for name, commands in {"addr2line": ["addr2line"], "eu-addr2line": ["eu-addr2line"],
                           "llvm-addr2line": ["llvm-addr2line-14", "llvm-addr2line"]}.items():
        command = next((c for c in commands if shutil.which(c)), None)
        if command:
            readers[name] = chains([command, "-a", "-i", "-f", "-e", program], found)
        elif name != "llvm-addr2line" or "--llvm" in sys.argv:
            print("SKIP: no", name)
            return 77
    ours = chains([dump, program], found)
    agree = dict.fromkeys(readers, 0)
    wrong = deep = 0
    for address in sorted(int(a, 16) for a in found):
        mine = plain(ours.get(address, []))
        deep += len(mine) > 1
        others = {name: plain(reader.get(address, [])) for name, reader in readers.items()}
        same = [name for name, other in others.items() if mine == other or name == "addr2line" and as_bfd(mine, other)]
        for name in same:
            agree[name] += 1
        if not same:
            wrong += 1
            if wrong <= 5:
                print("%#x\n  ours %s\n  %s" % (address, mine, "\n  ".join("%s %s" % o for o in others.items())))
    print("%s: %d addresses, %d with inlined functions, as in %s, wrong %d" %
          (os.path.basename(program), len(found), deep, ", ".join("%s %d" % a for a in agree.items()), wrong))
    # A reader that says the same of nothing would prove nothing.
    return 1 if wrong or deep * 2 < len(found) or max(agree.values()) * 10 < len(found) * 9 else 0


sys.exit(main())

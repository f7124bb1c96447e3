#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Four times as much of one thing may take four times the instructions, not sixteen times.

Usage: growth_test.py QUT SUBJECT RECORDED LIBRARY CC [KIND...]

Of each kind, three runs under valgrind: with (nearly) nothing of it, N, 4 N. The first is what does not grow.
Calls of the kernel are counted too, where that is quick: what they cost is no instruction of ours.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

QUT, SUBJECT, RECORDED, LIBRARY, CC = sys.argv[1:6]
TIMES_MAX = 5.0
KINDS = {"mappings": 1000, "named": 1000, "threads": 60, "modules": 60, "entries": 8000, "functions": 2000,
         "parts": 200, "notes": 400}


def environment():
    return {**os.environ, "QUT_CACHE": os.path.join(WORK, "cache")}


def instructions(*arguments):
    """Of one run of qut: all, the loader's included."""
    done = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", QUT,
                           *arguments], env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    found = re.search(r"I\s+refs:\s+([0-9,]+)", done.stderr)
    if done.returncode not in (0, 1) or not found:
        raise SystemExit(f"qut {' '.join(arguments)}: {done.returncode}\n{done.stdout[-500:]}{done.stderr[-2000:]}")
    return int(found[1].replace(",", "")), done.stdout


def of_process(program, *arguments):
    subject = subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if subject.stdout.readline() != "ready\n":
            raise SystemExit(f"{program} {' '.join(arguments)}: not ready")
        command = ["stack", "-p", str(subject.pid)]
        subprocess.run([QUT, *command], env=environment(), capture_output=True)  # tables are made once
        return instructions(*command)
    finally:
        subject.stdin.close()
        subject.wait()


def functions_program(count):
    """A program with as many functions more."""
    source = os.path.join(WORK, f"functions{count}.s")
    with open(source, "w", encoding="ascii") as file:
        file.write('.section .note.GNU-stack,"",@progbits\n.text\n')
        for i in range(count):
            file.write(f".globl f{i}\n.type f{i},@function\nf{i}: .cfi_startproc\nret\n.cfi_endproc\n"
                       f".size f{i},.-f{i}\n")
    program = source[:-2]
    subprocess.run([CC, "-o", program, os.path.join(os.path.dirname(__file__), "subject.c"), source, "-O1", "-pthread"],
                   check=True)
    return program


def trace_file(name, piece, count, first=b""):
    path = os.path.join(WORK, f"{name}{count}.qtrace")
    with open(path, "wb") as file:
        file.write(first + piece * count)
    return path


def measure(kind, count):
    if kind in ("parts", "notes"):
        with open(os.path.join(WORK, "recorded.qtrace"), "rb") as file:
            recorded = file.read()
        # The recorder's own notes are the last part.
        own = recorded.rindex(recorded[:8])
        if own == 0:
            raise SystemExit("the recording has one part only")
        path = (trace_file(kind, recorded, count) if kind == "parts" else
                trace_file(kind, recorded[own:], count, recorded[:own]))
        cost, said = instructions("info", path)
        assert "notes" in said, said
        return cost
    if kind == "functions":
        return of_process(functions_program(count), "none", "0")[0]
    if kind == "modules":
        for i in range(count):
            path = os.path.join(WORK, f"lib{i}")
            if not os.path.exists(path):
                shutil.copyfile(LIBRARY, path)
        return of_process(SUBJECT, kind, str(count), os.path.join(WORK, "lib"))[0]
    cost, said = of_process(SUBJECT, kind, str(count))
    if kind == "entries":
        assert f"of {count}, {count} of them unusable" in said, said
    if kind == "threads":
        assert said.count("pause") >= count, said
    return cost


def main():
    global WORK
    if not shutil.which("valgrind"):
        print("SKIP: valgrind")
        sys.exit(77)
    bad = []
    with tempfile.TemporaryDirectory() as WORK:
        subprocess.run([QUT, "record", "-q", "-o", os.path.join(WORK, "recorded.qtrace"), "--", RECORDED],
                       env=environment(), capture_output=True)
        for kind in sys.argv[6:] or KINDS:
            count = KINDS[kind]
            nothing, some, more = (measure(kind, n) for n in (1, count, 4 * count))
            times = (more - nothing) / (some - nothing)
            print(f"{kind}: {count}: {some - nothing} instructions more than 1, {4 * count}: {times:.2f} times that")
            if times > TIMES_MAX:
                bad.append(kind)
    if bad:
        sys.exit(f"not linear: {', '.join(bad)}")


main()

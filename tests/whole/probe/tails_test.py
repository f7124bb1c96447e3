#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions that end by jumping to others (tail calls): each has returned when that has, with what that returns, and is
left when that is, as the program has counted it itself.

    tails_test.py QUT SUBJECT
"""
import collections
import json
import os
import re
import signal
import subprocess
import sys

QUT, SUBJECT = (os.path.realpath(path) for path in sys.argv[1:3])
NAME = os.path.basename(SUBJECT)
PATIENCE_S = 120
FUNCTIONS = ("first", "middle", "last", "hop", "deep", "even", "odd")
JUMPS_MOST = 4096 # one after the other, of which is known that they are calls


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


def values(text):
    """What each map has of a function."""
    documents = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {(document["map"], FUNCTIONS[row["key"][0]]): row["value"] for document in documents for row in document["rows"]}


def account(text):
    return {name: tuple(map(int, numbers.split())) for name, numbers in re.findall(r"^tail_(\w+) ([-\d ]+)$", text, re.MULTILINE)}


def probe(script, *arguments):
    return subprocess.run([QUT, "probe", "--json", "-e", script, SUBJECT, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE_S)


def script(functions, with_left):
    return "".join(f"entry:{NAME}!tail_{name} {{ @calls[{n}] = count() }}"
                   f"return:{NAME}!tail_{name} /duration >= 0/ {{ @returned[{n}] = count(); @retvals[{n}] = sum(retval); @ns[{n}] = sum(duration) }}"
                   + (f"unwind:{NAME}!tail_{name} /duration >= 0/ {{ @left[{n}] = count() }}" if with_left else "")
                   for n, name in enumerate(FUNCTIONS) if name in functions)


def check(functions, with_left):
    """Of those that are probed; whether what they jump to is as well makes no difference."""
    done = probe(script(functions, with_left), "4", "20000", "0")
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    own, found = account(done.stdout), values(done.stdout)
    for name in functions:
        what = ("calls", "returned", *(("left",) if with_left else ()), "retvals")
        wanted = own[name] if with_left else own[name][:2] + own[name][3:]
        expect(f"{name} of {functions}: {what}", tuple(found.get((one, name), 0) for one in what), wanted)
    assert own["last"][2] > 1000 and own["first"][2] == own["middle"][2] == own["last"][2], own
    if "first" in functions and "last" in functions:
        assert found["ns", "first"] > found["ns", "last"] > 0, found


def check_callers():
    """They return to who has called the first of them."""
    done = probe("".join(f"return:{NAME}!tail_{name} in {NAME}!try_first {{ @called[{n}] = count() }}"
                         f"return:{NAME}!tail_{name} in {NAME}!on_signal {{ @by_signal[{n}] = count() }}" for n, name in enumerate(FUNCTIONS[:3])),
                 "4", "20000", "0")
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    own, found = account(done.stdout), values(done.stdout)
    for name in FUNCTIONS[:3]:
        expect(name, found["called", name] + found["by_signal", name], own[name][1])


def check_too_many():
    done = probe(script(("even", "odd"), False), "1", "100", str(JUMPS_MOST + 1000))
    expect("exit status, which is the command's", done.returncode, 7)
    own, found = account(done.stdout), values(done.stdout)
    missing = sum(own[name][1] - found["returned", name] for name in ("even", "odd"))
    expect("missing ones, and what is said", (missing, f"{missing:,} calls were so deep, or jumped so often" in done.stderr), (1000, True))


def check_attached():
    """In and out again while what has jumped is under way: all is put back."""
    with subprocess.Popen([SUBJECT, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            program.stdout.readline()
            for _ in range(20):
                with subprocess.Popen([QUT, "probe", "--json", "-e", script(FUNCTIONS, False) + "timer:5ms { print(@returned) }",
                                       "-p", str(program.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True) as tool:
                    while not json.loads(tool.stdout.readline())["rows"]:
                        pass
                    tool.send_signal(signal.SIGINT)
                    rest, said = tool.communicate(timeout=PATIENCE_S)
                expect(f"exit status ({said})", tool.returncode, 0)
                found = collections.Counter(values(rest))
                # Calls that run when probes come, and when they go, are of one chain of jumps or one recursion each.
                for name in FUNCTIONS:
                    assert found["returned", name] <= found["calls", name], (name, found)
                for name in FUNCTIONS[3:]:
                    assert found["calls", name] - found["returned", name] <= 300, (name, found)
                with open(f"/proc/{program.pid}/maps", encoding="utf-8") as mapped:
                    expect("what is left of us", [line for line in mapped if "qut" in line], [])
                assert program.poll() is None, program.returncode
        finally:
            program.stdin.close()


def main():
    check(FUNCTIONS, False)
    check(FUNCTIONS, True)
    check(("first", "last"), True)
    check(("first", "hop", "even"), False)
    check(("middle",), True)
    check_callers()
    check_too_many()
    check_attached()
    print("ok: what has jumped to another function ends with that")


main()

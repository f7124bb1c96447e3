#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls that are left without returning are counted as the program itself has counted them, each once, with libgcc's
unwinder and with LLVM's.

    unwind_test.py QUT SUBJECT [ROUNDS]
"""
import json
import os
import subprocess
import sys
import time

QUT, SUBJECT = (os.path.realpath(path) for path in sys.argv[1:3])
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
NAME = os.path.basename(SUBJECT)
PATIENCE_S = 280
FUNCTIONS = ["inner", "middle", "outer", "cleanup", "deep", "again", "jump", "ends", "aside", "hops"]
THREADS = 3


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


def script():
    of_each = [f"entry:{NAME}!un_{name} {{ @calls_{name} = count(); @n[tid] = arg0 }}"
               f"return:{NAME}!un_{name} {{ @returned_{name} = count() }}"
               f"unwind:{NAME}!un_{name} {{ @left_{name} = count() }}" for name in FUNCTIONS]
    return "".join(of_each)


def run(text, preload=None):
    """The maps, and the program's own account. It goes on until it is told, so that ended threads are looked at."""
    environment = dict(os.environ, LD_PRELOAD=preload) if preload else None
    with subprocess.Popen([QUT, "probe", "--json", "-e", text, "--", SUBJECT, str(ROUNDS), str(THREADS)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=environment) as prober:
        try:
            time.sleep(0.5)
            own, found = {}, {}
            while len(own) < len(FUNCTIONS):
                words = prober.stdout.readline().split()
                assert words, prober.stderr.read()
                own[words[0][3:]] = [int(word) for word in words[1:]]
            time.sleep(0.5)
            prober.stdin.write("\n")
            rest, said = prober.communicate(timeout=PATIENCE_S)
        finally:
            prober.kill()
    for line in rest.splitlines():
        document = json.loads(line)
        found[document["map"]] = document["rows"]
    expect(f"exit status ({said})", prober.returncode, 0)
    return own, found


def total(found, name):
    return sum(row["value"] for row in found.get(name, []))


def check_counts(preload):
    own, found = run(script(), preload)
    for name in FUNCTIONS:
        got = [total(found, f"{what}_{name}") for what in ("calls", "returned", "left")]
        expect(f"{name} (calls, returned, left) with {preload or 'its own unwinder'}", got, own[name])
    assert own["deep"][2] > own["inner"][2] / 10 > 0 < own["ends"][2], own


def check_values():
    """How long the call took, what its entry has kept, and who made it, by pattern."""
    text = (f"entry:{NAME}!un_deep {{ @depth[tid] = arg0 }}"
            f"unwind:{NAME}!un_deep /duration > 0 && tid != 0 && pid != 0/ {{ @timed = count() }}"
            f"unwind:{NAME}!un_deep in {NAME}!un_deep {{ @within = count() }}"
            f"unwind:{NAME}!un_deep /duration > 100s/ {{ @slow = count() }}"
            f"unwind:{NAME}!un_deep {{ @by[stack(1)] = count(); @kept = max(@depth[tid]) }}")
    own, found = run(text)
    left = own["deep"][2]
    expect("with a duration", total(found, "timed"), left)
    expect("that took long", total(found, "slow"), 0)
    expect("within itself", total(found, "within"), left - ROUNDS * (THREADS + 1))
    expect("by stack", total(found, "by"), left)


def main():
    check_counts(None)
    can_preload = subprocess.run(["/bin/true"], env=dict(os.environ, LD_PRELOAD="libunwind.so.1"), capture_output=True,
                                 text=True, check=False)
    if can_preload.stderr:
        print("LLVM's unwinder is not there: left out")
    else:
        check_counts("libunwind.so.1")
    check_values()
    print("ok: what is left is counted as the program does")


if __name__ == "__main__":
    main()

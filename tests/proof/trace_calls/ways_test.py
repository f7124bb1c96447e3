#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions that can only be entered in a way of their own, traced, against the program's own account.

usage: ways_test.py QUT NOPS XRAY [--rounds N]

NOPS and XRAY are the subject of trace_calls_test.py without unwind information, with the nops of
-fpatchable-function-entry and with XRay's sleds; "-": there is none.
"""

import argparse
import subprocess
import sys
import tempfile

from trace_calls_test import TIMEOUT_S, Test, fail, failures

LEFT_CASES = ("calls", "tails", "jumps", "threads", "handlers")


def listed(options, program, *more):
    """How each traced_* function of a program would be traced, by name."""
    done = subprocess.run([options.qut, "trace", "--list", *more, "-f", "traced_*", "--", program],
                          stdout=subprocess.PIPE, timeout=TIMEOUT_S, check=False, text=True)
    lines = [line for line in done.stdout.splitlines() if "!" in line]
    return {line.split("!", 1)[1].split()[0]: line for line in lines}


def left_places(test, program):
    """Each is entered at the place that the compiler left, though nothing else says what it is."""
    functions = listed(test.options, program)
    if len(functions) < 15:
        fail(program, f"{len(functions)} functions are listed")
    for name, line in functions.items():
        if not line.startswith("nops "):
            fail(program, f"{name}: {line}")
    for case in LEFT_CASES:
        test.run(program, case, test.traced)


def no_such(test, program):
    """What a pattern means may be loaded at any time: at the end it is said that nothing was."""
    for command, expected in (([program], 1), (["sh", "-c", "exit 3"], 3)):
        done = subprocess.run([test.options.qut, "trace", "-q", "-o", test.name("none.qtrace"), "-f", "nosuch!*", "--",
                               *command], stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False, text=True)
        if done.returncode != expected or "nosuch!*: no function fits" not in done.stderr:
            fail(f"nosuch!* with {command[0]}", f"exit status {done.returncode}, not {expected}; {done.stderr}")
    done = subprocess.run([test.options.qut, "trace", "--list", "-f", "nosuch!*", "--", program],
                          stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False, text=True)
    if done.returncode != 2:
        fail("--list", f"exit status {done.returncode} where no function fits")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("qut")
    parser.add_argument("nops")
    parser.add_argument("xray")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trace_ways.") as folder:
        test = Test(options, folder)
        for program in (options.nops, options.xray):
            if program != "-":
                left_places(test, program)
        no_such(test, "true")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

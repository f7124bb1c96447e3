#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions that become too frequent for --budget or --thin, against the program's own account.

usage: rates_test.py QUT RATES [--rounds N]

The program calls its functions until all of them are entered in another way, and N times more. Calls that have events and
calls that have none must add up to its own count, by process and function; what has events is whole: the entry and the
exit of the same call, left as the function leaves.
"""
import argparse
import os
import subprocess
import sys
import tempfile

from trace_calls_test import TIMEOUT_S, Test, fail, failures, lines_of

# How each function leaves, always.
LEAVES = {"traced_first": "tail_calls", "traced_jumper": "unwound"}
OFTEN = ("traced_leaf", "traced_outer", "traced_first", "traced_second", "traced_jumps")


def judge(test, what, account, trace, is_thinned, are_short):
    processes = {process["pid"]: process for process in test.calls(trace)["calls"]}
    lines = lines_of(account)
    for line in lines:
        if line["result"]:
            fail(what, f"{line['case']}: {line['result']} results are wrong, or a function is as it was")
        process = processes.get(line["pid"])
        if not process or not process["balanced"] or process["lost_enters"] or process["lost_exits"] or \
                process["exits_alone"]:
            fail(what, f"{line['case']}: {process and {key: process[key] for key in process if key != 'functions'}}")
            continue
        found = {function["function"]: function for function in process["functions"]}
        for name, counts in line["functions"].items():
            function = found.get(name)
            if not function or function["calls"] + function["counted"] != counts["entered"]:
                fail(what, f"{line['case']}: {name}: {function}, the program counted {counts['entered']}")
                continue
            left = function[LEAVES.get(name, "returned")]
            # A tail call into one that has no events is over when that returns.
            if name == "traced_first":
                left += function["returned"]
            # Nothing may be recorded behind the last one, in what it has left.
            if name == "traced_jumper":
                left += function["open"]
            if left != function["calls"]:
                fail(what, f"{line['case']}: {name}: {left} of {function['calls']} left as they do: {function}")
            if line["case"] != "child" and name in OFTEN and not function["counted"]:
                fail(what, f"{name}: none of {function['calls']} calls is only counted")
            if not are_short and function.get("thinned", False) != (is_thinned and function["counted"] != 0):
                fail(what, f"{name}: thinned is {function.get('thinned')}")
    return len(lines)


def run(test, program, case, *options):
    what = f"rates {case} {' '.join(options)}"
    before = len(failures)
    account, trace = test.name("account.json"), test.name("calls.qtrace")
    done = subprocess.run([test.options.qut, "trace", "-q", "--wait", "-o", trace, *options, "-f", "rates!traced_*", "--",
                           program, case, str(test.options.rounds)],
                          env={**os.environ, "TRACE_ACCOUNT": account, "TRACE_WAIT": "1"}, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        fail(what, f"exit status {done.returncode}")
    if judge(test, what, account, trace, "--thin" in options, "--min-duration" in options) != 1 + (case == "forks"):
        fail(what, "an account is missing")
    if len(failures) == before:
        print(f"ok: {what}")
    return trace


def attached(test, program, case, *options):
    """The program runs before it is traced, and goes on when that ends."""
    what = f"rates {case} {' '.join(options)} (-p)"
    before = len(failures)
    status, account, trace = test.attached(program, case, "--wait", *options)
    if status != 0:
        fail(what, f"exit status {status} of the program")
    if judge(test, what, account, trace, "--thin" in options, False) != 1 + (case == "forks"):
        fail(what, "an account is missing")
    if len(failures) == before:
        print(f"ok: {what}")


def said(test, trace):
    """What people read says it, too."""
    text = subprocess.run([test.options.qut, "info", "--calls", trace], stdout=subprocess.PIPE, timeout=TIMEOUT_S,
                          check=False, text=True).stdout
    lines = [line for line in text.splitlines() if "traced_leaf" in line and "~" in line and "[1 of " in line]
    if len(lines) != 1:
        fail("qut info --calls", text)


def refused(test):
    for options in (["--budget", "5"], ["--count-only"], ["--depth", "2"]):
        done = subprocess.run([test.options.qut, "trace", "--thin", "10", *options, "-f", "x", "--", "true"],
                              stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False, text=True)
        if done.returncode != 2 or f"--thin: not with {options[0]}" not in done.stderr:
            fail(f"--thin {options}", f"exit status {done.returncode}: {done.stderr}")
    for value, said_of_it in (("operator==", "at column 11: milliseconds, from 0"), ("x=1ms", "at column 3"),
                              ("-1", "at column 1: milliseconds, more than 0"), ("a!=5", "[MODULE!]NAME="),
                              ("=5", "[MODULE!]NAME=")):
        done = subprocess.run([test.options.qut, "trace", "--min-duration", value, "-f", "x", "--", "true"],
                              stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False, text=True)
        if done.returncode != 2 or said_of_it not in done.stderr:
            fail(f"--min-duration {value}", f"exit status {done.returncode}: {done.stderr}")
    # Of a pattern that no traced function fits it is said.
    done = subprocess.run([test.options.qut, "trace", "-q", "-o", test.name("none.qtrace"), "--min-duration", "nosuch=1",
                           "-f", "rates!traced_leaf", "--", test.options.rates, "nosuch"], stderr=subprocess.PIPE,
                          timeout=TIMEOUT_S, check=False, text=True)
    if "nosuch: no traced function fits" not in done.stderr:
        fail("--min-duration nosuch=1", f"exit status {done.returncode}: {done.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("qut")
    parser.add_argument("rates")
    parser.add_argument("--rounds", type=int, default=3000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trace_rates.") as folder:
        test = Test(options, folder)
        refused(test)
        run(test, options.rates, "threads", "--budget", "100")
        said(test, run(test, options.rates, "threads", "--thin", "100"))
        run(test, options.rates, "forks", "--thin", "100")
        attached(test, options.rates, "threads", "--thin", "100")
        attached(test, options.rates, "forks", "--thin", "100")
        run(test, options.rates, "rush", "--thin", "100", "--min-duration", "1000")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

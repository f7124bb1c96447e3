#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions that can only be entered in a way of their own, traced, against the program's own account.

usage: ways_test.py QUT NOPS XRAY TRAPS [--rounds N] [--wait] [--deny DENY]

NOPS and XRAY are the subject of trace_calls_test.py without unwind information, with the nops of
-fpatchable-function-entry and with XRay's sleds; "-": there is none. TRAPS has functions with room for one byte.
With --deny these alone, with samples where timers send the ticks: DENY denies perf's clock to all (tests/whole/record/deny.c).
"""

import argparse
import errno
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from trace_calls_test import TIMEOUT_S, Test, accounts_of, fail, failures

PERF_EVENT_OPEN = 298  # x86-64
LEFT_CASES = ("calls", "tails")
TRAP_CASES = ("calls", "jumps", "threads", "masks", "children")


class Trapping(Test):
    def traced(self, program, case, *options):
        self.said, self.trace = "", None
        account, trace = self.name("account.json"), self.name("calls.qtrace")
        denied = [self.options.deny, "all", str(PERF_EVENT_OPEN), str(errno.EPERM), self.name("denied")] \
            if self.options.deny else []
        done = subprocess.run([*denied, self.options.qut, "trace", "--traps", "-o", trace, *options,
                               *self.patterns(program, case), "--", *self.command(program, case)],
                              env={**os.environ, "TRACE_ACCOUNT": account}, stderr=subprocess.PIPE, timeout=TIMEOUT_S,
                              check=False, text=True)
        self.said, self.trace = done.stderr, trace
        return done.returncode, account, trace


def traps(test, program):
    """By --traps alone, whatever the program does with SIGTRAP, its masks, children and handlers."""
    for name, line in listed(test.options, program).items():
        if line.startswith("trap ") or ("trap_" in name) != line.startswith("refused "):
            fail(program, f"{name}: {line}")
    for name, line in listed(test.options, program, "--traps").items():
        if ("trap_" in name) != line.startswith("trap "):
            fail(program, f"{name}, --traps: {line}")
    for case in TRAP_CASES:
        test.run(program, case, test.traced)
        if "2 trap)" not in test.said and ", 2 trap" not in test.said:
            fail(case, test.said)
        if case == "children":
            forked_by_trap(test)
        # Ticks and traps come by the same signal.
        test.run(program, case, lambda program, case: test.traced(program, case, "--samples", "997"))
        if "2 trap)" not in test.said and ", 2 trap" not in test.said:
            fail(f"{case} --samples", test.said)
    sampled(test, program)
    # Children that are left alone take the traps out of their own code, and do with SIGTRAP what they like.
    test.run(program, "children", lambda program, case: test.traced(program, case, "--no-children"))
    for samples in ([], ["--samples", "997"]):
        # It ends while four threads are in traps, and all goes on by itself.
        status, account, _ = test.traced(program, "ends", "--duration", "1", *samples)
        for _ in range(TIMEOUT_S * 10):
            if test.is_told(account, "ends"):
                break
            time.sleep(0.1)
        results = accounts_of(account)[1]
        if results != [("ends", 0)] or not re.search(r"[34] places put back", test.said):
            fail(f"ends {samples}", f"exit status {status}; {results}; {test.said}")
        status, account, _ = test.traced(program, "dies", *samples)
        if status != 128 + signal.SIGTRAP:
            fail(f"dies {samples}", f"exit status {status}, not that of SIGTRAP")
    for samples in ([], ["--samples", "997"]):
        thinned(test, program, *samples)
    # A process that runs may block the signal.
    done = subprocess.run([test.options.qut, "trace", "--traps", "-f", "x", "-p", str(os.getpid())],
                          stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False, text=True)
    if done.returncode != 2 or "needs a COMMAND" not in done.stderr:
        fail("-p", f"exit status {done.returncode}; {done.stderr}")


def thinned(test, program, *options):
    """Of a function that has become too frequent all calls are counted, and those that are recorded are whole."""
    what = f"often --thin {' '.join(options)}"
    status, account, trace = test.traced(program, "often", "--wait", "--thin", "100", *options)
    sums, results = accounts_of(account)
    entered = sums["traced_trap_leaf"]["entered"]
    processes = test.calls(trace)["calls"]
    found = [function for process in processes for function in process["functions"]
             if function["function"] == "traced_trap_leaf"]
    if status != 0 or results != [("often", 0)] or len(found) != 1 or not found[0].get("thinned") or \
            found[0]["calls"] + found[0]["counted"] != entered or found[0]["returned"] != found[0]["calls"] or \
            not processes[0]["balanced"] or processes[0]["lost_enters"] or processes[0]["lost_exits"]:
        fail(what, f"exit status {status}; {results}; entered {entered}; {found}; {test.said}")
    else:
        print(f"ok: {what}")


def by_timers(test, program):
    """Ticks, traps of ours and the program's own signals are told apart, whoever sends the ticks."""
    for case in TRAP_CASES:
        test.run(program, case, lambda program, case: test.traced(program, case, "--samples", "997"))
        done = subprocess.run([test.options.qut, "info", "--json", test.trace], stdout=subprocess.PIPE, timeout=TIMEOUT_S,
                              check=False)
        notes = json.loads(done.stdout)["processes"][0]["notes"]
        if (notes.get("trigger"), notes.get("tick-signal")) != ("cpu-timer", "TRAP") or ", 2 trap" not in test.said:
            fail(f"{case}, by timers", f"{notes}; {test.said}")
    thinned(test, program, "--samples", "997")
    sampled(test, program)


def sampled(test, program):
    """There are samples, within traced calls as well: of a program that does nothing else for some tenths of a second."""
    test.traced(program, "costs", "--samples", "997")
    done = subprocess.run([test.options.qut, "export", "-q", "-f", "collapsed", "-o", "-", test.trace],
                          stdout=subprocess.PIPE, timeout=TIMEOUT_S, check=False, text=True)
    if "costs" not in done.stdout:
        fail("costs --samples", f"exit status {done.returncode}; {done.stdout[:500]}; {test.said}")


def forked_by_trap(test):
    """Each child of fork made one call, by a trap, whatever it did with SIGTRAP: its part has that and no other."""
    children = [process["functions"] for process in test.calls(test.trace)["calls"]
                if process["exits_alone"] == 0 and process["enters"] == 1]
    calls = [(function["function"], function["calls"], function["returned"]) for functions in children
             for function in functions if function["calls"]]
    if calls != [("traced_trap_leaf", 1, 1)] * test.options.rounds:
        fail("children", f"{len(children)} of {test.options.rounds}: {calls[:3]}")


def listed(options, program, *more):
    """How each traced_* function of a program would be traced, by name."""
    done = subprocess.run([options.qut, "trace", "--list", *more, "-f", "traced_*", "--", program],
                          stdout=subprocess.PIPE, timeout=TIMEOUT_S, check=False, text=True)
    lines = [line for line in done.stdout.splitlines() if "!" in line]
    return {line.split("!", 1)[1].split()[0]: line for line in lines}


def kept_plans(test, program):
    """Listed once more, of the plan that is kept: the same."""
    directory = test.name("plans")
    os.mkdir(directory, 0o700)
    anew = listed(test.options, program, "--no-cache")
    if os.listdir(directory) or not anew:
        fail("--no-cache", f"{len(anew)} functions, {os.listdir(directory)} kept")
    kept = []
    for _ in range(2):
        if listed(test.options, program, "--cache", directory) != anew:
            fail("--cache", "other functions than without")
        kept.append({name: os.stat(os.path.join(directory, name)).st_mtime_ns for name in os.listdir(directory)})
    if kept[0] != kept[1] or not any(name.endswith(".plan") for name in kept[0]):
        fail("--cache", f"kept first {kept[0]}, then {kept[1]}")


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
    parser.add_argument("traps")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--wait", action="store_true")
    parser.add_argument("--deny")
    options = parser.parse_args()
    if options.deny:
        with tempfile.TemporaryDirectory(prefix="trace_ways.") as folder:
            by_timers(Trapping(options, folder), options.traps)
        return 1 if failures else 0
    with tempfile.TemporaryDirectory(prefix="trace_ways.") as folder, \
            tempfile.TemporaryDirectory(prefix="trace_ways.") as other:
        test = Test(options, folder)
        for program in (options.nops, options.xray):
            if program != "-":
                left_places(test, program)
        traps(Trapping(options, other), options.traps)
        no_such(test, "true")
        kept_plans(test, options.nops)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

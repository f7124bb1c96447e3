#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exact calls against programs that keep their own account.

usage: trace_calls_test.py QUT SUBJECT SUBJECT_CXX|- PLUGIN [--rounds N] [--only CASE,...] [--keep DIR] [--attach] [--wait]

Each case is run by itself, then under `qut trace`, and must have the same result and exit status; then what `qut info
--calls --json` says of each of its functions must be what the program counted: how often it was entered, and how each
call was left. With --attach the process runs before it is traced (-p), waits until it is, and must not be disturbed by
the end of it. With --wait threads wait for room in their rings, so that nothing is lost however many calls there are.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

C_CASES = ["calls", "tails", "jumps", "threads", "switches", "moves", "handlers", "alternates", "forks", "plugins"]
CXX_CASES = ["throws", "threads", "forced", "ends"]
# What each run does differently: how often a signal met the program.
KINDS = ("returned", "tail", "unwound", "open")
INEXACT = ("handlers", "alternates")
TIMEOUT_S = 120

failures = []


def fail(what, text):
    print(f"FAIL: {what}: {text}")
    failures.append(what)


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def accounts_of(path):
    """The sums of all lines, and the results."""
    sums, results = {}, []
    for line in lines_of(path):
        results.append((line["case"], line["result"]))
        for name, counts in line["functions"].items():
            into = sums.setdefault(name, {})
            for key, value in counts.items():
                into[key] = into.get(key, 0) + value
    return sums, results


def timeout_s(options):
    return TIMEOUT_S + options.rounds // 100  # the slowest begin a thread each


class Test:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.number = 0

    def name(self, what):
        self.number += 1
        return os.path.join(self.folder, f"{self.number}-{what}")

    def command(self, program, case):
        return [program, case, str(self.options.rounds)] + ([self.options.plugin] if case == "plugins" else [])

    def plain(self, program, case):
        account = self.name("plain.json")
        done = subprocess.run(self.command(program, case), env={**os.environ, "TRACE_ACCOUNT": account},
                              timeout=timeout_s(self.options), check=False)
        return done.returncode, accounts_of(account)[1]

    def calls(self, trace):
        done = subprocess.run([self.options.qut, "info", "--calls", "--json", trace], stdout=subprocess.PIPE,
                              timeout=timeout_s(self.options), check=False)
        # 1: something is missing, such as what children of an injected process would have said at their ends.
        if done.returncode not in (0, 1):
            raise RuntimeError(f"qut info: exit status {done.returncode}")
        return json.loads(done.stdout)

    def patterns(self, program, case):
        modules = [os.path.basename(program)]
        if case == "plugins":
            modules.append(os.path.basename(self.options.plugin))
        return [part for module in modules for part in ("-f", f"{module}!traced_*")]

    def traced(self, program, case):
        account, trace = self.name("account.json"), self.name("calls.qtrace")
        environment = {**os.environ, "TRACE_ACCOUNT": account, "TRACE_PLUGIN": "1"}
        wait = ["--wait"] if self.options.wait else []
        done = subprocess.run([self.options.qut, "trace", "-q", "-o", trace, *wait, *self.patterns(program, case), "--",
                               *self.command(program, case)],
                              env=environment, timeout=timeout_s(self.options), check=False)
        return done.returncode, account, trace

    @staticmethod
    def is_told(account, case):
        """The last line is the program's own: a plugin has told before."""
        try:
            return any(line["case"] == case for line in lines_of(account))
        except (OSError, ValueError):
            return False

    def attached(self, program, case, *more):
        account, trace = self.name("account.json"), self.name("calls.qtrace")
        over = self.name("over")
        environment = {**os.environ, "TRACE_ACCOUNT": account, "TRACE_PLUGIN": "1", "TRACE_WAIT": "1",
                       "TRACE_OVER": over}
        with subprocess.Popen(self.command(program, case), env=environment) as process:
            time.sleep(0.2)  # it waits for us, so that it only should have begun
            with subprocess.Popen([self.options.qut, "trace", "-q", "-o", trace, *more, *self.patterns(program, case),
                                   "-p", str(process.pid)]) as tracer:
                for _ in range(TIMEOUT_S * 20):
                    if self.is_told(account, case) or tracer.poll() is not None:
                        break
                    if process.poll() is not None:
                        break
                    time.sleep(0.05)
                time.sleep(0.1)
                # Between what the program does last and its end: all is put back.
                if tracer.poll() is None:
                    tracer.send_signal(signal.SIGINT)
                status = tracer.wait(TIMEOUT_S)
            with open(over, "w", encoding="utf-8"):
                pass
            process.wait(TIMEOUT_S)
            if status not in (0, 128 + signal.SIGINT):
                fail(f"{case} (-p)", f"qut trace ended with {status}")
            return process.returncode, account, trace

    def judge(self, what, account, trace):
        said = self.calls(trace)
        # Children of fork keep no account here (families_test.py).
        pids = {line["pid"] for line in lines_of(account)}
        found = functions_of(process for process in said["calls"] if process["pid"] in pids)
        expected, _ = accounts_of(account)
        for name, counts in sorted(expected.items()):
            seen = found.get(name)
            if seen is None:
                fail(what, f"{name}: entered {counts['entered']} times, not in the trace")
                continue
            for key in ("entered",) + KINDS:
                if seen[key] != counts[key]:
                    fail(what, f"{name}: {key} {seen[key]}, the program counted {counts[key]}")
        for process in said["calls"]:
            if not process["balanced"] or process["lost_enters"] or process["lost_exits"]:
                fail(what, f"process {process['pid']}: balanced {process['balanced']}, lost {process['lost_enters']} "
                     f"and {process['lost_exits']}")
        for name, seen in found.items():
            if name.startswith("traced_") and name not in expected and seen["entered"]:
                fail(what, f"{name}: entered {seen['entered']} times in the trace, the program counted none")

    def run(self, program, case, way):
        what = f"{os.path.basename(program)} {case}" + (" (-p)" if way == self.attached else "")
        before = len(failures)
        plain_status, plain_results = self.plain(program, case)
        status, account, trace = way(program, case)
        if status != plain_status:
            fail(what, f"exit status {status}, by itself {plain_status}")
        elif accounts_of(account)[1] != plain_results and case not in INEXACT:
            fail(what, f"results {accounts_of(account)[1]}, by itself {plain_results}")
        else:
            self.judge(what, account, trace)
        if len(failures) == before:
            print(f"ok: {what}")


    def killed_tracer(self, program, case):
        """The program goes on as if nothing had been."""
        what = f"{os.path.basename(program)} {case} (-p), its tracer killed"
        account, over = self.name("account.json"), self.name("over")
        environment = {**os.environ, "TRACE_ACCOUNT": account, "TRACE_WAIT": "1", "TRACE_OVER": over}
        with subprocess.Popen(self.command(program, case), env=environment) as process:
            with subprocess.Popen([self.options.qut, "trace", "-q", "-o", self.name("calls.qtrace"),
                                   *self.patterns(program, case), "-p", str(process.pid)]) as tracer:
                for _ in range(TIMEOUT_S * 100):
                    if os.path.exists(account) or process.poll() is not None or tracer.poll() is not None:
                        break
                    time.sleep(0.01)
                tracer.kill()
            with open(over, "w", encoding="utf-8"):
                pass
            status = process.wait(TIMEOUT_S)
        plain_status, plain_results = self.plain(program, case)
        if status != plain_status or accounts_of(account)[1] != plain_results:
            fail(what, f"exit status {status}, by itself {plain_status}; or other results")
        else:
            print(f"ok: {what}")

    def killed_program(self, program, case):
        """What it had written is in the trace, and that is whole."""
        what = f"{os.path.basename(program)} {case}, killed"
        account, trace = self.name("account.json"), self.name("calls.qtrace")
        environment = {**os.environ, "TRACE_ACCOUNT": account, "TRACE_OVER": self.name("never")}
        with subprocess.Popen([self.options.qut, "trace", "-q", "-o", trace, *self.patterns(program, case), "--",
                               "sh", "-c", 'echo $$ >"$TRACE_ACCOUNT.pid"; exec "$@"', "sh",
                               *self.command(program, case)], env=environment) as tracer:
            for _ in range(TIMEOUT_S * 20):
                if self.is_told(account, case) or tracer.poll() is not None:
                    break
                time.sleep(0.05)
            with open(account + ".pid", encoding="utf-8") as file:
                os.kill(int(file.read()), signal.SIGKILL)
            status = tracer.wait(TIMEOUT_S)
        if status != 128 + signal.SIGKILL:
            fail(what, f"exit status {status}")
        before = len(failures)
        self.judge(what, account, trace)
        if len(failures) == before:
            print(f"ok: {what}")

    def counted(self, program, case, *options, whole=(), none=()):
        """Of calls that make no events there is a count, as exact. All calls of functions of `whole` have events, and
        none of those of `none`."""
        what = f"{os.path.basename(program)} {case} {' '.join(options)}"
        account, trace = self.name("account.json"), self.name("calls.qtrace")
        subprocess.run([self.options.qut, "trace", "-q", "-o", trace, *options, *self.patterns(program, case), "--",
                        *self.command(program, case)], env={**os.environ, "TRACE_ACCOUNT": account}, timeout=TIMEOUT_S,
                       check=False)
        sums = {}
        for process in self.calls(trace)["calls"]:
            for function in process["functions"]:
                name = function["function"]
                sums[name] = sums.get(name, 0) + function["calls"] + function["counted"]
                if function["calls"] and ("--count-only" in options or name in none):
                    fail(what, f"{name}: {function['calls']} calls have events")
                if function["counted"] and name in whole:
                    fail(what, f"{name}: {function['counted']} calls have no events")
        expected = {name: counts["entered"] for name, counts in accounts_of(account)[0].items()}
        found = {name: count for name, count in sums.items() if count}
        if found != expected:
            fail(what, f"{found}, the program counted {expected}")
        else:
            print(f"ok: {what}")


def functions_of(processes):
    """Sums by name of what `qut info --calls --json` says of some processes."""
    sums = {}
    for process in processes:
        for function in process["functions"]:
            into = sums.setdefault(function["function"], dict.fromkeys(KINDS + ("entered",), 0))
            into["entered"] += function["calls"]
            into["returned"] += function["returned"]
            into["tail"] += function["tail_calls"]
            into["unwound"] += function["unwound"]
            into["open"] += function["open"]
    return sums


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("qut")
    parser.add_argument("subject")
    parser.add_argument("cxx")
    parser.add_argument("plugin")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    parser.add_argument("--attach", action="store_true")
    parser.add_argument("--wait", action="store_true")
    options = parser.parse_args()
    help_text = subprocess.run([options.qut, "info", "--help"], stdout=subprocess.PIPE, check=False).stdout
    if b"--calls" not in help_text:
        print("SKIP: qut info --calls is missing")
        return 77
    only = [name for name in options.only.split(",") if name]
    with tempfile.TemporaryDirectory(prefix="trace_calls.") as folder:
        test = Test(options, options.keep or folder)
        if options.keep:
            os.makedirs(options.keep, exist_ok=True)
        more = ["running"] if options.attach else []
        for program, cases in ((options.subject, C_CASES + more), (options.cxx, CXX_CASES)):
            for case in cases if program != "-" else []:
                if not only or case in only:
                    test.run(program, case, test.attached if options.attach else test.traced)
        if not only and not options.attach:
            test.counted(options.subject, "threads", "--count-only")
            test.counted(options.subject, "tails", "--count-only")
            test.counted(options.subject, "jumps", "--min-duration", "0.01")
            test.counted(options.subject, "switches", "--min-duration", "1000")
            # Of one function all, so also what is around it; of one function none.
            test.counted(options.subject, "jumps", "--min-duration", "3600000", "--min-duration", "traced_leaf=0",
                         whole=("traced_leaf", "traced_jump_outer"), none=("traced_jump_inner",))
            test.counted(options.subject, "jumps", "--min-duration", "traced_*=5", "--min-duration",
                         "*!traced_jump_*=0", "--min-duration", "*_inner=3600000",
                         whole=("traced_jump_outer",), none=("traced_jump_inner",))
            test.counted(options.subject, "jumps", "--caller", "traced_jump_outer", "--depth", "2")
        if options.attach and (not only or "killed" in only):
            test.killed_tracer(options.subject, "threads")
            test.killed_program(options.subject, "calls")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

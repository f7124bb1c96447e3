#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Children of fork: each one's calls are in the trace as it counted them itself, and at the end code and mappings of
those that live are as if nothing had been.

usage: families_test.py QUT FAMILIES [--children N] [--depth N]
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

TIMEOUT_S = 100
PATTERN = "traced_*"
failures = []


def fail(what, text):
    print(f"FAIL: {what}: {text}")
    failures.append(what)


def accounts_of(path):
    """By process: what it counted."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    except (OSError, ValueError):
        return {}
    return {line["pid"]: line for line in lines}


def processes_expected(options):
    """The parent, an orphan, and children of children."""
    return 2 + sum(options.children ** level for level in range(1, options.depth + 1))


def judge(options, what, account, trace, only=None):
    done = subprocess.run([options.qut, "info", "--calls", "--json", trace], stdout=subprocess.PIPE,
                          timeout=TIMEOUT_S, check=False)
    if done.returncode not in (0, 1):
        fail(what, f"qut info ended with {done.returncode}")
        return
    told = accounts_of(account)
    found = {process["pid"]: process for process in json.loads(done.stdout)["calls"]}
    expected = {pid: line for pid, line in told.items() if not only or line["case"] == only}
    if not only and len(told) != processes_expected(options):
        fail(what, f"{len(told)} processes have told of themselves")
    for pid, line in sorted(expected.items()):
        process = found.get(pid)
        if not process:
            fail(what, f"{line['case']} {pid} is not in the trace")
            continue
        if not process["balanced"] or process["lost_enters"] or process["lost_exits"]:
            fail(what, f"{line['case']} {pid}: balanced {process['balanced']}, lost {process['lost_enters']}")
        # The fork that made it was entered in its parent.
        if process["exits_alone"] != (line["case"] == "child"):
            fail(what, f"{line['case']} {pid}: {process['exits_alone']} exits without an entry")
        for name, counts in line["functions"].items():
            seen = next((function for function in process["functions"] if function["function"] == name), None)
            pair = (seen["calls"], seen["returned"]) if seen else (0, 0)
            if pair != (counts["entered"], counts["returned"]):
                fail(what, f"{line['case']} {pid}: {name}: {pair}, it counted {counts['entered']}, "
                     f"{counts['returned']}")
    for pid, process in found.items():
        if only and pid not in expected and process["enters"]:
            fail(what, f"{pid} has events, and was not to be traced")


def started(options, folder, *more):
    what = " ".join(("started",) + more)
    account, trace = os.path.join(folder, "started.json"), os.path.join(folder, "started.qtrace")
    if os.path.exists(account):
        os.remove(account)
    done = subprocess.run([options.qut, "trace", "-q", *more, "-o", trace, "-f", f"families*!{PATTERN}", "--",
                           options.families, str(options.children), str(options.depth)],
                          env={**os.environ, "TRACE_ACCOUNT": account}, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        fail(what, f"exit status {done.returncode}")
    judge(options, what, account, trace, "parent" if more else None)


def mappings_of(pid):
    """But for what the program's own calls let grow."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
            return {line for line in file.read().splitlines() if not line.endswith(("[heap]", "[stack]"))}
    except OSError:
        return {"has gone"}


def attached(options, folder, *more):
    what = " ".join(("attached",) + more)
    account, trace, over = (os.path.join(folder, name) for name in ("attached.json", "attached.qtrace", "over"))
    for path in (account, over):
        if os.path.exists(path):
            os.remove(path)
    environment = {**os.environ, "TRACE_ACCOUNT": account, "TRACE_WAIT": "1", "TRACE_OVER": over}
    with subprocess.Popen([options.families, str(options.children), str(options.depth)], env=environment) as process:
        time.sleep(0.3)
        before = mappings_of(process.pid)
        with subprocess.Popen([options.qut, "trace", "-q", *more, "-o", trace, "-f", f"families*!{PATTERN}", "-p",
                               str(process.pid)]) as tracer:
            for _ in range(TIMEOUT_S * 20):
                if len(accounts_of(account)) == processes_expected(options) or tracer.poll() is not None or \
                        process.poll() is not None:
                    break
                time.sleep(0.05)
            if tracer.poll() is None:
                tracer.send_signal(signal.SIGINT)
            status = tracer.wait(TIMEOUT_S)
        if status not in (0, 128 + signal.SIGINT):
            fail(what, f"qut trace ended with {status}")
        for pid, line in accounts_of(account).items():
            changed = sorted(mappings_of(pid) ^ before)
            if changed:
                fail(what, f"{line['case']} {pid}: mappings are others than before: {changed[0]} and "
                     f"{len(changed) - 1} more")
        with open(over, "w", encoding="utf-8"):
            pass
        if process.wait(TIMEOUT_S) != 0:
            fail(what, f"exit status {process.returncode}: code of some process was not put back")
    judge(options, what, account, trace, "parent" if more else None)


def forgotten(options, folder):
    """A child that tells nothing, whose parent has ended long before tracing does, and many others since."""
    what, many = "forgotten", 70
    over, told, trace, said = (os.path.join(folder, name) for name in ("stray.over", "stray", "stray.qtrace", "said"))
    command = f"{options.families} stray {told}; exec {options.families} many {many}"
    with open(said, "w", encoding="utf-8") as stderr:  # no pipe, which the child would keep open
        done = subprocess.run([options.qut, "trace", "-o", trace, "-f", f"families*!{PATTERN}", "--", "sh", "-c", command],
                              env={**os.environ, "TRACE_OVER": over}, timeout=TIMEOUT_S, check=False, stderr=stderr)
    with open(said, encoding="utf-8") as file:
        text = file.read()
    with open(over, "w", encoding="utf-8"):
        pass
    for _ in range(TIMEOUT_S * 10):
        if os.path.exists(told) and os.path.getsize(told):
            break
        time.sleep(0.05)
    with open(told, encoding="utf-8") as file:
        state = file.read().strip()
    if done.returncode != 0 or state != "restored" or "1 children of fork made no events" not in text:
        fail(what, f"exit status {done.returncode}, {state}: {text}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("qut")
    parser.add_argument("families")
    parser.add_argument("--children", type=int, default=2)
    parser.add_argument("--depth", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="families.") as folder:
        for way in (lambda: started(options, folder), lambda: attached(options, folder),
                    lambda: started(options, folder, "--no-children"), lambda: forgotten(options, folder)):
            before = len(failures)
            way()
            print("ok" if len(failures) == before else "NOT ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program with eight busy threads, always inside of traced functions, is attached to and left, again and again.

usage: detach_test.py QUT BUSY [--rounds N] [--seconds S] [--trace S]

Each time: all its functions are traced, and put back. Then
  - entered + lost entries = left + lost exits + return addresses that were put back, to the last one;
  - code is, byte for byte, what it was; so are threads, descriptors, and what is mapped;
  - the program's results are right, until its end.
The C library may keep arenas of threads that have ended, as many as it has for its own; of what else it keeps (stacks), the first
round may leave something, later ones leave nothing.
--seconds: until then, if that comes before the rounds are done.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

ARENA_BYTES = 64 << 20
LATE_S = 120
failures = []


def fail(text):
    print(f"FAIL: {text}", flush=True)
    failures.append(text)


def mappings(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        return file.read().splitlines()


def is_arena(line):
    """One half of what glibc's malloc maps for a thread: 64 MiB, the first part of which can be used."""
    span, rights, *_, last = line.split()
    start, end = (int(part, 16) for part in span.split("-"))
    return last == "0" and (start % ARENA_BYTES == 0 and rights == "rw-p" or end % ARENA_BYTES == 0 and rights == "---p")


def code(pid):
    """All that it may execute, by address."""
    found = {}
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in mappings(pid):
            span, rights, *_ = line.split()
            if "x" not in rights or "[v" in line:
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            memory.seek(start)
            found[start] = memory.read(end - start)
    return found


class Look:
    def __init__(self, pid):
        self.maps, self.code = [line for line in mappings(pid) if not is_arena(line)], code(pid)
        self.tasks, self.fds = len(os.listdir(f"/proc/{pid}/task")), os.listdir(f"/proc/{pid}/fd")

    def differs(self, before):
        if self.code != before.code:
            return "its code"
        if (self.tasks, self.fds) != (before.tasks, before.fds):
            return f"{before.tasks} threads, descriptors {before.fds}; now {self.tasks}, {self.fds}"
        gone = [line for line in before.maps if line not in self.maps]
        come = [line for line in self.maps if line not in before.maps]
        return f"what is mapped: gone {gone}, come {come}" if gone or come else ""


def number(pattern, text):
    found = re.search(pattern, text)
    return int(found.group(1).replace(",", "")) if found else 0


def await_late(pid):
    """The thread that takes the agent out waits for a processor, longer than qut waits for it: it comes to its end all the same."""
    for _ in range(LATE_S * 10):
        names = []
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                with open(f"/proc/{pid}/task/{task}/comm", encoding="utf-8") as file:
                    names.append(file.read().strip())
            except OSError:
                pass  # it has just ended
        if "qut-inject" not in names:
            return
        time.sleep(0.1)
    fail(f"the agent was not taken out in {LATE_S} s more")


def attach(options, pid, trace):
    """What was entered, and what of it was lost; and whether the agent went."""
    done = subprocess.run([options.qut, "trace", "-o", trace, "-f", "*busy*!traced_*", "--duration", str(options.trace),
                           "-p", str(pid)], stderr=subprocess.PIPE, text=True, check=False)
    said = done.stderr
    if "cannot be changed meanwhile" in said:
        print("SKIP: a machine so busy that threads do not come to stand still", flush=True)
        sys.exit(77)
    is_late = "it is left there" in said
    if is_late:
        print("# a machine so busy that the agent was taken out late", flush=True)
        await_late(pid)
    if done.returncode != (1 if "were lost" in said or is_late else 0):
        fail(f"qut trace: status {done.returncode}: {said}")
        return 0, 0, 0
    # What qut found in its rings, and what the file says: the same.
    entered, left = number(r"([\d,]+) entries, ", said), number(r" entries, ([\d,]+) exits of", said)
    lost_entries, lost_exits = number(r"([\d,]+) entries and", said), number(r"and ([\d,]+) exits were lost", said)
    put_back = number(r"([\d,]+) return addresses", said)
    running = number(r"([\d,]+) calls ran already", said)
    info = subprocess.run([options.qut, "info", "--calls", "--json", trace], stdout=subprocess.PIPE, check=False)
    calls = json.loads(info.stdout)["calls"]
    sums = {key: sum(process[key] for process in calls) for key in ("enters", "exits", "lost_enters", "lost_exits", "tail_calls")}
    if (sums["lost_enters"], sums["lost_exits"]) != (lost_entries, lost_exits) or sums["exits"] != left:
        fail(f"the file says {sums}, qut trace {said}")
    if sums["enters"] not in (entered, entered + running):
        fail(f"the file has {sums['enters']} entries, qut trace says {entered}, and {running} that ran before")
    if sums["enters"] + lost_entries != left + lost_exits + put_back:
        fail(f"{sums['enters']} entries + {lost_entries} lost, but {left} exits + {lost_exits} lost + {put_back} put back")
    if not all(process["balanced"] for process in calls):
        fail(f"not balanced: {said}")
    return sums["enters"] + lost_entries, lost_entries, put_back


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("qut")
    parser.add_argument("busy")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--trace", type=float, default=0.2)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    entered = lost = rounds = put_back = 0
    with tempfile.TemporaryDirectory(prefix="trace_storms.") as folder, \
            subprocess.Popen([options.busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()  # it ends with its standard input
        before = Look(process.pid)
        while rounds < options.rounds and time.monotonic() < end and not failures and process.poll() is None:
            more, more_lost, more_back = attach(options, process.pid, os.path.join(folder, "out.qtrace"))
            entered, lost, put_back, rounds = entered + more, lost + more_lost, put_back + more_back, rounds + 1
            if failures or process.poll() is not None:
                break
            now = Look(process.pid)
            if rounds == 1 and before.code == now.code:
                before.maps = now.maps
            differs = now.differs(before)
            if differs:
                fail(f"round {rounds}: {differs}")
        said = process.communicate()[0].strip()
        if process.returncode != 0:
            fail(f"the program ended with {process.returncode}: {said}")
    # On a machine that is too busy a thread may not get into a call while it is traced; not each time.
    if rounds >= 10 and not put_back:
        fail("nobody was inside, ever")
    print(f"left {rounds} times: {entered} entries, {lost} of them lost, {put_back} calls that were put back; the program: {said}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

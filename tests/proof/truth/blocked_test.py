#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A call that waits for 2 s is 2 s of that call on that thread, with its stack at both edges; and no call is cut short by
us, in any mode. Usage: blocked_test.py QUT DUMP CALLS [TIMES]"""
import subprocess
import sys
import time

from truth import BEGINS, World, balanced, check, finish, note

KIND = {"nanosleep": "sleep", "poll": "poll", "epoll_wait": "poll", "sem_timedwait": "wait", "cond_timedwait": "wait",
        "recv": "read", "accept": "read", "read": "read", "wait4": "wait"}
qut, dump, calls = sys.argv[1:4]
times = int(sys.argv[4]) if len(sys.argv) > 4 else 60
NEAR_NS = 5_000_000
PAUSE_MS = 6


def lines(said):
    return [(name, *map(int, rest)) for name, *rest in (line.split() for line in said.splitlines())]


def census(mode, said):
    """Nobody saw EINTR, a short wait, a wrong result, another mask."""
    rows = lines(said)
    calls_made = times * (len(rows) - 1) + 1
    bad = [row for row in rows if any(row[3:])]
    check(f"{mode}: {calls_made} calls, none cut short", len(rows) == len(KIND) and not bad, bad or said)


with World(qut, dump) as world:
    # Between the program's clock and ours the machine may take the processor away: the least of three is told.
    off_ns = {}
    for attempt in range(3):
        said = world.record("long", ["-F", "100", "--sync", "all", "--sync-interval", "0"], [calls, "2000", "1"])
        balanced("long", world.info("long"))
        samples, intervals, stacks, whole = world.rows("long")
        for name, tid, took_ns, eintr, short, wrong, mask in lines(said):
            found = [i for i in intervals if i.tid == tid and i.to_ns - i.from_ns > 1_000_000_000]
            kinds = [(i.kind, i.to_ns - i.from_ns) for i in found]
            if not check(f"long {name}: one interval of {KIND[name]}", [k for k, _ in kinds] == [KIND[name]], kinds):
                continue
            off = found[0].to_ns - found[0].from_ns - took_ns
            off_ns[name] = min(off, off_ns.get(name, off), key=abs)
            for edge, node in (("beginning", found[0].begin_node), ("end", found[0].node)):
                stack = stacks.get(node, [])
                check(f"long {name}: its stack at its {edge}", node in whole and f"do_{name}" in stack[:4] and "run" in stack,
                      stack)
            check(f"long {name}: its beginning is a sample", any(
                s.tid == tid and s.flags & BEGINS and s.node == found[0].begin_node for s in samples))
            check(f"long {name}: nothing else", eintr == short == wrong == mask == 0)
        if len(off_ns) == len(KIND) and max(map(abs, off_ns.values())) <= NEAR_NS:
            break
    for name in KIND:
        off = off_ns.get(name, float("inf"))
        check(f"long {name}: its length, off by {off / 1e6:.3f} ms", abs(off) <= NEAR_NS)

    census("alone", subprocess.run([calls, str(PAUSE_MS), str(times)], stdout=subprocess.PIPE, text=True).stdout)
    for mode, options in (("cpu", ["--sync", "all"]), ("wall", ["--wall", "--sync", "all"]), ("wall-only", ["--wall",
                          "--sync", "none"]), ("no-ticks", ["--no-ticks", "--sync", "all", "--sync-interval", "0"])):
        census(mode, world.record(mode, ["-F", "1000"] + options, [calls, str(PAUSE_MS), str(times)]))
        info = world.info(mode)
        balanced(mode, info)
        check(f"{mode}: the agent saw none", note(info, "eintr-seen") == 0)
    for mode, options in (("outside", []), ("outside-wall", ["--wall"]), ("inside", ["--inject"])):
        subject = world.start([calls, str(PAUSE_MS), str(times)], stdout=subprocess.PIPE, text=True)
        time.sleep(0.05)
        world.record(mode, ["-F", "1000", "--duration", "0.8", "-p", str(subject.pid)] + options, [])
        said = subject.communicate(timeout=60)[0]
        check(f"{mode}: it ended as it should", subject.returncode == 0)
        census(mode, said)
        balanced(mode, world.info(mode))
finish()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Allocations, their bytes and frees are exact, with threads and in children, stored or not. What a process needs to run
at all is what one without rounds has. Usage: allocations_test.py QUT DUMP ALLOCATE [ROUNDS]"""
import sys

from truth import World, balanced, check, finish

qut, dump, allocate = sys.argv[1:4]
rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3000
CHILDREN = 3


def recorded(world, name, count, options):
    """By process, in the order in which they began: what it said, what the trace says."""
    said = world.record(name, options + ["--sync", "alloc"], [allocate, str(count), str(CHILDREN)])
    info = world.info(name)
    balanced(name, info)
    world.rows(name)
    result = []
    for line in said.splitlines():
        pid, *wanted = map(int, line.split())
        result.append((wanted, [sum(totals[i] for totals in world.totals[pid]) for i in range(3)]))
    check(f"{name}: all processes are there", len(result) == CHILDREN + 1 == len(info["processes"]))
    return result


with World(qut, dump) as world:
    for name, options in (("throttled", []), ("stored", ["--sync-interval", "0", "--no-ticks"]),
                          ("small", ["--sync-interval", "0", "--keep-newest", "--buffer", "1M"]),
                          ("ticking", ["-F", "5000", "--faults", "10"])):
        idle = recorded(world, f"{name}-idle", 0, options)
        busy = recorded(world, name, rounds if name == "throttled" else rounds // 4, options)
        for index, ((wanted, told), (_, base)) in enumerate(zip(busy, idle)):
            grown = [a - b for a, b in zip(told, base)]
            check(f"{name}: process {index}: {wanted} allocations, bytes, frees", grown == wanted and wanted[0] > 0,
                  f"told {told}, without rounds {base}: {grown}")
finish()

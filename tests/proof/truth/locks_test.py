#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Who waits for whom, and who let whom go: as the program wrote it down. Usage: locks_test.py QUT DUMP LOCKS [HANDOVERS]"""
import collections
import subprocess
import sys

from truth import World, balanced, check, finish

KINDS = {"mutex": "lock", "semaphore": "wait", "condition": "wait"}
qut, dump, locks = sys.argv[1:4]
objects = [(words[2], int(words[0], 16)) for words in map(str.split, subprocess.run(
    ["nm", locks], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines())
    if len(words) == 3 and words[1] in "bBdD"]
handovers = int(sys.argv[4]) if len(sys.argv) > 4 else 1000

with World(qut, dump) as world:
    world.record("trace", ["--sync", "lock,thread", "--sync-interval", "0", "--blocked-least", "0"],
                 [locks, world.path("truth"), str(handovers)], timeout=100)
    info = world.info("trace", "--locks", "--top", "100000")
    balanced("trace", info)
    _, intervals, stacks, whole = world.rows("trace")
    graph, handed = [], collections.defaultdict(lambda: collections.defaultdict(list))
    with open(world.path("truth")) as file:
        for line in file:
            words = line.split()
            if words[0] == "graph":
                graph.append((words[1], *map(int, words[2:])))
            else:
                handed[words[0]][int(words[1])].append(int(words[2]))

    for what, waiter, holder, waker, lock in graph:
        found = [i for i in intervals if i.tid == waiter and i.lock == lock and i.to_ns - i.from_ns > 10_000_000]
        told = [(i.owner, i.waker, i.release_tid) for i in found]
        check(f"{what}: {waiter} waited for {lock:#x}, held by {holder}, let go by {waker}",
              len(found) == 1 and found[0].owner == holder and found[0].waker == waker == found[0].release_tid, told)
        row = [r for r in info["locks"] if r["lock"] == lock and f"({waiter})" in r["waiter"]]
        check(f"{what}: qut info says so", len(row) >= 1 and any(
            (f"({holder})" in r["owner"] if holder else r["owner"] == "") and f"({waker})" in r["waker"] for r in row), row)
        # A page's offset is the same in the file.
        named = {name for name, address in objects if address % 4096 == lock % 4096}
        check(f"{what}: the lock has its name", bool(row) and all(r["lock_name"] in named for r in row), (named, row))
        if found:
            names = [stacks.get(n, []) for n in (found[0].begin_node, found[0].node, found[0].release_node)]
            check(f"{what}: all three stacks are whole", all(
                n in whole for n in (found[0].begin_node, found[0].node, found[0].release_node)), names)

    for mechanism, by_waiter in handed.items():
        right = wrong = untold = missing = 0
        for tid, wakers in by_waiter.items():
            told = [i for i in intervals if i.tid == tid and i.kind == KINDS[mechanism] and i.lock]
            missing += max(0, len(wakers) - len(told))
            for waker, interval in zip(wakers, told):
                right += interval.waker == waker == interval.release_tid
                untold += interval.waker == 0
                wrong += interval.waker not in (0, waker)
        all_ = sum(map(len, by_waiter.values()))
        check(f"{mechanism}: {right} of {all_} hand-overs are right", right == all_ >= handovers,
              f"{wrong} wrong, {untold} untold, {missing} intervals missing")
finish()

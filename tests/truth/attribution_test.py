#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Known shares of processor time come back within the sampling error, in every mode; ticks arrive, stacks are whole.
Usage: attribution_test.py QUT DUMP SHARES [MS]"""
import math
import os
import struct
import subprocess
import sys

from truth import BEGINS, World, balanced, check, finish, note, wait_for

PARTS = ["part_alpha", "part_beta", "part_gamma", "part_deep", "library_part"]
THREADS = 3
qut, dump, shares = sys.argv[1:4]
ms = int(sys.argv[4]) if len(sys.argv) > 4 else 800


def truth(path):
    with open(path, "rb") as file:
        return struct.unpack("<7Q", file.read(56))


def judge(world, name, before, after):
    spent = [b - a for a, b in zip(before, after)]
    info = world.info(name, "--top", "100000")
    if not balanced(name, info):
        return 0, 0
    samples, _, stacks, whole = world.rows(name)
    ticks = [sample for sample in samples if sample.kind in ("cpu", "wall") and not sample.flags & BEGINS]
    n = sum(sample.count for sample in ticks)
    complete = sum(sample.count for sample in ticks if sample.node in whole)
    check(f"{name}: {complete} of {n} samples reach the root", n > ms / 12 and complete >= 0.995 * n,
          {";".join(stacks[sample.node]) for sample in ticks if sample.node not in whole})
    # Shares of what the threads spend in their work, not in waiting for each other. `qut info` by weight; samples by
    # number.
    working = [sample for sample in ticks if "work" in stacks[sample.node]]
    n = sum(sample.count for sample in working)
    if not check(f"{name}: {n} samples of the work", n > 0, {"losses": info["losses"], "processes": info["processes"]}):
        return 0, 0
    shown = {row["function"]: row["total"] for row in info["top"]}
    for index, part in enumerate(PARTS):
        p = spent[index] / spent[5]
        sigma = math.sqrt(p * (1 - p) / n)
        found = sum(sample.count for sample in working if part in stacks[sample.node]) / n
        for what, share in (("samples", found), ("qut info", shown.get(part, 0) / shown["work"])):
            off = (share - p) / sigma
            check(f"{name}: {part} {100 * p:.2f} %, by {what} {100 * share:.2f} %: {off:+.1f} sigma", abs(off) <= 4)
    deep = [stacks[sample.node].count("part_deep") for sample in ticks if "part_deep" in stacks[sample.node]]
    at_the_bottom = sum(depth == 101 for depth in deep)
    check(f"{name}: {at_the_bottom} of {len(deep)} deep stacks have all their frames", at_the_bottom >= 0.98 * len(deep))
    due, taken = note(info, "ticks-due"), note(info, "ticks-taken")
    if due:
        late, kernel, lost = (note(info, f"ticks-{key}") for key in ("late", "kernel", "lost"))
        print(f"    {name}: {due} ticks due, {taken} taken, {late} late, {kernel} in the kernel, {lost} lost: "
              f"{100 * taken / due:.2f} %")
    return due, taken


with World(qut, dump) as world:
    nothing = (0,) * 7
    for mode, options in (("cpu", ["-F", "1000"]), ("wall", ["-F", "1000", "--wall"])):
        said = world.record(mode, options, [shares, world.path("truth"), str(THREADS), str(ms)])
        check(f"{mode}: the right result", said.startswith("done "), said)
        judge(world, mode, nothing, truth(world.path("truth")))
    for mode, options in (("outside", []), ("inside", ["--inject"])):
        place = world.path(f"truth.{mode}")
        subject = world.start([shares, place, str(THREADS), "100000"], stdout=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(place) and os.path.getsize(place) == 56 and truth(place)[6] > 50)
        before = truth(place)
        world.record(mode, options + ["-F", "1000", "--duration", str(ms / 400), "-p", str(subject.pid)], [])
        judge(world, mode, before, truth(place))
        subject.kill()
        subject.wait()
    # One thread that only spins: nothing is in its way.
    world.record("spinning", ["-F", "1000"], [shares, world.path("truth"), "1", str(ms)])
    due, taken = judge(world, "spinning", nothing, truth(world.path("truth")))
    # In the kernel, which interrupts bring it to, there are none.
    kernel = note(world.info("spinning"), "ticks-kernel")
    check("spinning: 99 % of the ticks that were due arrived",
          taken > 0 and taken >= 0.99 * (due - kernel) and taken >= 0.95 * due,
          f"{taken} of {due}, {kernel} in the kernel")
finish()

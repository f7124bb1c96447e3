#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Known shares of processor time come back within the sampling error, in every mode; ticks arrive, stacks are whole.
Usage: attribution_test.py QUT DUMP SHARES BARE_TICKS [MS]"""
import math
import os
import struct
import subprocess
import sys
import threading
import time

from truth import BEGINS, World, balanced, check, finish, note, wait_for

PARTS = ["part_alpha", "part_beta", "part_gamma", "part_deep", "library_part"]
THREADS = 3
qut, dump, shares, bare_ticks = sys.argv[1:5]
ms = int(sys.argv[5]) if len(sys.argv) > 5 else 800


def truth(path):
    with open(path, "rb") as file:
        return struct.unpack("<7Q", file.read(56))


class Witness(threading.Thread):
    """Looks at the truth all the time: what lies before the first sample and behind the last is not what was sampled,
    and on a busy machine that is much."""

    def __init__(self, path):
        super().__init__()
        self.path, self.seen, self.is_over = path, [], threading.Event()
        self.look()

    def look(self):
        self.seen.append((time.monotonic_ns(), truth(self.path)))

    def run(self):
        while not self.is_over.wait(0.005):
            self.look()
        self.look()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join()

    def between(self, first_ns, last_ns):
        before = max((seen for seen in self.seen if seen[0] <= first_ns), default=self.seen[0])[1]
        after = min((seen for seen in self.seen if seen[0] >= last_ns), default=self.seen[-1])[1]
        return [b - a for a, b in zip(before, after)]


def judge(world, name, spent_between):
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
    spent = spent_between(min(sample.first_ns for sample in working), max(sample.last_ns for sample in working))
    # The more ticks come late, the more unequal they weigh, and the fewer they are worth: as many equal ones.
    squares = sum(sample.cpu_ns ** 2 / sample.count for sample in working)
    worth = sum(sample.cpu_ns for sample in working) ** 2 / squares if squares else 0
    check(f"{name}: by weight worth {worth:.0f}", worth >= n / 10)
    shown = {row["function"]: row["total"] for row in info["top"]}
    for index, part in enumerate(PARTS):
        p = spent[index] / spent[5]
        found = sum(sample.count for sample in working if part in stacks[sample.node]) / n
        for what, share, count in (("samples", found, n), ("qut info", shown.get(part, 0) / shown["work"], worth)):
            sigma = math.sqrt(p * (1 - p) / max(count, 1))
            # The truth counts turns of loops. Sampling takes longer where stacks are deep: its time is that part's, too.
            check(f"{name}: {part} {100 * p:.2f} %, by {what} {100 * share:.2f} %: {(share - p) / sigma:+.1f} sigma, and "
                  f"{100 * info['top_own_share']:.2f} % of our own", abs(share - p) <= 4 * sigma + info["top_own_share"])
    deep = [stacks[sample.node].count("part_deep") for sample in ticks if "part_deep" in stacks[sample.node]]
    at_the_bottom = sum(depth == 101 for depth in deep)
    check(f"{name}: {at_the_bottom} of {len(deep)} deep stacks have all their frames", at_the_bottom >= 0.98 * len(deep) - 2)
    due, taken = note(info, "ticks-due"), note(info, "ticks-taken")
    if due:
        late, kernel, lost = (note(info, f"ticks-{key}") for key in ("late", "kernel", "lost"))
        print(f"    {name}: {due} ticks due, {taken} taken, {late} late, {kernel} in the kernel, {lost} lost: "
              f"{100 * taken / due:.2f} %")
    return due, taken


with World(qut, dump) as world:
    def all_of_it(*_):
        return truth(world.path("truth"))

    for mode, options in (("cpu", ["-F", "1000"]), ("wall", ["-F", "1000", "--wall"])):
        said = world.record(mode, options, [shares, world.path("truth"), str(THREADS), str(ms)])
        check(f"{mode}: the right result", said.startswith("done "), said)
        judge(world, mode, all_of_it)
    for mode, options in (("outside", []), ("inside", ["--inject"])):
        place = world.path(f"truth.{mode}")
        subject = world.start([shares, place, str(THREADS), "100000"], stdout=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(place) and os.path.getsize(place) == 56 and truth(place)[6] > 50)
        with Witness(place) as witness:
            world.record(mode, options + ["-F", "1000", "--duration", str(ms / 400), "-p", str(subject.pid)], [])
        judge(world, mode, witness.between)
        subject.kill()
        subject.wait()
    # One thread that only spins: nothing is in its way. Where a machine is busy, ticks come late in some runs, or in
    # most; where we are in the way, they do in all. Those in the kernel, which interrupts bring it to, are no ticks here.
    # A virtual machine whose host takes its processors away loses ticks without us: a program that only counts says
    # how many, in turn with ours.
    best, best_bare, told = 0, 0, []
    for run in range(8):
        world.record(f"spinning{run}", ["-F", "1000"], [shares, world.path("truth"), "1", str(ms)])
        due, taken = judge(world, f"spinning{run}", all_of_it)
        kernel = note(world.info(f"spinning{run}"), "ticks-kernel")
        told.append(f"{taken} of {due}, {kernel} in the kernel")
        if taken and taken >= 0.95 * due:
            best = max(best, taken / (due - kernel))
        if best >= 0.99:
            break
        bare = subprocess.run([bare_ticks, "1000", str(ms)], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        bare_taken, bare_due = map(int, bare.split(" of "))
        best_bare = max(best_bare, bare_taken / bare_due)
        told.append(f"bare: {bare}")
    can_arrive = min(best_bare, 1) if best_bare else 1
    check("spinning: 99 % of the ticks that can arrive here did", best >= 0.99 * can_arrive, told)
finish()

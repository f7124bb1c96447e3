#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Threads too short for a tick: their time is nobody else's, and all there. Usage: short_test.py QUT DUMP SHORT [COUNT]"""
import sys

from truth import World, balanced, check, finish

qut, dump, short = sys.argv[1:4]
count = int(sys.argv[4]) if len(sys.argv) > 4 else 100
UNTOLD = "[met by no tick]"
# Of 0.7 ms each: a thread's first tick comes after 10 ms, or after one. Of 3 ms: between the two.
CASES = [("100", 3000), ("100", 700), ("1000", 700), ("1000", 3000)]
begin_ns = 0 # what the agent does as these threads begin, by what the longer ones lack

with World(qut, dump) as world:
    for rate, us in CASES:
        name = f"{us} us at {rate} Hz"
        said = world.record(name, ["-F", rate], ["--", short, str(count), str(us)])
        info = world.info(name, "--top", "1000")
        if not balanced(name, info):
            continue
        used_ns, rows = int(said), {row["function"]: row for row in info["top"]}
        sum_ns = sum(row["self"] for row in info["top"])
        untold = rows[UNTOLD]["self_share"] if UNTOLD in rows else 0
        known = {UNTOLD, "compute_shortly", "own_ns", "run"}
        others = [row for row in info["top"] if row["function"] not in known and row["self_share"] > 0
                  and "clock_gettime" not in row["function"] and not row["function"].startswith("[kernel]")]
        # Beginning and ending a thread takes some microseconds of each.
        wrong, error = sum(row["self_share"] for row in others), sum(row["self_error"] for row in others)
        check(f"{name}: {wrong:.3f} where threads begin and end", wrong <= 0.15 + error, others[:5])
        # All of it is there, but what the agent does as a thread begins (0.1 ms, or 0.3 where system calls are slow), and
        # what a thread that was met used behind its last tick: 1 ms, or 4 of a timer.
        least_ns = {"100": min(0.75 * used_ns, used_ns - 1.5 * begin_ns), "1000": 0.3 * used_ns}[rate]
        check(f"{name}: {sum_ns} of {used_ns} ns", sum_ns >= least_ns, info["top"][:5])
        begin_ns = begin_ns or max(used_ns - sum_ns, 1)
        if rate == "100":
            quality = info["quality"]
            check(f"{name}: {untold:.3f} is said to be untold", untold >= 0.5 and quality["unticked"] >= 0.5
                  and not quality["good"] and any("that no tick met" in line for line in quality["advice"]), quality)
finish()

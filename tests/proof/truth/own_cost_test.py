#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent takes inside the program is said, and is in no share of the program's. Usage: own_cost_test.py QUT DUMP
ALLOCATE"""
import json
import sys

from truth import World, check, finish

qut, dump, allocate = sys.argv[1:4]
AGENT = "libqut-agent.so"
ROUNDS = 40000


def rows_of_agent(top):
    return [row for row in top["top"] if row["module"].endswith(AGENT)]


with World(qut, dump) as world:
    told = world.path("told.json")
    world.record("allocating", ["-F", "2000", "--sync", "alloc", "--json", told], [allocate, str(ROUNDS), "0"])
    with open(told, encoding="utf-8") as file:
        summary = json.load(file)
    cut = world.info("allocating", "--top", "1000")
    shown = world.info("allocating", "--top", "1000", "--show-agent")
    own = cut["top_own"]
    check("some of it is told", own > 0 and summary["own_inside_ns"] == own == shown["top_own"], f"{own}, {summary}")
    check("its share, with an error", 0 < summary["own_inside_error"] < 0.2 and
          abs(summary["own_inside_share"] - own / (cut["top_sum"] + own)) < 1e-5, str(summary))
    check("none of the agent's functions has a share of its own", not any(row["self"] for row in rows_of_agent(cut)),
          str(rows_of_agent(cut)))
    check("--show-agent has them", 0 < sum(row["self"] for row in rows_of_agent(shown)) <= own, str(rows_of_agent(shown)))
    check("and the sum is all there is", shown["top_sum"] == cut["top_sum"] + own, f"{shown['top_sum']}")
    check("shares are of the rest", abs(sum(row["self_share"] for row in cut["top"]) - 1) < 0.001)
finish()

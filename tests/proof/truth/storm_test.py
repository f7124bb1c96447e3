#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Everything at once, with all of the agent on: results are right, accounts are exact.
Usage: storm_test.py QUT DUMP STORM LIBRARY [SECONDS]"""
import os
import sys

from truth import World, balanced, check, finish

qut, dump, storm, library = sys.argv[1:5]
seconds = int(sys.argv[5]) if len(sys.argv) > 5 else 3
ALL = ["--sync", "all", "-F", "1000", "--faults", "100"]

with World(qut, dump) as world:
    for name, options in (("all", ALL), ("every sample", ALL + ["--sync-interval", "0", "--keep-newest"]),
                          ("wall", ALL + ["--wall"])):
        said = world.record(name, options, [storm, str(seconds), os.path.abspath(library)], timeout=4 * seconds + 60)
        info = world.info(name)
        if balanced(name, info):
            to_root = [p["present_samples"] for p in info["processes"]]
            print(f"    {name}: {said.strip()}; {len(to_root)} processes, {len(info['threads'])} threads, "
                  f"{info['present_samples']} samples; lost {info['lost']}; {info['losses']}")
            check(f"{name}: samples", info["present_samples"] > 100)
finish()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""More ticks asked for are never fewer samples, and the rate that is said is the rate that was reached: for threads that
compute, that wait now and then, that are in the kernel.
Usage: rates_test.py QUT DUMP KERNEL [MS]"""
import json
import subprocess
import sys

from truth import World, check, finish

qut, dump, kernel = sys.argv[1:4]
ms = int(sys.argv[4]) if len(sys.argv) > 4 else 300
RATES = [100, 1000, 5000, 20000] if len(sys.argv) <= 4 else [10, 50, 100, 249, 251, 500, 1000, 2000, 5000, 10000, 20000]

with World(qut, dump) as world:
    for work in ("naps", "write"):
        before = 0
        for rate in RATES:
            name = f"{work}-{rate}"
            run = subprocess.run([qut, "record", "-q", "-F", str(rate), "--json", world.path("json"), "-o", world.path(name),
                                  "--", kernel, work, str(ms), world.folder], input="1\n", capture_output=True, text=True,
                                 timeout=300)
            if not check(f"{name}: recorded", run.returncode in (0, 1), run.stderr):
                continue
            with open(world.path("json")) as file:
                said = json.load(file)
            samples, ticks, reached = said["samples"], said["ticks"], said["rate"]["reached_hz"]
            # A tick more or less where a thread begins and ends; and what the kernel takes is not the same each time.
            check(f"{name}: {samples} samples, {before} at the rate before", samples >= 0.9 * before - 3, ticks)
            seconds = said["command_cpu_ns"] / 1e9
            # From start-up the program's processor time has some ticks less.
            check(f"{name}: {ticks['taken'] + ticks['kernel']} of {reached:.0f} a second in {seconds:.2f} s",
                  ticks["taken"] + ticks["kernel"] >= 0.97 * reached * (seconds - 0.03) - 3, ticks)
            check(f"{name}: as asked for, or less", reached <= 1.03 * rate, said["rate"])
            if work == "naps" and rate <= 5000:
                check(f"{name}: reached", reached >= 0.9 * rate, said["rate"])
            before = max(before, samples)
finish()

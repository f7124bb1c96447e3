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

# Up to that many a second threads tick by the kernel's own tick, if the kernel has one so often; one that shares its
# processor is met by chance then (docs/sampling.md).
BY_CHANCE_HZ, TRIES = 250, 5


def record(world, name, work, rate):
    """What the recording says; None: there is none."""
    run = subprocess.run([qut, "record", "-q", "-F", str(rate), "--json", world.path("json"), "-o", world.path(name),
                          "--", kernel, work, str(ms), world.folder], input="1\n", capture_output=True, text=True,
                         timeout=300)
    if not check(f"{name}: recorded", run.returncode in (0, 1), run.stderr):
        return None
    with open(world.path("json")) as file:
        return json.load(file)


def had_to_share(said):
    return said["elapsed_ns"] > 2 * said["command_cpu_ns"]


def check_reached(world, name, rate, said):
    """Where it is by chance, of some runs, one that had its processor for itself; if none had, what was not taken came together with others."""
    for _ in range(TRIES):
        if not said or rate > BY_CHANCE_HZ or said["rate"]["reached_hz"] >= 0.9 * rate or not had_to_share(said):
            break
        said = record(world, name, work, rate)
    if not said:
        return
    ticks, reached = said["ticks"], said["rate"]["reached_hz"]
    if rate <= BY_CHANCE_HZ and reached < 0.9 * rate and had_to_share(said):
        check(f"{name}: {reached:.0f} a second, by chance; the others came with those", ticks["taken"] > 0 and ticks["lost"] <= 1 and
              ticks["taken"] + ticks["late"] + ticks["kernel"] + ticks["lost"] == ticks["due"], ticks)
    else:
        check(f"{name}: reached", reached >= 0.9 * rate, said["rate"])


with World(qut, dump) as world:
    for work in ("naps", "write"):
        before = 0
        for rate in RATES:
            name = f"{work}-{rate}"
            said = record(world, name, work, rate)
            if not said:
                continue
            samples, ticks, reached = said["samples"], said["ticks"], said["rate"]["reached_hz"]
            # A tick more or less where a thread begins and ends; and what the kernel takes is not the same each time.
            check(f"{name}: {samples} samples, {before} at the rate before", samples >= 0.9 * before - 3, ticks)
            seconds = said["command_cpu_ns"] / 1e9
            # From start-up the program's processor time has some ticks less.
            check(f"{name}: {ticks['taken'] + ticks['kernel']} of {reached:.0f} a second in {seconds:.2f} s",
                  ticks["taken"] + ticks["kernel"] >= 0.97 * reached * (seconds - 0.03) - 3, ticks)
            check(f"{name}: as asked for, or less", reached <= 1.03 * rate, said["rate"])
            if work == "naps" and rate <= 5000:
                check_reached(world, name, rate, said)
            before = max(before, samples)
finish()

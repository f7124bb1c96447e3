#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the kernel does for a program is the kernel's, in every mode: within the error that is shown, and two points, of how the
kernel itself splits the program's time; and it is charged to the call that was made.
Usage: kernel_test.py QUT DUMP KERNEL [MS]"""
import subprocess
import sys
import time

from truth import World, balanced, check, finish, state, wait_for

qut, dump, kernel = sys.argv[1:4]
ms = int(sys.argv[4]) if len(sys.argv) > 4 else 800
# The call that most of the kernel's time goes to. All in the long form.
CALLS = {"write": "[kernel] pwrite64", "faults": "[kernel] page fault"}
if len(sys.argv) > 4:
    CALLS.update({"read": "[kernel] read", "fsync": "[kernel] fsync", "pingpong": None})
MODES = {"command": [], "outside": ["-p"], "inside": ["--inject", "-p"]}
POINTS = 0.02
KERNEL_TICK_NS = time.clock_getres(6) * 1e9  # CLOCK_MONOTONIC_COARSE


def run(world, name, mode, work):
    """What the program says, or None."""
    command = [kernel, work, str(ms), world.folder]
    record = [qut, "record", "-q", "-F", "1000", "-o", world.path(name)]
    if mode == "command":
        return subprocess.run(record + ["--"] + command, input="\n", stdout=subprocess.PIPE, text=True, timeout=600).stdout
    process = world.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    recorder = world.start(record + MODES[mode] + [str(process.pid)], stderr=subprocess.PIPE, text=True)
    if not wait_for(lambda: state(process.pid) == "S"):
        return None
    time.sleep(1)  # it looks at the process's files first; and the program waits for its line
    said = process.communicate("\n", timeout=600)[0]
    text = recorder.communicate(timeout=60)[1]
    check(f"{name}: recorded", recorder.returncode in (0, 1), text)
    return said


def judge(world, name, work, said):
    info = world.info(name, "--top", "1000")
    words = (said or "").split()
    if not balanced(name, info) or not check(f"{name}: the program ended", len(words) == 2, said):
        return
    user_ns, kernel_ns = map(int, words)
    truth = kernel_ns / (user_ns + kernel_ns)
    rows = [row for row in info["top"] if row["function"].startswith("[kernel]")]
    share = sum(row["self_share"] for row in rows)
    error = sum(row["self_error"] ** 2 for row in rows) ** 0.5
    # The kernel splits a program's time by what its own ticks met: it errs by chance, too.
    ticks = max(1, (user_ns + kernel_ns) / KERNEL_TICK_NS)
    truth_error = 1.96 * (truth * (1 - truth) / ticks) ** 0.5
    check(f"{name}: {share:.3f} in the kernel (+- {error:.3f}), which says {truth:.3f} (+- {truth_error:.3f}) itself",
          abs(share - truth) <= POINTS + 1.5 * (error ** 2 + truth_error ** 2) ** 0.5, info["top"][:8])
    if CALLS[work]:
        own = sum(row["self_share"] for row in rows if row["function"] == CALLS[work])
        # On a busy machine interrupts take more than the program's own calls.
        known = share - sum(row["self_share"] for row in rows if row["function"] == "[kernel]")
        check(f"{name}: {own:.3f} of {known:.3f} {CALLS[work]}", own >= 0.5 * known, rows)


with World(qut, dump) as world:
    for work in CALLS:
        for mode in MODES:
            name = f"{work} {mode}"
            judge(world, name, work, run(world, name, mode, work))
finish()

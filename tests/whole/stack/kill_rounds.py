#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ends `qut stack` at moments nobody chose and looks at its subject. Usage: kill_rounds.py QUT PID SIGNAL ROUNDS

Exit status 0: the subject ran on each time, and qut answered with its statuses. (A shell's background jobs ignore
SIGINT; children of this do not.)"""
import glob
import random
import signal
import subprocess
import sys
import time

qut, pid, signal_name, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
number = getattr(signal, "SIG" + signal_name)
allowed = {0, -number} if signal_name == "KILL" else {0, 128 + number, -number}  # -: before it watched, or after it ended


def runs():
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        with open(path) as file:
            fields = dict(line.split(":", 1) for line in file)
        if fields["State"].strip()[0] in "tTZ" or fields["TracerPid"].strip() != "0":
            return False
    return True


start = time.monotonic()
subprocess.run([qut, "stack", "-p", pid], stdout=subprocess.DEVNULL, check=True)
whole = time.monotonic() - start
statuses = {}
for _ in range(rounds):
    process = subprocess.Popen([qut, "stack", "-p", pid], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(random.uniform(0, 1.2 * whole))
    process.send_signal(number)
    status = process.wait(timeout=20)
    statuses[status] = statuses.get(status, 0) + 1
    deadline = time.monotonic() + 20
    while not runs():
        if time.monotonic() > deadline:
            sys.exit(f"the subject does not run; qut ended with {status}")
        time.sleep(0.005)
print(f"SIG{signal_name}: statuses {statuses}")
sys.exit(not set(statuses) <= allowed)

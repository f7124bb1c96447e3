#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A process from outside: Ctrl-C is a good end; of one whose children do the work, they are told.
Usage: outside.py QUT"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

QUT = os.path.abspath(sys.argv[1])
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)



def wait_until(what, holds):
    deadline = time.monotonic() + 60
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"no {what}")
        time.sleep(0.02)


def processor_time(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


def blocks_interrupts(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        blocked = next(line for line in file if line.startswith("SigBlk:"))
    return int(blocked.split()[1], 16) >> (signal.SIGINT - 1) & 1


# It waits for signals in its own way from when it records on.
def record(pid):
    command = subprocess.Popen([QUT, "record", "-o", "outside.qtrace", "-p", str(pid)],
                               stderr=subprocess.PIPE, text=True)
    wait_until("recording", lambda: blocks_interrupts(command.pid))
    return command


def interrupt(command):
    command.send_signal(signal.SIGINT)
    said = command.communicate(timeout=60)[1]
    if command.returncode != 0:
        sys.exit(f"Ctrl-C: status {command.returncode}: {said}")
    info = json.loads(subprocess.run([QUT, "info", "--json", "outside.qtrace"], stdout=subprocess.PIPE,
                                     check=True).stdout)
    return said, info


burning = subprocess.Popen(["sh", "-c", "while :; do :; done"])
parent = subprocess.Popen(["sh", "-c", "sh -c 'while :; do :; done' & echo $!; wait"], stdout=subprocess.PIPE,
                          text=True)
child = int(parent.stdout.readline())
sleeping = subprocess.Popen(["sleep", "1000"])
try:
    command = record(burning.pid)
    before = processor_time(burning.pid)
    wait_until("work", lambda: processor_time(burning.pid) > before + 300_000_000)
    said, info = interrupt(command)
    if "next: " not in said or not info["complete"]:
        sys.exit(f"not finished: {said} {info}")

    command = record(parent.pid)
    before = processor_time(child)
    wait_until("work of the child", lambda: processor_time(child) > before + 300_000_000)
    said, _ = interrupt(command)
    for wanted in f"process {parent.pid} used", "1 processes that it started are not recorded", "while :", \
            f"record -p {child}":
        if wanted not in said:
            sys.exit(f"of the child no {wanted!r}: {said}")
    if "next:" in said:
        sys.exit(f"nothing to report: {said}")

    said, _ = interrupt(record(sleeping.pid))
    if f"process {sleeping.pid} did not run" not in said or "--wall" not in said or "next:" in said:
        sys.exit(f"of one that sleeps: {said}")
finally:
    for pid in burning.pid, child, parent.pid, sleeping.pid:
        os.kill(pid, signal.SIGKILL)

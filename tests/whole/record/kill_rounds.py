#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kills the recorder, the command, or one of its children, at moments nobody chose: the others run on, what was recorded can
be read, and its accounts balance. Usage: kill_rounds.py QUT SUBJECT ROUNDS"""
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

qut, subject, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
random.seed(int(os.environ.get("SEED", time.time())))


def descendants(pid):
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path) as file:
                children = [int(child) for child in file.read().split()]
        except OSError:
            continue
        for child in children:
            found += [child] + descendants(child)
    return found


def is_subject(pid):
    """Whoever has begun to be the command. What looks for leaks at the end of a sanitized recorder is a child of it, too."""
    try:
        return os.path.samefile(f"/proc/{pid}/exe", subject)
    except OSError:
        return False


def state(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def wait_until(what, why):
    deadline = time.monotonic() + 60
    while not what():
        if time.monotonic() > deadline:
            sys.exit(why)
        time.sleep(0.005)


def check(path):
    """Number of samples; -1: the file has nothing yet."""
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return -1
    run = subprocess.run([qut, "info", "--json", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if run.returncode == 2:
        # Killed before the first block was whole.
        if os.path.getsize(path) < 4096:
            return -1
        sys.exit(f"{path} cannot be read: {run.stderr}")
    trace = json.loads(run.stdout)
    if not trace["balanced"]:
        sys.exit(f"{path}: the accounts do not balance: {run.stdout[:3000]}")
    return trace["present_samples"]


def start():
    return subprocess.Popen([qut, "record", "-q", "-F", "2000", "--sync", "all", "-o", path, subject, "spawn", "4", "60"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


folder = tempfile.mkdtemp()
path = f"{folder}/a.qtrace"
recorder = None
counts = {"recorder": 0, "command": 0, "child": 0, "read": 0, "nothing yet": 0}
try:
    # As long as it takes here: with sanitizers, on a busy machine, seconds.
    began_s = time.monotonic()
    if start().wait(timeout=120) != 0 or check(path) < 0:
        sys.exit("one that nobody kills has nothing")
    whole_s = time.monotonic() - began_s
    for _ in range(rounds):
        for old in glob.glob(f"{folder}/*"):
            shutil.rmtree(old) if os.path.isdir(old) else os.unlink(old)
        recorder = start()
        time.sleep(random.uniform(0, whole_s))
        family = [pid for pid in descendants(recorder.pid) if is_subject(pid)]
        victims = {"recorder": recorder.pid}
        if family:
            victims["command"] = family[0]
        if len(family) > 1:
            victims["child"] = family[-1]
        who = random.choice(list(victims))
        counts[who] += 1
        if who == "recorder":
            recorder.kill()
        else:
            try:
                os.kill(victims[who], signal.SIGKILL)
            except ProcessLookupError:
                pass
        status = recorder.wait(timeout=60)
        if who == "recorder":
            # The processes that it had started go on, and come to their end by themselves.
            for pid in family:
                if state(pid) in "tT":
                    sys.exit(f"process {pid} was left stopped")
            wait_until(lambda: all(state(pid) == "Z" for pid in family), "the command did not go on")
        elif who == "command" and status not in (137, 0):
            sys.exit(f"the command was killed, the status is {status}")
        samples = [check(file) for file in [path] + glob.glob(f"{path}.parts/*")]
        if who != "recorder" and glob.glob(f"{path}.parts/*"):
            sys.exit("parts were left behind")
        counts["read"] += sum(number >= 0 for number in samples)
        counts["nothing yet"] += sum(number < 0 for number in samples)
finally:
    # One that hangs would take a processor from whatever comes after this test.
    if recorder and recorder.poll() is None:
        recorder.kill()
    shutil.rmtree(folder, ignore_errors=True)
print(f"{rounds} rounds: {counts}")
sys.exit(counts["read"] == 0)

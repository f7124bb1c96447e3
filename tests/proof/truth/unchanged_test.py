#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""After -p and after --inject a process is what it was: its mappings, the bytes of its code, its descriptors, its threads.
Killed at moments by chance, it or the recorder: it never stays stopped, and goes on rightly; what was recorded can be
read, and its accounts are exact. Usage: unchanged_test.py QUT DUMP SHARES [KILLS]"""
import os
import random
import signal
import subprocess
import sys
import time

from truth import World, check, finish, state, wait_for

qut, dump, shares = sys.argv[1:4]
kills = int(sys.argv[4]) if len(sys.argv) > 4 else 20
seed = int(os.environ.get("SEED", time.time()))
random.seed(seed)


def look(pid):
    with open(f"/proc/{pid}/maps") as file:
        maps = file.read().splitlines()
    code = {}
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            place, rights = line.split()[:2]
            if "x" in rights and "vsyscall" not in line:
                start, end = (int(word, 16) for word in place.split("-"))
                memory.seek(start)
                code[place] = memory.read(end - start)
    with open(f"/proc/{pid}/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return {"maps": maps, "code": code, "descriptors": sorted(os.listdir(f"/proc/{pid}/fd")),
            "threads": sorted(os.listdir(f"/proc/{pid}/task")),
            "signals": [status[key] for key in ("SigBlk", "SigIgn", "SigCgt")], "tracer": status["TracerPid"]}


def begin(world, ms):
    place = world.path("truth")
    if os.path.exists(place):
        os.unlink(place)
    subject = world.start([shares, place, "3", str(ms)], stdout=subprocess.PIPE, text=True)
    wait_for(lambda: len(os.listdir(f"/proc/{subject.pid}/task")) == 3)
    return subject


def runs(pid, program):
    try:
        return os.path.samefile(f"/proc/{pid}/exe", program) and state(pid) != "Z"
    except OSError:
        return False


def read_file(world, name):
    """None: there is nothing yet; else whether the accounts are exact."""
    path = world.path(name)
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return None
    info = world.info(name)
    if info is None and os.path.getsize(path) < 4096:  # killed before the first block was whole
        return None
    return info is not None and info["balanced"]


with World(qut, dump) as world:
    right = subprocess.run([shares, world.path("truth"), "1", "1"], stdout=subprocess.PIPE, text=True).stdout
    subject = begin(world, 1000000)
    time.sleep(0.1)
    for name, options in (("outside", []), ("inside", ["--inject"]), ("inside again", ["--inject"]),
                          ("inside, faults", ["--inject", "--faults", "10"])):
        before = look(subject.pid)
        world.record(name, ["-F", "1000", "--duration", "0.4", "-p", str(subject.pid)] + options, [])
        after = look(subject.pid)
        for what in before:
            check(f"{name}: {what} as before", before[what] == after[what],
                  "" if what == "code" else set(map(str, before[what])) ^ set(map(str, after[what])))
    subject.kill()

    counts = {"read": 0, "nothing yet": 0}
    for number in range(kills):
        mode = ("command", "outside", "inside")[number % 3]
        who = random.choice(["recorder", "target"])
        options = ["-q", "-F", "2000", "-o", world.path("killed")]
        if os.path.exists(world.path("killed")):
            os.unlink(world.path("killed"))
        if mode == "command":
            recorder = world.start([qut, "record", *options, "--sync", "all", shares, world.path("truth"), "3", "150"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            children = f"/proc/{recorder.pid}/task/{recorder.pid}/children"
            wait_for(lambda: open(children).read().split() or recorder.poll() is not None)
            pids = [int(word) for word in open(children).read().split()]
            pid = pids[0] if pids else 0
        else:
            subject = begin(world, 150)
            pid = subject.pid
            recorder = world.start([qut, "record", *options, "-p", str(pid)] + ["--inject"] * (mode == "inside"),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0, 0.4))
        what = f"{number}: {mode}, {who} killed (SEED={seed})"
        if who == "recorder":
            # Before it is started there is no program that could go on.
            is_started = mode != "command" or runs(pid, shares)
            recorder.kill()
            recorder.wait()
            if pid:
                check(f"{what}: it is not left stopped", wait_for(lambda: state(pid) not in "tT", 2), state(pid))
            if mode == "command":
                said = recorder.stdout.read() if wait_for(lambda: not pid or state(pid) == "Z") else "it hangs"
                is_right = said == right or said == "" and not is_started
            else:
                said = subject.communicate(timeout=30)[0]
                is_right = said == right and subject.returncode == 0
            check(f"{what}: it ends rightly", is_right, said)
        else:
            if pid and state(pid) != "Z":
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if mode != "command":
                subject.wait()
            check(f"{what}: the recorder ends", wait_for(lambda: recorder.poll() is not None))
        is_exact = read_file(world, "killed")
        counts["nothing yet" if is_exact is None else "read"] += 1
        check(f"{what}: accounts are exact", is_exact is not False)
    print(f"    {kills} kills: {counts}")
    check("some were read", kills < 6 or counts["read"] > 0)
finish()

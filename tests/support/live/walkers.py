# SPDX-License-Identifier: Apache-2.0
"""The three that look at a process. Each gives {tid: Walk}; pcs are absolute: where the thread is, then return
addresses."""
import json
import os
import re
import subprocess
import time
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 10000
TIMEOUT_S = 300


class WalkerFailed(Exception):
    pass


@dataclass
class Walk:
    pcs: list
    end: str = ""  # why it ended; empty: it says that it came to the end of the stack
    guessed: list = field(default_factory=list)  # indexes of frames that qut marks as guessed
    places: list = field(default_factory=list)  # what qut says about each frame
    functions: list = field(default_factory=list)  # "" where it knows none
    kinds: list = field(default_factory=list)  # "native", "jit", ...


def wait_until_still(pid):
    """Until each thread waits in a system call, in which it was not while another tool looked: it begins the call anew."""
    ends_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < ends_s:
        calls = []
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
                calls.append(file.read().split()[0])
        if all(call.isdecimal() for call in calls):
            return
        time.sleep(0.001)
    raise WalkerFailed(f"{pid}: its threads do not wait: {calls}")


def output_of(command):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise WalkerFailed(f"{command[0]}: took more than {TIMEOUT_S} s") from error
    return done.stdout, done.stderr, done.returncode


def end_of(end):
    if end["outermost"]:
        return ""
    reason = end["reason"] + (f" ({end['refusal']})" if "refusal" in end else "")
    # Which file, or that it is in none, is what matters of a place without unwind information.
    module = re.search(r"no unwind \w+(?: at \S+)? (?:in|for) ([^:]+)", end["text"])
    return reason + (f": {os.path.basename(module.group(1))}" if module else "")


def place_of(frame):
    module = os.path.basename(frame.get("module") or "<no file>")
    name = frame.get("function", "?") + f"+{frame.get('function_offset', 0)}"
    return f"{module} {frame.get('module_pc', frame['pc'])} {name}"


def qut(binary, pid, *options):
    return qut_stack(binary, "-p", str(pid), *options)


def qut_stack(binary, *arguments):
    out, err, status = output_of([binary, "stack", "--json", "--limit", str(LIMIT), *arguments])
    if status != 0:
        raise WalkerFailed(f"qut: status {status}: {err.strip()}")
    walks = {}
    for stack in json.loads(out)["stacks"]:
        # Functions that an interpreter runs are no native frames: no other reader has them among those.
        frames = [frame for frame in stack["frames"] if frame["kind"] != "python"]
        walk = Walk([int(frame["pc"], 16) for frame in frames], end_of(stack["end"]),
                    [index for index, frame in enumerate(frames) if frame.get("guessed")],
                    [place_of(frame) for frame in frames], [frame.get("function", "") for frame in frames],
                    [frame["kind"] for frame in frames])
        walks.update({thread["tid"]: walk for thread in stack["threads"]})
    return walks


def eu_stack(pid):
    # Raw addresses, no names: looking those up takes seconds in large programs.
    out, err, status = output_of(["eu-stack", "-q", "-n", str(LIMIT), "-p", str(pid)])
    walks, walk = {}, None
    for line in out.splitlines():
        if header := re.match(r"TID (\d+):", line):
            walk = walks[int(header.group(1))] = Walk([])
        elif frame := re.match(r"#\d+ +0x([0-9a-f]+)", line):
            walk.pcs.append(int(frame.group(1), 16))
    for tid, reason in re.findall(r"tid (\d+): (.*)", err):
        if int(tid) in walks:
            walks[int(tid)].end = reason.split(": ")[-1]
    if not walks:
        raise WalkerFailed(f"eu-stack: status {status}: {err.strip()}")
    return walks


def gdb(pid):
    out, err, _ = output_of(["gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-iex",
                             "set auto-load no", "-p", str(pid), "-x", os.path.join(HERE, "gdb_frames.py")])
    walks = {}
    for line in out.splitlines():
        if line.startswith("QUT "):
            thread = json.loads(line[4:])
            walks[thread["tid"]] = Walk(thread["pcs"], thread["end"])
    if not walks:
        raise WalkerFailed(f"gdb: {err.strip()[-400:]}")
    return walks

# SPDX-License-Identifier: Apache-2.0
"""The ways to run a program in bench/overhead/run: by itself and under each recorder, and whether the recorder recorded."""
import glob
import json
import os
import re
import shutil
import struct
import subprocess

from workloads import Failed, ended_how

PLAIN, AGAIN = "by itself", "by itself, again"
EMPTY = "empty ticks, 1 kHz"
PROFILER = "/usr/lib/x86_64-linux-gnu/libprofiler.so.0"


class Way:
    """`wrap`: the command before the program's; `added`: to the environment; `judge` (run -> dict) looks at what was recorded,
    "samples" above all. Where `is_ours`, a failure is an error, not a result."""
    def __init__(self, name, hz=0, wrap=(), added=None, judge=None, is_ours=True, is_seldom=False):
        self.name, self.hz, self.wrap, self.added, self.is_ours, self.is_seldom = name, hz, list(wrap), added or {}, is_ours, is_seldom
        self.judge = judge or (lambda run: {})


def info(qut, trace):
    done = subprocess.run([qut, "info", "--json", trace], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):  # 1: a process ended by _exit, say
        raise Failed(f"qut info: {ended_how(done.returncode)}: {done.stderr[-300:]}")
    said = json.loads(done.stdout)
    if not said["balanced"] or said["damaged_samples"] or said["damaged_blocks"]:
        raise Failed(f"the trace is damaged: balanced {said['balanced']}, {said['damaged_samples']} samples damaged")
    found = {"samples": said["stored"] + said["merged"], "cut": {key: n for key, n in said["cut"].items() if n}}
    if not found["samples"]:
        raise Failed("no samples in the trace")
    for key in ("due", "taken", "late", "kernel", "lost"):
        found[key] = sum(process["notes"].get(f"ticks-{key}", 0) for process in said["processes"])
    found["triggers"] = sorted({process["notes"]["trigger"] for process in said["processes"] if "trigger" in process["notes"]})
    found["eintr"] = sum(process["notes"].get("eintr-seen", 0) for process in said["processes"])
    return found


def perf_samples(run):
    found = re.search(r"\((\d+) samples\)", run.said)
    lost = re.search(r"lost (\d+) chunks", run.said, re.IGNORECASE)
    return {"samples": int(found[1]) if found else 0, "lost_chunks": int(lost[1]) if lost else 0}


def profile_samples(folder):
    """gperftools: words; five of a header, then records (count, depth, pcs), the last with a count of 0; text behind it. One
    file for each process that has exec'd."""
    samples = 0
    for path in glob.glob(f"{folder}/profile*"):
        with open(path, "rb") as file:
            data = file.read()
        words, at = struct.unpack(f"<{len(data) // 8}Q", data[:len(data) // 8 * 8]), 5
        while at + 1 < len(words) and words[at] != 0:
            samples, at = samples + words[at], at + 2 + words[at + 1]
    return {"samples": samples}


def perf_reason(folder):
    """Why perf cannot be used; None: it can."""
    if not shutil.which("perf"):
        return "perf is not installed (tools/setup overhead)"
    done = subprocess.run(["perf", "record", "-e", "task-clock:u", "-F", "1000", "--call-graph", "dwarf", "-o", f"{folder}/try",
                           "--", "true"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"perf: {done.stderr.strip()[-200:]}"


def instructions_reason():
    """Why instructions are not counted; None: they could be."""
    if not shutil.which("perf"):
        return "no perf"
    done = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", "true"], capture_output=True, text=True, check=False)
    return "this processor has no counter of them for us" if "not supported" in done.stderr or done.returncode else None


def all_ways(qut, out, with_peers):
    """(ways, reasons why others are not among them)"""
    def ours(name, hz, *more):
        return Way(name, hz, [qut, "record", "--quiet", "-o", f"{out}/trace", "-F", str(hz), *more, "--"],
                   judge=lambda run: info(qut, f"{out}/trace"))
    ways = [Way(PLAIN), ours("100 Hz", 100), Way(AGAIN), ours("1 kHz", 1000), ours("1 kHz, sync all", 1000, "--sync", "all")]
    ways[-1].is_seldom = True
    reasons = []
    empty = os.path.join(os.path.dirname(qut), "../bench/overhead/libempty_ticks.so")
    if os.path.exists(empty):
        ways.insert(3, Way(EMPTY, 1000, added={"LD_PRELOAD": os.path.abspath(empty)}, is_ours=False))
    else:
        reasons.append(f"no empty ticks: {empty} is not there")
    if not with_peers:
        return ways, reasons
    reason = perf_reason(out)
    if reason:
        reasons.append(reason)
    else:
        ways.append(Way("perf dwarf, 1 kHz", 1000, ["perf", "record", "-e", "task-clock:u", "-F", "1000", "--call-graph", "dwarf",
                                                    "-o", f"{out}/perf.data", "--"],
                        judge=perf_samples, is_ours=False, is_seldom=True))
    if os.path.exists(PROFILER):
        ways.append(Way("gperftools, 1 kHz", 1000, added={"LD_PRELOAD": PROFILER, "CPUPROFILE": f"{out}/profile",
                                                          "CPUPROFILE_FREQUENCY": "1000"},
                        judge=lambda run: profile_samples(out), is_ours=False, is_seldom=True))
    else:
        reasons.append("gperftools is not installed (tools/setup overhead)")
    return ways, reasons

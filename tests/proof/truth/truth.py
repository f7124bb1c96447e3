# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder share: recordings, traces as rows, and results as lines."""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

Sample = collections.namedtuple("Sample", "kind tid flags count first_ns last_ns node cpu_ns")
Interval = collections.namedtuple("Interval", "kind tid from_ns to_ns lock owner waker node begin_node release_tid "
                                              "release_node is_open")
BEGINS = 8  # flag of a sample: formats/qut_trace_record.h
failures = 0


def check(what, is_so, detail=""):
    global failures
    print(f"{'ok' if is_so else 'not ok'}: {what}" + ("" if is_so else f"\n    {detail}"), flush=True)
    failures += not is_so
    return is_so


def finish():
    sys.exit(1 if failures else 0)


class World:
    """A folder of its own, the programs, and what was started: all gone at the end."""

    def __init__(self, qut, dump=None):
        self.qut, self.dump = os.path.abspath(qut), dump and os.path.abspath(dump)
        self.folder = tempfile.mkdtemp(prefix="qut-truth-")
        self.started = []
        os.environ["QUT_CACHE"] = f"{self.folder}/cache"
        os.mkdir(f"{self.folder}/run", 0o700)
        os.environ["XDG_RUNTIME_DIR"] = f"{self.folder}/run"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return f"{self.folder}/{name}"

    def start(self, command, **options):
        process = subprocess.Popen(command, **options)
        self.started.append(process)
        return process

    def record(self, name, options, command, timeout=600, status=0):
        """`qut record`; what the command printed."""
        run = subprocess.run([self.qut, "record", "-q", "-o", self.path(name)] + options + command,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout)
        check(f"{name}: status {status}", run.returncode == status, f"{run.returncode}: {run.stderr[-2000:]}")
        return run.stdout

    def info(self, name, *options):
        run = subprocess.run([self.qut, "info", "--json", *options, self.path(name)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=60)
        return json.loads(run.stdout) if run.returncode < 2 else None

    def rows(self, name):
        """Samples, intervals, stacks by node, nodes whose stacks are whole. totals: by pid, of each part."""
        run = subprocess.run([self.dump, self.path(name)], stdout=subprocess.PIPE, text=True, timeout=60, check=True)
        samples, intervals, stacks, whole = [], [], {}, set()
        self.totals = {}
        for line in run.stdout.splitlines():
            tag, *words = line.split("\t")
            if tag == "s":
                samples.append(Sample(words[0], *map(int, words[1:])))
            elif tag == "i":
                intervals.append(Interval(words[0], *map(int, words[1:])))
            elif tag == "p":
                self.totals.setdefault(int(words[0]), []).append(list(map(int, words[1:])))
            else:
                stacks[int(words[0])] = words[2].split(";")
                if words[1] == "1":
                    whole.add(int(words[0]))
        return samples, intervals, stacks, whole


def note(info, name):
    return sum(process["notes"].get(name, 0) for process in info["processes"])


def balanced(name, info):
    return check(f"{name}: accounts are exact", info is not None and info["balanced"],
                 info and {key: info[key] for key in ("hits", "stored", "merged", "throttled", "lost", "under_way",
                                                      "present_samples", "damaged_samples")})


def wait_for(what, seconds=20):
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def state(pid):
    """R, S, T, t, Z, ...; Z as well where it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"

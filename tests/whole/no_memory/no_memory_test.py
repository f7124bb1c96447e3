#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands whose n-th allocation fails: the same output as ever, or an error that says so, with its exit status.

    no_memory_test.py FAIL_ALLOCATION QUTC QUT INPUTS TRACED GOLDEN [--all] [--from-there] [--show] [--only WORD]

FAIL_ALLOCATION is the library to be preloaded. The files that are read come from INPUTS and TRACED, programs, and from
the folder GOLDEN. Without --all a few numbers are tried of each command; with it, all.
--from-there: all allocations behind the n-th fail, too. --show: says who asked for what failed without a word.
"""

import argparse
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

STATE = struct.Struct("=QQQQQ")  # struct fail_state
SAMPLES = 4
TIMEOUT_S = 120
SAYS = re.compile(r"memory", re.IGNORECASE)
# libdw asserts that there is memory, libdwarf takes it for granted: what they end is ended loudly.
READERS = re.compile(r"/lib(dw|dwarf|elf)\.so")
# libqut reads /proc and copies tables by itself, and has no word for memory there: "no such process", "no sound table".
KNOWN = {"stack": 4}
# What is told of a run's own time differs each time.
TIMES = re.compile(rb"ms=[0-9.]+|\"stopped_us\": [0-9]+|[0-9.]+ ?(ms\b(?!=)|s\b|MiB)|xz [0-9]+%")
# A recorder that has no memory to pack a block writes it as it is: what can be read of it is the same.
PACKED = re.compile(rb"[0-9.]+ (bytes|[kM]B), (?=[0-9,]+ chunks)")
# A hint in which order to work next time; a worse one is no other result.
HINTS = {"cache/warm-up.lock"}


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("library", "qutc", "qut", "inputs", "traced", "golden"):
        parser.add_argument(name, type=os.path.realpath)
    for name in ("--all", "--from-there", "--show"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--only", default="")
    return parser.parse_args()


class Command:
    """What a run leaves is its status, what it says, and the files in out/."""

    def __init__(self, options, work, program, line):
        self.options, self.work, self.line = options, work, line
        self.name = f"{os.path.basename(program)} {line}"
        self.argv = [program, *line.split()]
        self.state = work / "state"
        self.out = work / "out"
        self.killed = 0  # by a library's own want of memory

    def run(self, fail_at, where=False):
        """What was told, the files, how many allocations, how many failed."""
        self.state.write_bytes(STATE.pack(0, fail_at, self.options.from_there, 0, where))
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.work), "QUT_CACHE": str(self.out / "cache"),
                       "LD_PRELOAD": self.options.library, "NO_MEMORY_STATE": str(self.state), "LC_ALL": "C"}
        done = subprocess.run(self.argv, cwd=self.work, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=TIMEOUT_S, check=False)
        count, _, _, failed, _ = STATE.unpack(self.state.read_bytes())
        files = {str(path.relative_to(self.out)): self.contents(path) for path in self.out.rglob("*") if path.is_file()}
        files = {name: contents for name, contents in files.items() if name not in HINTS}
        told = (done.returncode, TIMES.sub(b"TIME", done.stdout), PACKED.sub(b"", done.stderr))
        return told, files, count, failed

    def contents(self, path):
        if path.suffix != ".qtrace":
            return path.read_bytes()
        # It says when it was made. A file that cannot be settled for want of memory stays as it is, which is larger.
        told = subprocess.run([self.options.qut, "info", "--json", path], capture_output=True, check=False).stdout
        return re.sub(rb'"(disk_bytes_per_sample|file_bytes|chunk_bytes|bytes_per_sample)": [0-9.]+', b"", told)

    def usual(self):
        self.told, self.files, count, _ = self.run(0)
        assert self.told[0] in (0, 1), f"{self.name}: {self.told}"
        again = self.run(0)[:2]
        assert again == (self.told, self.files), f"{self.name}: each run says something else: {self.told}, {again}"
        return count

    def wrong(self, n):
        """What is wrong with a run whose n-th allocation fails, or None."""
        told, files, _, failed = self.run(n)
        # A stack is the same if tables were kept for the next one or not.
        has_all = files.keys() == self.files.keys() or self.line.startswith("stack ")
        other = [name for name, contents in files.items() if self.files.get(name) != contents]
        if not failed or (told == self.told and not other and has_all):
            return None
        status, said = told[0], told[2].decode(errors="replace")
        # A bundle, a page or an export may be of what there was, where that is said; a table has one name and no mark.
        if (status < 0 or "crashed: signal" in said) and not other and READERS.search(self.where(n)):
            self.killed += 1
            return None
        if status <= 0 or not SAYS.search(said) or any(name.endswith(".qut") for name in other):
            return f"status {status}, other files: {other}, said {said!r}, told {told[1][-300:]}"
        return None

    def where(self, n):
        return self.run(n, where=True)[0][2].decode(errors="replace")


def make_inputs(options, work):
    subprocess.run([options.inputs, work], check=True)
    for name in ("v1.qut", "v1.qutz", "v1.qtrace"):
        shutil.copy(pathlib.Path(options.golden, name), work)
    (work / "tables").mkdir()
    for name in ("a", "b"):
        shutil.copy(work / "v1.qut", work / f"tables/{name}.qut")
    segment = pathlib.Path(f"/dev/shm/qut-no-memory.{os.getpid()}")
    try:
        subprocess.run([options.traced, segment], check=True, stdout=subprocess.DEVNULL)
        shutil.copy(segment, work / "named.qtrace")
    finally:
        segment.unlink(missing_ok=True)


def commands(options, work, sleeper):
    qutc = [
        "compile -o out/a.qut rich.so --debug-root debug", "compile --small -o out/a.qut rich.so", "compile -o out/ folder",
        "compile -o out/a.qut arm.so", "compile -o out/a.qut method.oat", "compile --json rich.so", "compile -o out/a.qut packed.apk",
        "dump rich.so", "dump arm.so", "list tables", "list v1.qutz", "lookup rich.so 0x10000 0x10010",
        "pack -o out/a.qutz tables", "warm-up rich.so arm.so", "stat rich.so", "stat v1.qut", "dump v1.qut", "unpack -o out/ v1.qutz",
        "verify --against libdw rich.so", "verify --against libdwarf rich.so", "verify rich.so",
    ]
    qut = [
        "info v1.qtrace", "info --json v1.qtrace", "info --top 10 --blocked --locks v1.qtrace",
        "info --top 10 --locks named.qtrace", "info --json --top 5 named.qtrace",
        *(f"export named.qtrace -f {name} -o out/named" for name in
          ("perfetto", "speedscope", "pprof", "collapsed", "nanoscope", "chrome", "perf-script")),
        "export named.qtrace --lines -f collapsed -o out/named", "report named.qtrace -o out/named.html",
        "collect named.qtrace -o out/x.qtrace", "diff --html out/named.html named.qtrace named.qtrace",
        "diff --json v1.qtrace named.qtrace -- named.qtrace v1.qtrace",
    ]
    if options.all:
        qut += [f"stack --no-cache -p {sleeper}", f"stack --json -p {sleeper}"]
    for program, lines in ((options.qutc, qutc), (options.qut, qut)):
        for line in lines:
            if options.only in f"{os.path.basename(program)} {line}":
                yield Command(options, work, program, line)


def try_all(options, command):
    """How many runs, and whether one of them was wrong that is not known to be."""
    count = command.usual()
    step = 1 if options.all else max(1, count // SAMPLES)
    numbers = range(1 + step // 2, count + 1, step)
    bad = []
    for n in numbers:
        why = command.wrong(n)
        if why:
            bad.append(n)
            if len(bad) <= 3 or options.show:
                print(f"FAIL {command.name}: allocation {n} of {count}: {why}")
            if options.show:
                print(command.where(n))
    known = KNOWN.get(command.line.split()[0], 0)
    print(f"{command.name}: {count} allocations, {len(numbers)} tried, {len(bad)} wrong"
          + (f" ({known} are known)" if known else "")
          + (f", {command.killed} ended by a library" if command.killed else ""))
    return len(numbers), len(bad) > known


def main():
    options = arguments()
    tried = failed = 0
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(["sleep", "infinity"]) as sleeper:
        try:
            make_inputs(options, pathlib.Path(folder))
            for command in commands(options, pathlib.Path(folder), sleeper.pid):
                runs, is_wrong = try_all(options, command)
                tried += runs
                failed += is_wrong
        finally:
            sleeper.kill()
    print(f"{tried} allocations failed, {failed} commands are wrong")
    return 1 if failed or not tried else 0


sys.exit(main())

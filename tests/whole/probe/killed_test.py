#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tools that are killed in the midst of their work leave nothing: functions, return addresses and mappings of the
program are as before within a time, and the next tool works.

    killed_test.py QUT SUBJECT
"""
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

QUT, SUBJECT = (os.path.realpath(path) for path in sys.argv[1:3])
NAME = os.path.basename(SUBJECT)
PATIENCE_S = 120
SCRIPT = (f"entry:{NAME}!killed_work {{ @n = count() }} return:{NAME}!killed_work {{ @d = count() }}"
          "timer:20ms { print(@d) }")


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


def code_of(pid):
    """What can be executed there, and its bytes as far as a file has them."""
    found = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            parts = line.split()
            if "x" not in parts[1] or parts[-1].startswith("[v"):
                continue
            begin, end = (int(number, 16) for number in parts[0].split("-"))
            size = end - begin if parts[-1].startswith("/") else 0
            try:
                found.append((parts[0], parts[-1], os.pread(memory.fileno(), size, begin)))
            except OSError: # it is unmapped just now
                return None
    return found


def text_of(pid):
    """The program's own code."""
    return next(code for _, name, code in code_of(pid) if name == SUBJECT)


def await_that(what, is_so):
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def await_as_before(pid, before):
    began = time.monotonic()
    await_that(f"the code of {pid} is not as before", lambda: code_of(pid) == before)
    with open(f"/proc/{pid}/maps") as maps:
        expect("mappings of ours", [line for line in maps if "qut" in line], [])
    return time.monotonic() - began


def prober(*how, stdin=subprocess.DEVNULL):
    return subprocess.Popen([QUT, "probe", "--json", "-q", "-e", SCRIPT, *how], stdin=stdin,
                            stdout=subprocess.PIPE, text=True)


def has_counted(tool):
    return any(json.loads(line)["rows"] for line in tool.stdout if line.startswith("{")) # others are the program's


def watcher_of(tool_pid):
    """Who waits for the tool's end: the one that reads from a pipe of which the tool has the other end."""
    pipes = {os.readlink(f"/proc/{tool_pid}/fd/{name}") for name in os.listdir(f"/proc/{tool_pid}/fd")}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/comm") as comm:
                is_one = comm.read() == "qut-rescue\n"
            if is_one and pipes & {os.readlink(f"/proc/{name}/fd/{fd}") for fd in os.listdir(f"/proc/{name}/fd")}:
                return int(name)
        except OSError: # it has ended
            continue
    raise AssertionError("nobody waits for the tool's end")


def next_tool(pid):
    with prober("-p", str(pid)) as tool:
        assert has_counted(tool), "the next tool counts nothing"
        tool.send_signal(signal.SIGINT)
        tool.stdout.read()
    expect("exit status of the next tool", tool.returncode, 0)


class Program:
    def __init__(self):
        self.process = subprocess.Popen([SUBJECT, "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        expect("begin", self.process.stdout.readline(), "ready\n")
        self.pid = self.process.pid
        self.before = code_of(self.pid)

    def fork(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(re.fullmatch(r"child (\d+)\n", self.process.stdout.readline()).group(1))

    def end(self):
        rest, _ = self.process.communicate(timeout=PATIENCE_S)
        found = re.search(r"rounds (\d+) wrong (\d+)", rest)
        assert found and int(found.group(1)) > 0, rest
        expect("wrong rounds", found.group(2), "0")
        expect("exit status of the program", self.process.returncode, 0)


def check_probe():
    program = Program()
    try:
        for _ in range(3):
            with prober("-p", str(program.pid)) as tool:
                assert has_counted(tool), "nothing is counted"
                child = program.fork()
                assert code_of(program.pid) != program.before, "nothing was exchanged"
                tool.kill()
            for pid in program.pid, child:
                print(f"as before {await_as_before(pid, program.before):.2f} s after a kill")
            os.kill(child, signal.SIGKILL)
            next_tool(program.pid)
            await_as_before(program.pid, program.before)
        program.end()
    finally:
        program.process.kill()


def check_trace():
    program = Program()
    with tempfile.TemporaryDirectory() as folder:
        try:
            with subprocess.Popen([QUT, "trace", "-q", "-f", f"{NAME}!killed_work", "--budget", "1000", "-o",
                                   f"{folder}/t.qtrace", "-p", str(program.pid)], stdin=subprocess.DEVNULL) as tool:
                await_that("nothing was exchanged", lambda: code_of(program.pid) != program.before)
                time.sleep(0.5) # by now it is only counted, mostly: that is put back, too
                tool.kill()
            await_as_before(program.pid, program.before)
            next_tool(program.pid)
            program.end()
        finally:
            program.process.kill()


def check_any_moment():
    """Also while the agent is loaded, and while all is put back anyway."""
    program = Program()
    draw = random.Random(1)
    try:
        for _ in range(12):
            with prober("-p", str(program.pid)) as tool:
                time.sleep(draw.random() * 0.5)
                tool.send_signal(draw.choice([signal.SIGKILL, signal.SIGINT]))
                time.sleep(draw.random() * 0.1)
                tool.kill()
            await_as_before(program.pid, program.before)
        next_tool(program.pid)
        program.end()
    finally:
        program.process.kill()


def check_without_watcher():
    """Both are killed: then the next tool puts back what was left."""
    program = Program()
    try:
        with prober("-p", str(program.pid)) as tool:
            assert has_counted(tool), "nothing is counted"
            os.kill(watcher_of(tool.pid), signal.SIGKILL)
            tool.kill()
        assert code_of(program.pid) != program.before, "who puts it back?"
        next_tool(program.pid)
        await_as_before(program.pid, program.before)
        program.end()
    finally:
        program.process.kill()


def check_command():
    """A command has the agent from its begin, and keeps it; its functions are put back."""
    with prober("--", SUBJECT, "2", stdin=subprocess.PIPE) as tool:
        assert has_counted(tool), "nothing is counted"
        with open(f"/proc/{tool.pid}/task/{tool.pid}/children") as children:
            pid = int(children.read().split()[0])
        try:
            with open(SUBJECT, "rb") as file:
                whole = file.read()
            assert not text_of(pid) in whole, "nothing was exchanged"
            tool.kill()
            await_that("the code is not as in the file", lambda: text_of(pid) in whole)
        finally:
            os.kill(pid, signal.SIGKILL)


def main():
    check_probe()
    check_trace()
    check_any_moment()
    check_without_watcher()
    check_command()
    print("ok: what a killed tool has left is put back")


if __name__ == "__main__":
    main()

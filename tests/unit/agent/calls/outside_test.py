#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks from outside are the same whether functions are traced or not: of a live process, and of its core file. Those of gdb and
eu-stack have the stub as a frame of its own below each traced call, and are the same without it.

usage: outside_test.py QUT DEEP
"""
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../support/live"))
import walkers

QUT, DEEP = (os.path.abspath(argument) for argument in sys.argv[1:3])
failed = 0


def check(what, good, text=""):
    global failed
    print(f"{'ok' if good else 'FAIL'}   {what}{'' if good else ': ' + text}")
    failed += not good


def frames(arguments):
    """Lists of functions, one a thread, without addresses; the threads in order of their depth."""
    answer = subprocess.run([QUT, "stack", *arguments], capture_output=True, text=True)
    threads = []
    for line in answer.stdout.splitlines():
        if re.match(r"^\S", line):
            threads.append([])
        elif threads:
            threads[-1].append(re.sub(r"0x[0-9a-f]+", "ADDRESS", line.strip()))
    return sorted((t for t in threads if t), key=len), answer


def stub_offset():
    """Of the stub's return address, in the program's file."""
    names = subprocess.run(["nm", DEEP], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"^([0-9a-f]+) \w calls_exit$", names, re.M).group(1), 16)


def others(pid):
    walkers.wait_until_still(pid)
    ours, page = walkers.qut(QUT, pid), 4096
    for name, walk in (("eu-stack", walkers.eu_stack), ("gdb", walkers.gdb)):
        if not shutil.which(name):
            print(f"SKIP: no {name}")
            continue
        walkers.wait_until_still(pid)
        theirs = walk(pid)
        more = {pc for stack in theirs.values() for pc in stack.pcs} - {pc for stack in ours.values() for pc in stack.pcs}
        stubs = {pc for pc in more if (pc - stub_offset()) % page == 0}
        check(f"{name}: the stub is a frame", len(stubs) == 1, str([hex(pc) for pc in more]))
        # gdb goes on behind the outermost frame of a coroutine.
        rest = {tid: [pc for pc in stack.pcs if pc not in stubs][:len(ours[tid].pcs)] for tid, stack in theirs.items()}
        check(f"{name}: the same without it", rest == {tid: stack.pcs for tid, stack in ours.items()}, f"{theirs}, {ours}")


def run(way, core):
    subject = subprocess.Popen([DEEP, way], stdout=subprocess.PIPE, text=True, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2))
    try:
        check(f"{way}: it stands still", subject.stdout.readline() == "ready\n")
        walkers.wait_until_still(subject.pid)
        alive, answer = frames(["-p", str(subject.pid)])
        if way == "traced":
            others(subject.pid)
        if core:
            walkers.wait_until_still(subject.pid)
            subject.send_signal(signal.SIGABRT)
            subject.wait()
        return alive, answer
    finally:
        subject.kill()
        subject.wait()


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        os.environ["QUT_CACHE"] = os.path.join(work, "cache")
        with open("/proc/sys/kernel/core_pattern", encoding="ascii") as file:
            lands_here = file.read(1) not in "/|"
        plain, _ = run("plain", False)
        traced, answer = run("traced", lands_here)
        check("two threads, deep", len(plain) == 2 and len(plain[0]) >= 8, str(plain))
        check("alive: the same", traced == plain, answer.stdout + answer.stderr)
        cores = [name for name in os.listdir(".") if name.startswith("core")]
        if cores:
            dead, answer = frames(["--core", cores[0]])
            check("core file: the same", dead == plain, answer.stdout + answer.stderr)
        else:
            print("# no core file lands here")
    print(f"{'0 passed, 1 failed' if failed else '1 passed, 0 failed'}, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

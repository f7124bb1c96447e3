#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks from outside are the same whether functions are traced or not: of a live process, and of its core file.

usage: outside_test.py QUT DEEP
"""
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile

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


def run(way, core):
    subject = subprocess.Popen([DEEP, way], stdout=subprocess.PIPE, text=True, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2))
    try:
        check(f"{way}: it stands still", subject.stdout.readline() == "ready\n")
        alive, answer = frames(["-p", str(subject.pid)])
        if core:
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

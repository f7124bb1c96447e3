#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nobody reads what qut stack prints: it ends when it is told to, as any program does.

Usage: full_pipe.py QUT SUBJECT; SUBJECT as subject.c makes it
"""
import fcntl
import os
import signal
import subprocess
import sys
import tempfile

QUT, SUBJECT = sys.argv[1:]
PIPE_BYTES, THREADS = 4096, 100


def state_of(pid):
    with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        return file.read().split()[:2]


def end_of(subject, number, form):
    """Its exit status, as a shell words it, of a qut that was told to end while it waited for room in a pipe."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    with tempfile.TemporaryDirectory() as cache:
        qut = subprocess.Popen([QUT, "stack", *form, "--cache", cache, "-p", str(subject.pid)], stdout=writing,
                               stderr=subprocess.PIPE)
        os.close(writing)
        # SYS_write to descriptor 1: it waits for room.
        while state_of(qut.pid) != ["1", "0x1"]:
            if qut.poll() is not None:
                sys.exit(f"qut ended: {qut.returncode}, {qut.stderr.read()}")
        qut.send_signal(number)
        status = qut.wait()
    os.close(reading)
    return 128 - status if status < 0 else status


subject = subprocess.Popen([SUBJECT, "same", str(THREADS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
try:
    subject.stdout.readline()
    for form in [], ["--json"], ["--together"]:
        for number, wanted in (signal.SIGTERM, 143), (signal.SIGINT, 130):
            got = end_of(subject, number, form)
            if got != wanted:
                sys.exit(f"{' '.join(form)} signal {number}: {got}, wanted {wanted}")
finally:
    subject.kill()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C on a terminal of its own: the command gets it, and is waited for; the second one leaves it alone.
Usage: interrupt.py QUT SUBJECT"""
import os
import pty
import select
import signal
import sys
import time

qut, subject = sys.argv[1:3]


def start(command):
    try:
        pid, terminal = pty.fork()
    except OSError as error:  # "out of pty devices"
        print(f"SKIP: a terminal: {error}")
        sys.exit(77)
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also under nohup: it ends what is left alone here
        os.execv(qut, [qut, "record", "-o", "interrupted.qtrace"] + command)
    return pid, terminal


def read_until(terminal, wanted, seconds=60):
    text = b""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the other side is gone
            break
        if not piece:
            break
        text += piece
        if wanted and wanted in text:
            return text
    if wanted:
        sys.exit(f"no {wanted} in {text}")
    return text


def end_of(pid, terminal):
    text = read_until(terminal, None)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text


# The command handles it, and ends with 42.
pid, terminal = start([subject, "interrupted"])
read_until(terminal, b"ready")
read_until(terminal, b"samples")  # the line of status
os.write(terminal, b"\x03")
status, text = end_of(pid, terminal)
if status != 42 or b"to the root" not in text or not text.rstrip().endswith(b"interrupted.qtrace"):
    sys.exit(f"first Ctrl-C: status {status}: {text}")

# One that does not care: the second one leaves it.
pid, terminal = start(["sh", "-c", "trap '' INT; echo ready; while :; do :; done"])
read_until(terminal, b"ready")
os.write(terminal, b"\x03")
if select.select([terminal], [], [], 0)[0]:
    os.read(terminal, 4096)
time.sleep(0.2)
if os.waitpid(pid, os.WNOHANG)[0]:
    sys.exit("it did not wait for the command")
os.write(terminal, b"\x03")
deadline = time.monotonic() + 60
done = (0, 0)
while not done[0] and time.monotonic() < deadline:
    if select.select([terminal], [], [], 0.05)[0]:
        try:
            os.read(terminal, 4096)
        except OSError:
            pass
    done = os.waitpid(pid, os.WNOHANG)
os.close(terminal)  # which hangs up, and ends the command
if not done[0] or os.waitstatus_to_exitcode(done[1]) != 128 + signal.SIGINT:
    sys.exit(f"second Ctrl-C: {done}")

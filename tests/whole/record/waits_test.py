#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `qut record` says while nothing is recorded, since tables are being made: of a library whose file is gone, which a
server may have, that lets wait. On a terminal it is the line of status, else one line after a second; nothing with --quiet.

usage: waits_test.py QUT PROGRAM LIBRARY     LIBRARY: of PROGRAM, takes away its file
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import table_server  # noqa: E402

QUT, PROGRAM, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:])
TOLD = re.compile(r"qut: nothing is recorded yet: tables are being made, \d+ of \d+ are there; now .+\n")
LINE = re.compile(r"nothing is recorded yet: making tables, \d+ of \d+ are there  \S+")
PATIENCE_S = 60


def expect(what, is_good, why):
    if not is_good:
        sys.exit(f"FAIL {what}: {why!r}")
    print(f"ok {what}")


class Holding:
    """A server that answers nobody until it is let go; then it has nothing."""
    def __init__(self, folder):
        self.go = threading.Event()
        here = shutil.copy(LIBRARY, os.getcwd())
        os.environ["LD_LIBRARY_PATH"], os.environ["GONE_LIBRARY"] = os.getcwd(), here
        self.server = table_server.Server(folder, self.change)
        self.arguments = [QUT, "record", "--no-cache", "--tables-url", self.server.url, "--tables-unsigned", "-o", "waits.qtrace"]

    def change(self, path, body):
        self.go.wait(PATIENCE_S)
        return None

    def end(self):
        self.go.set()
        self.server.stop()


def without_a_terminal(folder):
    holding = Holding(folder)
    with subprocess.Popen([*holding.arguments, "--", PROGRAM], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as program:
        line = program.stderr.readline() # comes while the server holds everything up, or never
        expect("a line", TOLD.fullmatch(line), line)
        holding.end()
        rest = program.stderr.read()
        expect("once", not TOLD.search(rest), rest)
        expect("then it is recorded", program.wait(PATIENCE_S) == 0, rest)


def on_a_terminal(folder):
    holding = Holding(folder)
    try:
        pid, terminal = pty.fork()
    except OSError as error:  # "out of pty devices"
        print(f"SKIP: a terminal: {error}")
        sys.exit(77)
    if pid == 0:
        os.execv(QUT, [*holding.arguments, "--", PROGRAM])
    text = ""
    while select.select([terminal], [], [], PATIENCE_S)[0]:
        try:
            text += os.read(terminal, 4096).decode(errors="replace")
        except OSError: # the other side is gone
            break
        if LINE.search(text):
            holding.end()
    expect("the line of status", LINE.search(text), text)
    expect("and no other", not TOLD.search(text.replace("\r\n", "\n")), text)
    expect("its end", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, text)


def quiet(folder):
    holding = Holding(folder)
    asked = threading.Event()
    holding.server.change = lambda path, body: (asked.set(), holding.go.wait(2), None)[2]
    done = subprocess.run([*holding.arguments, "--quiet", "--", PROGRAM], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                          timeout=PATIENCE_S)
    holding.end()
    expect("--quiet", (done.returncode, done.stderr, asked.is_set()) == (0, "", True), (done.stderr, asked.is_set()))


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    os.mkdir("served")
    for check in without_a_terminal, on_a_terminal, quiet:
        check("served")

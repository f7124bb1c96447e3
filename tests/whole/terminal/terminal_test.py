#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever files, functions, threads and commands are called: what a terminal obeys does not come out of any command.

Usage: terminal_test.py QUT QUTC SUBJECT
"""
import os
import shutil
import subprocess
import sys
import tempfile

QUT, QUTC, SUBJECT = (os.path.abspath(path) for path in sys.argv[1:])
EVIL = b"e\x1b[31m\x9b31m\xc2\x9b\xe2\x80\xae\xe2\x81\xa6\xff\xc3\nname"
TURNS = {0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)}
failures = []


def what_steers(output):
    """The first thing that is no plain text; None: there is none."""
    try:
        text = output.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"no UTF-8: {output[max(error.start - 40, 0):error.end + 10]}"
    for i, character in enumerate(text):
        code = ord(character)
        if (code < 0x20 and character not in "\n\t") or 0x7F <= code < 0xA0 or code in TURNS:
            return f"U+{code:04X} in {text[max(i - 40, 0):i + 10]!r}"
    return None


def run(statuses, *command, wants=b""):
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
    words = b" ".join(os.fsencode(word) for word in command[1:])
    for name, output in ("stdout", done.stdout), ("stderr", done.stderr):
        found = what_steers(output)
        if found:
            failures.append(f"{words}: {name}: {found}")
    if done.returncode not in statuses:
        failures.append(f"{words}: status {done.returncode}: {done.stderr[-300:]}")
    if wants not in done.stdout + done.stderr:
        failures.append(f"{words}: no {wants} in {done.stdout[-2000:]}")
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    work = os.path.join(os.fsencode(folder), b"w" + EVIL)
    os.mkdir(work)
    environment = {**os.environ, "QUT_CACHE": os.path.join(folder, "cache")}
    program, trace, table = (os.path.join(work, name + EVIL) for name in (b"p", b"t", b"q"))
    shutil.copy(SUBJECT, program)

    process = subprocess.Popen([program, "wait", EVIL], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    for form in [], ["--json"], ["--group"], ["--raw"], ["--no-names"]:
        # Its function is found, so its file was: maps have a line feed in a name as \012.
        names = b"" if form == ["--no-names"] else b"evil"
        run([0], QUT, "stack", *form, "-v", "-p", str(process.pid), wants=names)
    process.stdin.close()
    process.wait()

    run([0], QUT, "record", "-o", trace, "--", program, EVIL, wants=b"evil")
    for form in [], ["--top", "5"], ["--blocked"], ["--locks"], ["--json"], ["--json", "--top", "5"]:
        run([0, 1], QUT, "info", *form, trace, wants=b"evil" if "--top" in form else b"")
    for name in "collapsed", "nanoscope", "chrome", "perf-script", "speedscope":
        run([0, 1], QUT, "export", "-f", name, "-o", "-", trace)
    run([0, 1], QUT, "report", "-o", trace + b".html", trace)
    for form in [], ["--json"], ["--html", trace + b".diff.html"]:
        run([0, 1], QUT, "diff", *form, trace, trace, wants=b"evil")
    for command in ["stack", "--core"], ["stack", "--snapshot"], ["info"], ["export"], ["report"], ["collect"], [EVIL]:
        run([2], QUT, *command, work + b"/none")
    run([2], QUT, "stack", "--core", program)
    run([2], QUT, "stack", b"--" + EVIL)
    run([126, 127, 2], QUT, "record", "-o", trace + b"2", "--", work + b"/none")

    os.mkdir(table)
    for form in [], ["--json"]:
        run([0], QUTC, "compile", *form, "-o", table + b"/one.qut", program)
        run([0], QUTC, "compile", *form, "-o", table, program)
        run([0], QUTC, "compile", *form, program)
        run([0], QUTC, "stat", *form, program)
        run([0], QUTC, "verify", *form, program)
    run([0], QUTC, "dump", program)
    run([0], QUTC, "pack", "-o", work + b"/bundle" + EVIL, table)
    run([0], QUTC, "list", work + b"/bundle" + EVIL)
    run([0], QUTC, "unpack", "-o", table, work + b"/bundle" + EVIL)
    for command in "compile", "stat", "verify", "dump", "list", "unpack", "lookup", EVIL:
        run([1, 2], QUTC, command, work + b"/none")

if failures:
    sys.exit("\n".join(str(failure) for failure in failures))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs at lines run as often as the program itself counts that it comes there, however it was compiled: in loops,
branches, parts that are seldom run, and each of several inlined copies.

    lines_test.py QUT SUBJECT...
"""
import json
import os
import subprocess
import sys

QUT, *SUBJECTS = (os.path.realpath(path) for path in sys.argv[1:])
FILE = "lines_subject.c"
PATIENCE_S = 120
COPIES = 3  # of the inlined function


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


def numbers(lines):
    return {words[0]: int(words[1]) for words in (line.split() for line in lines) if words and words[0][0] != "{"}


def probe(script, *how):
    return subprocess.run([QUT, "probe", "--json", "-e", script, *how], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE_S, check=False)


def lines_of(subject):
    return numbers(subprocess.run([subject, "places"], capture_output=True, text=True, check=True).stdout.splitlines())


def maps_of(text):
    return {document["map"]: document["rows"] for document in map(json.loads, (line for line in text.splitlines() if line[0] == "{"))}


def script_of(lines, prefix=""):
    return "".join(f"line:{prefix}{FILE}:{line} {{ @{name} = count() }}" for name, line in lines.items())


def check_counts(subject):
    lines = lines_of(subject)
    done = probe(script_of(lines, os.path.basename(subject) + "!"), "--", subject, "3", "2000")
    expect(f"exit status ({done.stderr})", done.returncode, 0)
    own, found = numbers(done.stdout.splitlines()), maps_of(done.stdout)
    expect(f"passed, {os.path.basename(subject)}", {name: rows[0]["value"] for name, rows in found.items()}, own)
    assert all(own.values()), own
    assert f"{len(lines) - 1 + COPIES} places within functions probed" in done.stderr, done.stderr


def check_who(subject):
    """Each inlined copy is one of the function that has it."""
    line = lines_of(subject)["inlined"]
    done = probe(f"line:{FILE}:{line} {{ @[stack(1)] = count() }}", "--", subject, "1", "500")
    expect(f"exit status ({done.stderr})", done.returncode, 0)
    found = {name: sum(row["value"] for row in maps_of(done.stdout)[""] if any(name in frame for frame in row["key"][0]))
             for name in ("first_user", "second_user")}
    expect("who", found, {"first_user": 500, "second_user": 1000})


def check_missing(subject):
    lines = lines_of(subject)
    line = lines["loop"]
    done = probe(f"line:{FILE}:1 {{ @ = count() }}", "--", subject, "1", "10")
    expect("exit status", done.returncode, 1)
    assert f"{FILE}:1: no code was made of this line; the nearest line with code is " in done.stderr, done.stderr
    done = probe(f"line:other_{FILE}:{line} {{ @ = count() }} line:{FILE}:{line} {{ @there = count() }}", "--", subject, "1", "10")
    expect("exit status", done.returncode, 1)
    expect("the other line", maps_of(done.stdout)["there"][0]["value"], numbers(done.stdout.splitlines())["loop"])
    assert f"other_{FILE}:{line}: no module that was loaded has debug information of such a file" in done.stderr, done.stderr
    done = probe(f"line:\"nowhere/{FILE}:{line}\" {{ @ = count() }}", "--", subject, "1", "10")
    assert done.returncode == 1 and "of such a file" in done.stderr, done.stderr
    done = probe(f"line:libc.so*!{FILE}:{line} {{ @ = count() }}", "--", subject, "1", "10")
    assert done.returncode == 1 and "of such a file" in done.stderr, done.stderr


def check_mistakes():
    for text, said in (
            ("line { }", '-e:1:1: it needs ":" and a line, as in line:server.c:120'),
            ("line:f.c { }", "-e:1:6: which line? as in line:server.c:120"),
            ("line:m!:7 { }", "-e:1:6: which line? as in line:server.c:120"),
            ("line:!f.c:7 { }", "-e:1:6: which line? as in line:server.c:120"),
            ("line:f.c:7x { }", "-e:1:6: which line? as in line:server.c:120"),
            ("line:f.c:0 { }", "-e:1:6: no file has such a line"),
            ("line:f.c:9999999999 { }", "-e:1:6: no file has such a line"),
            ("line:f.c:3 in g { }", "-e:1:12: this is a place within a function, whoever calls that"),
            ("lien:f.c:3 { }", '-e:1:1: no probe begins so: did you mean "line"?')):
        done = probe(text, "--explain")
        assert done.returncode == 2 and said in done.stderr, (text, done.stderr)


def main():
    for subject in SUBJECTS:
        check_counts(subject)
        check_who(subject)
    check_missing(SUBJECTS[-1])
    check_mistakes()
    print("ok: lines")


if __name__ == "__main__":
    main()

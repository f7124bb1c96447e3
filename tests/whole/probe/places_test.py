#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs at places within functions run as often as the program itself counts, and change nothing: flags, what lies
below the stack pointer, registers, vectors; put in and taken out under load, too.

    places_test.py QUT SUBJECT [ATTACHES]
"""
import json
import os
import signal
import subprocess
import sys

QUT, SUBJECT = (os.path.realpath(path) for path in sys.argv[1:3])
ATTACHES = int(sys.argv[3]) if len(sys.argv) > 3 else 15
NAME = os.path.basename(SUBJECT)
PATIENCE_S = 120


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


def said_by(lines):
    return {words[0]: int(words[1]) for words in (line.split() for line in lines) if words and words[0][0] != "{"}


def maps_of(lines):
    return {document["map"]: document["rows"] for document in map(json.loads, (line for line in lines if line[0] == "{"))}


def probe(script, *how):
    done = subprocess.run([QUT, "probe", "--json", "-e", script, *how], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE_S, check=False)
    return done, done.stdout.splitlines()


def offsets():
    said = subprocess.run([SUBJECT, "offsets"], capture_output=True, text=True, check=True).stdout
    return said_by(said.splitlines())


def script_of(places):
    return "".join(f"offset:{NAME}!{name}+{offset:#x} {{ @{name} = count() }}" for name, offset in places.items())


def check_counts(places):
    done, lines = probe(script_of(places), "--", SUBJECT, "3", "4000")
    expect(f"exit status ({done.stderr})", done.returncode, 0)
    own, found = said_by(lines), maps_of(lines)
    expect("wrong", own.pop("wrong"), 0)
    expect("passed", {name: rows[0]["value"] for name, rows in found.items()}, own)
    assert "4 places within functions probed" in done.stderr, done.stderr


def check_values(places):
    """Registers, the stack, and an entry beside: the function's own frame is the innermost one."""
    place = f"{NAME}!places_registers+{places['places_registers']}"
    done, lines = probe(f"offset:{place} {{ @[stack(2)] = count(); @sum[arg1 + arg2 + arg3 + arg4 + arg5] = count();"
                        f" @tid[tid] = max(time) }} entry:{NAME}!places_registers {{ @entered = count() }}",
                        "--", SUBJECT, "2", "2000")
    expect(f"exit status ({done.stderr})", done.returncode, 0)
    own, found = said_by(lines), maps_of(lines)
    expect("wrong", own["wrong"], 0)
    passed = own["places_registers"]
    expect("entered", found["entered"][0]["value"], passed)
    expect("registers", [(row["key"], row["value"]) for row in found["sum"]], [([16 + 8 + 4 + 64 + 128], passed)])
    expect("stacks", sum(row["value"] for row in found[""]), passed)
    # A handler that comes while a stack is taken gets none.
    most = max(found[""], key=lambda row: row["value"])
    expect("the usual stack", most["key"], [[f"places_registers ({NAME})", f"round_of ({NAME})"]])
    assert most["value"] > passed * 9 // 10 and len(found[""]) <= 2, found[""]
    assert len(found["tid"]) >= 2, found["tid"]


def check_refused(places):
    for offset, why in ((places["places_none"], "jumps lead into the bytes"), (1, "no instruction begins there"),
                        (5000, "no function is there")):
        done, _ = probe(f"offset:{NAME}!places_none+{offset} {{ @ = count() }}", "--", SUBJECT, "1", "100")
        expect("exit status", done.returncode, 1)
        assert f"places_none+{offset:#x}: {why}" in done.stderr, done.stderr
    done, _ = probe(f"offset:{NAME}!nobody+4 {{ @ = count() }}", "--", SUBJECT, "1", "100")
    assert done.returncode == 1 and "no function fits" in done.stderr, done.stderr


def check_mistakes():
    for text, said in (
            ("offset { }", '-e:1:1: it needs ":" and a place, as in offset:malloc+0x1c'),
            ("offset:f { }", "-e:1:8: how far behind the entry? as in offset:malloc+0x1c"),
            ("offset:f+x { }", "-e:1:8: how far behind the entry? as in offset:malloc+0x1c"),
            ("offset:f+9999999999 { }", "-e:1:8: no function is that long"),
            ("offset:f+4 { @ = sum(retval) }", '-e:1:22: retval is known in "return" only'),
            ("unwind:f { @ = sum(arg0) }", '-e:1:20: arg0 is known in "entry and offset" only'),
            ("ofset:f+4 { }", '-e:1:1: no probe begins so: did you mean "offset"?'),
            ("unwint:f { }", '-e:1:1: no probe begins so: did you mean "unwind"?')):
        done, _ = probe(text, "--explain")
        assert done.returncode == 2 and said in done.stderr, (text, done.stderr)


def code_of(pid):
    with open(f"/proc/{pid}/maps") as maps:
        return [line.split()[0] for line in maps if " r-xp " in line], text_of(pid)


def text_of(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            if " r-xp " in line and line.split()[-1] == SUBJECT:
                begin, end = (int(number, 16) for number in line.split()[0].split("-"))
                return os.pread(memory.fileno(), end - begin, begin)
    raise AssertionError("it has no code")


def check_attaches(places):
    with subprocess.Popen([SUBJECT, "4", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            expect("begin", program.stdout.readline(), "ready\n")
            before = code_of(program.pid)
            for i in range(ATTACHES):
                with subprocess.Popen([QUT, "probe", "--json", "-q", "-p", str(program.pid), "-e", script_of(places) +
                                       "timer:10ms { print(@places_below) }"], stdout=subprocess.PIPE, text=True) as prober:
                    assert any(json.loads(line)["rows"] for line in prober.stdout), "it counts nothing"
                    if i % 5 == 4:
                        prober.kill()
                    else:
                        prober.send_signal(signal.SIGINT)
                    prober.stdout.read()
                if i % 5 != 4:
                    expect("exit status", prober.returncode, 0)
                    expect("code", code_of(program.pid), before)
            rest, _ = program.communicate(timeout=PATIENCE_S)
            expect("wrong", said_by(rest.splitlines())["wrong"], 0)
        finally:
            program.kill()


def main():
    places = offsets()
    four = {name: offset for name, offset in places.items() if name != "places_none"}
    check_counts(four)
    check_values(places)
    check_refused(places)
    check_mistakes()
    check_attaches(four)
    print("ok: places within functions")


if __name__ == "__main__":
    main()

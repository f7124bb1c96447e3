#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qut probe, as it is called: what scripts count is what the program has counted itself.

    probe_test.py QUT SUBJECT
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

QUT, SUBJECT = (os.path.realpath(path) for path in sys.argv[1:3])
NAME = os.path.basename(SUBJECT)
PATIENCE_S = 120


def probe(script, *arguments, more=()):
    done = subprocess.run([QUT, "probe", "--json", "-e", script, *more, *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE_S)
    done.lines = done.stdout.splitlines()
    return done


def maps(lines):
    found = {}
    for line in lines:
        if line.startswith("{") and "map" in json.loads(line):
            document = json.loads(line)
            found[document["map"]] = document
    return found


def value(document):
    return document["rows"][0]["value"]


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


def account(done):
    found = re.search(r"calls (\d+) retvals (\d+) handler (\d+) deep 14", done.stdout)
    assert found, f"the program's own account is missing: {done}"
    return [int(number) for number in found.groups()]


def check_counts():
    threads, calls = 4, 2000
    done = probe(f'begin {{ printf("begin\\n") }} end {{ printf("end\\n") }}'
                 f'entry:{NAME}!probe_work {{ @n = count(); @sum = sum(arg0); @text[str(arg1)] = count();'
                 f' @hist = hist(arg0); @none = max(u64(arg2)); @tid[tid] = count() }}'
                 f'return:{NAME}!probe_work /duration > 0/ {{ @retvals = sum(retval); @timed = count() }}'
                 f'entry:{NAME}!probe_deep {{ @depth = sum(arg0) }}'
                 f'return:{NAME}!probe_deep {{ @deep = max(retval) }}', SUBJECT, str(threads), str(calls), "0")
    expect("exit status", done.returncode, 7)
    counted, retvals, handled = account(done)
    found = maps(done.lines)
    total = counted + 1 # that of probe_deep
    expect("calls", value(found["n"]), total)
    expect("sum", value(found["sum"]), threads * calls * (calls - 1) // 2 + 5 * handled + 1)
    expect("retvals", value(found["retvals"]), retvals + 4)
    expect("durations above 0", value(found["timed"]), total)
    texts = {row["key"][0]: row["value"] for row in found["text"]["rows"]}
    expect("texts", texts, {"odd": threads * calls // 2, "even": threads * calls // 2, "handler": handled, "deep": 1})
    expect("histogram", sum(cell["count"] for cell in found["hist"]["rows"][0]["cells"]), total)
    expect("memory that is not there", value(found["none"]), 0)
    expect("sum over threads", sum(row["value"] for row in found["tid"]["rows"]), total)
    assert len(found["tid"]["rows"]) >= threads, found["tid"]
    expect("recursion: arguments", value(found["depth"]), 55)
    expect("recursion: what it returns", value(found["deep"]), 14)
    expect("begin and end", [json.loads(line)["printf"] for line in done.lines if "printf" in line],
           ["begin\n", "end\n"])


def check_children():
    done = probe(f"entry:{NAME}!probe_work {{ @[pid] = count() }} return:{NAME}!probe_work {{ @r = count() }}",
                 SUBJECT, "1", "500", "3")
    counted, _, _ = account(done)
    found = maps(done.lines)
    rows = sorted(row["value"] for row in found[""]["rows"])
    expect("children of fork", rows, [500, 500, 500, counted + 1])
    expect("what returned in all processes", value(found["r"]), 1500 + counted + 1)


def check_records():
    done = probe(f'entry:{NAME}!probe_work {{ printf("%d %s\\n", arg0, str(arg1)) }}', SUBJECT, "1", "300", "0")
    counted, _, _ = account(done)
    records = [json.loads(line)["printf"] for line in done.lines if line.startswith('{"printf')]
    expect("records", len(records), counted + 1)
    expect("a record", "299 odd\n" in records, True)


def check_hostile():
    keys = 20000
    done = probe(f'entry:{NAME}!probe_work {{ @[arg0] = count(); @lost = sum(u64(0 - 1) + u64(arg2)) }}',
                 SUBJECT, "2", str(keys), "0")
    counted, _, _ = account(done)
    found = maps(done.lines)
    assert found[""]["lost"] > 0, "so many keys have no room"
    expect("what is shown and what had no room", sum(row["value"] for row in found[""]["rows"]) + found[""]["lost"],
           counted + 1)
    expect("addresses that nobody has", value(found["lost"]), 0)


def mapped(pid):
    with open(f"/proc/{pid}/maps") as file:
        return [line for line in file if "[heap]" not in line]


def until_interrupted(pid):
    """Probes until something has been counted and shown. What is shown at the end."""
    script = (f"entry:{NAME}!probe_work {{ @n = count() }} return:{NAME}!probe_work {{ @d = count() }}"
              "timer:20ms { print(@d) }")
    with subprocess.Popen([QUT, "probe", "--json", "-e", script, "-p", str(pid)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as prober:
        try:
            for line in prober.stdout:
                if json.loads(line)["rows"]:
                    break
            prober.send_signal(signal.SIGINT)
            rest, said = prober.communicate(timeout=PATIENCE_S)
        finally:
            prober.kill()
    expect(f"exit status after a signal ({said})", prober.returncode, 0)
    return maps(rest.splitlines())


def until_killed(pid):
    script = f"entry:{NAME}!probe_work {{ @n = count() }} timer:20ms {{ print(@n) }}"
    with subprocess.Popen([QUT, "probe", "-q", "-e", script, "-p", str(pid)], stdout=subprocess.PIPE) as killed:
        try:
            assert killed.stdout.readline(), "it ended before it had counted anything"
        finally:
            killed.kill()


def check_attached():
    with subprocess.Popen([SUBJECT, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            program.stdout.readline()
            for _ in range(2):
                found = until_interrupted(program.pid)
                assert value(found["n"]) >= value(found["d"]) > 0, found
                with open(f"/proc/{program.pid}/maps") as mapped:
                    expect("what is left of us", [line for line in mapped if "qut" in line], [])
            # Who is killed leaves the program as it is: it runs on.
            until_killed(program.pid)
            time.sleep(0.1)
            expect("it runs on", program.poll(), None)
        finally:
            program.stdin.close()
            try:
                program.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                program.kill()
    expect("its end", program.returncode, 0)


def check_mistakes():
    done = probe("entry:open { @n = count() }", more=("--explain",))
    expect(f"--explain ({done.stderr})", (done.returncode, "open" in done.stdout), (0, True))
    for script, status, wanted in (
            ("entry:x { @n = cont() }", 2, "-e:1:16: no value has this name"),
            ("end { printf(\"x\") }", 2, "no place in a program"),
            ("entry:no_such_function_anywhere { @n = count() }", 1, "no function fits")):
        done = probe(script, "true")
        expect(f"exit status of {script}", done.returncode, status)
        assert wanted in done.stderr, f"{wanted!r} is not in {done.stderr!r}"


def main():
    folder = tempfile.TemporaryDirectory() # of one that is killed something is left there
    os.environ["TMPDIR"] = folder.name
    for check in (check_mistakes, check_counts, check_children, check_records, check_hostile, check_attached):
        try:
            check()
        except (AssertionError, KeyError, IndexError, ValueError) as error:
            sys.exit(f"FAIL {check.__name__}: {error!r}")
        print(f"ok {check.__name__}")


main()

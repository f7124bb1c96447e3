#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks of qut probe: who has called a function how often is what the program has counted itself.

    stacks_test.py QUT SUBJECT
"""
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import checks  # noqa: E402

QUT, SUBJECT = (os.path.realpath(path) for path in sys.argv[1:3])
NAME = os.path.basename(SUBJECT)
THREADS, CALLS = 3, 400
PATIENCE_S = 120


def probe(script, *more):
    done = subprocess.run([QUT, "probe", *more, "-e", script, SUBJECT, str(THREADS), str(CALLS)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    done.documents = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    done.maps = {document["map"]: document for document in done.documents if "map" in document}
    return done


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


def account(done):
    found = re.search(r"one (\d+) two (\d+) handler (\d+) deep (\d+) sum ([\d.]+)", done.stdout)
    assert found, f"the program's own account is missing: {done}"
    numbers = [float(text) for text in found.groups()]
    by_hand = sum(i * 2 + 0.5 + i + 1 + (0.25 + i) + (2 + 0.25 + i) for i in range(CALLS)) * THREADS
    expect("what it has computed", numbers[2:], [10, 208, by_hand])
    return [int(number) for number in numbers[:3]]


def functions(frames):
    return [frame.split(" (")[0] for frame in frames]


def check_callers():
    for place in ("entry", "return"):
        done = probe(f"{place}:{NAME}!probe_target {{ @one[stack(1)] = count(); @all[stack()] = count() }}", "--json")
        one, two, handled = account(done)
        rows = {}
        for row in done.maps["one"]["rows"]: # a call of the same function from another place is another stack
            expect("one frame", len(row["key"][0]), 1)
            rows[row["key"][0][0]] = rows.get(row["key"][0][0], 0) + row["value"]
        wanted = {f"probe_one ({NAME})": one, f"probe_two ({NAME})": two, f"on_signal ({NAME})": handled,
                  f"probe_deep ({NAME})": 1}
        expect(f"callers at {place}", rows, wanted)
        found = [functions(row["key"][0]) for row in done.maps["all"]["rows"]]
        # Of the deep one as many frames as fit; of the handler also what it has interrupted.
        deep = [frames for frames in found if frames[0] == "probe_deep"]
        expect("the deep one", [frames[:127] for frames in deep], [["probe_deep"] * 127])
        assert "[" in deep[0][-1], f"that it was cut is not said: {deep}"
        handlers = [frames for frames in found if frames[0] == "on_signal"]
        assert handlers and all("main" in frames for frames in handlers), handlers
        threads = [frames for frames in found if frames[0] in ("probe_one", "probe_two")]
        assert all(frames[1] == "run" for frames in threads) and len(threads) >= 2, threads


def check_limits_and_values():
    done = probe(f"entry:{NAME}!probe_target {{ @last[arg0 * 0] = stack(2); printf(\"%s\", stack(2)) }}"
                 f"entry:{NAME}!probe_deep /arg0 == 0/ {{ @deep[stack(3)] = count() }}"
                 f"timer:1ms {{ print(@last) }}", "--json")
    account(done)
    expect("three frames", [functions(row["key"][0]) for row in done.maps["deep"]["rows"]], [["probe_deep"] * 3])
    expect("two frames", functions(done.maps["last"]["rows"][0]["value"]), ["probe_deep"] * 2)
    # While it runs stacks are shown by number as long as their frames are not known; at the end all of these are told.
    told = {document["stack"]: functions(document["frames"]) for document in done.documents if "stack" in document}
    shown = {document["printf"] for document in done.documents if "printf" in document}
    numbers = {text for text in shown if text.startswith("stack ")}
    expect("stacks that were shown and not told", numbers - told.keys(), set())
    named = {functions(text.split("\n    ")[1:])[0] for text in shown - numbers}
    expect("who called", {frames[0] for frames in told.values()} | named, {"probe_one", "probe_two", "on_signal", "probe_deep"})


def check_text():
    done = probe(f"entry:{NAME}!probe_deep /arg0 == 0/ {{ @[stack(2), arg0] = count() }}")
    account(done)
    frame = f"    probe_deep ({NAME})\n"
    assert f"@[\n{frame}{frame}, 0]: 1\n" in done.stdout, done.stdout


def main():
    checks.run(check_callers, check_limits_and_values, check_text)


main()

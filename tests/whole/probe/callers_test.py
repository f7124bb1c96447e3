#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of one function out of another: what qut probe counts of each caller is what the program has counted itself.

    callers_test.py QUT SUBJECT LIBRARY
"""
import json
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import checks  # noqa: E402

QUT, SUBJECT, LIBRARY = (os.path.realpath(path) for path in sys.argv[1:4])
NAME, LATE = os.path.basename(SUBJECT), os.path.basename(LIBRARY)
PATIENCE_S = 120


def probe(script, *arguments):
    return subprocess.run([QUT, "probe", "--json", "-e", script, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE_S)


def values(text):
    """What each map without a key has; nothing was put into those that are not shown."""
    found = {}
    for line in text.splitlines():
        if line.startswith("{"):
            document = json.loads(line)
            found[document["map"]] = document["rows"][0]["value"] if document["rows"] else 0
    return found


def account(text):
    return {name: (int(calls), int(retvals)) for name, calls, retvals in re.findall(r"(\w+) calls (\d+) retvals (\d+)", text)}


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


def check_counts():
    direct = ("one", "two", "through", "between", "of_tail", "child", "rarely")
    script = "".join(f"call:{NAME}!callers_target in {NAME}!callers_{name} {{ @{name} = count() }}"
                     f"return:{NAME}!callers_target in {NAME}!callers_{name} /duration >= 0/ {{ @{name}_r = sum(retval) }}"
                     for name in direct)
    done = probe(script + f"entry:{LATE}!callers_library_noticed {{ @noticed = count() }}"
                 f"call:{NAME}!callers_target in {LATE}!callers_library_calls {{ @library = count() }}"
                 f"return:{NAME}!callers_target in {LATE}!callers_library_calls {{ @library_r = sum(retval) }}"
                 f"call:callers_leave in callers_leaves_last {{ @leaves = count() }}"
                 f"return:callers_leave in callers_leaves_last {{ @left = count() }}"
                 f"call:libc.so*!malloc in {NAME}!callers_allocates {{ @allocates = count(); @allocates_r = sum(arg0) }}"
                 f"call:{NAME}!callers_target in callers_tail {{ @tail = count() }}"
                 f"call:{NAME}!callers_target in callers_o* , call:callers_target in callers_two {{ @both = count() }}"
                 f"entry:{NAME}!callers_target {{ @all = count() }}", SUBJECT, LIBRARY, "4", "1000")
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    own, found = account(done.stdout), values(done.stdout)
    for name in (*direct, "library", "allocates"):
        expect(f"calls of {name}, and what they returned", (found[name], found[f"{name}_r"]), own[name])
    expect("calls that are left", (found["leaves"], found.get("left", 0)), (own["leaves"][0], 0))
    expect("a call that is a jump", found.get("tail", 0), 0)
    expect("of several callers", found["both"], sum(own[name][0] for name in ("one", "two", "of_tail")))
    expect("all calls", found["all"], sum(own[name][0] for name in (*direct, "library")))


def check_attached():
    with subprocess.Popen([SUBJECT, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            program.stdout.readline()
            script = "call:callers_target in callers_one { @one = count() } entry:callers_one { @ones = count() }" \
                     "call:callers_target in callers_two { @two = count() } timer:20ms { print(@two) }"
            with subprocess.Popen([QUT, "probe", "--json", "-e", script, "-p", str(program.pid)], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as prober:
                try:
                    while not json.loads(prober.stdout.readline())["rows"]:
                        pass
                    prober.send_signal(signal.SIGINT)
                    rest, said = prober.communicate(timeout=PATIENCE_S)
                finally:
                    prober.kill()
            expect(f"exit status ({said})", prober.returncode, 0)
            found = values(rest)
            # It may begin and end within one of the rounds.
            assert abs(found["one"] - 7 * found["ones"]) <= 14, found
            assert abs(found["one"] * 5 - found["two"] * 7) <= 7 * 5 * 2, found
            with open(f"/proc/{program.pid}/maps") as mapped:
                expect("what is left of us", [line for line in mapped if "qut" in line], [])
        finally:
            program.stdin.close()
            shown = program.stdout.read()
            program.wait(PATIENCE_S)
    expect("its end", program.returncode, 0)
    assert account(shown)["one"][0] >= found["one"], shown


def check_words():
    for script, status, wanted in (
            ("call:callers_target in callers_oen { @ = count() }", 7,
             "callers_oen: no function fits from which calls are meant, in any module that was loaded: did you mean"
             " \"callers_one\"?"),
            ("call:callers_traget in callers_one { @ = count() }", 7, "did you mean \"callers_target\"?"),
            ("call:callers_target { @ = count() }", 2, "-e:1:1: it needs \"in\" and who calls"),
            ("call:callers_target in !f { @ = count() }", 2, "!f: is no [MODULE!]NAME"),
            ("call:callers_target in m! { @ = count() }", 2, "m!: is no [MODULE!]NAME")):
        done = probe(script + f"entry:{LATE}!callers_library_noticed {{ @noticed = count() }}", SUBJECT, LIBRARY, "1", "1")
        expect(f"exit status of {script} ({done.stderr})", done.returncode, status)
        assert wanted in done.stderr, f"{wanted!r} is not in {done.stderr!r}"
    script = f"call:{NAME}!callers_target in {NAME}!callers_t* {{ @ = count() }}"
    done = probe(script, "--explain", SUBJECT)
    expect(f"--explain ({done.stderr})", done.stdout.splitlines()[0],
           f'whenever the one function of "{NAME}!callers_target" is called in one of 4 functions of "{NAME}!callers_t*":')
    done = probe(script, "--functions", SUBJECT)
    expect(f"--functions ({done.stderr})", (done.returncode, len(done.stdout.splitlines())), (0, 1))


def main():
    checks.run(check_words, check_counts, check_attached)


main()

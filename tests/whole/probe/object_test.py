#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qut probe with objects of clang -target bpf: what they count is what the program has counted; others are refused.

    object_test.py QUT SUBJECT SOURCE-TREE
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

QUT, SUBJECT, TREE = (os.path.realpath(path) for path in sys.argv[1:4])
OBJECTS = os.path.join(TREE, "tests/whole/probe/objects")
PATIENCE_S = 120
THREADS, CALLS = 4, 2000
REFUSED = ( # refused.c, by its numbers
    r"refused, instruction \d+: jumps back",
    r"refused, instruction \d+: a number where an address must be",
    r"refused, instruction \d+: outside of the stack",
    r"refused, instruction \d+: a number where an address must be",
    r"refused, instruction \d+: calls a function of its own",
    r"refused, instruction \d+: the address of data",
    r"refused, instruction \d+: calls what it may not",
    r"refused, instruction \d+: reads a field that the program does not claim",
    r"refused, instruction \d+: reads stack that is not written on every way there",
    r"it has \d+ instructions, and at most 1024 are looked at",
    r"refused, instruction \d+: an instruction that is not allowed",
    r"character 1: no probe begins so: did you mean \"entry\"\?")


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


def compile_object(clang, source, out, *more):
    return subprocess.run([clang, "-O2", "-target", "bpf", "-Wall", "-Wno-unused", "-I", os.path.join(TREE, "libqut/include"),
                           *more, "-c", source, "-o", out], capture_output=True, text=True, timeout=PATIENCE_S)


def probe(*arguments):
    done = subprocess.run([QUT, "probe", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=PATIENCE_S)
    documents = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    done.maps = {document["map"]: document["rows"] for document in documents if "map" in document}
    done.printed = [document["printf"] for document in documents if "printf" in document]
    return done


def check_counts(clang, folder):
    for more in (("-mcpu=v1",), ("-mcpu=v2",), ("-mcpu=v3",), ("-mcpu=v3", "-g")):
        path = os.path.join(folder, "counts.o")
        done = compile_object(clang, os.path.join(OBJECTS, "counts.c"), path, *more)
        expect(f"the compiler's exit status with {more} ({done.stderr})", done.returncode, 0)
        done = probe("--json", "-f", path, SUBJECT, str(THREADS), str(CALLS), "0")
        expect(f"exit status with {more} ({done.stderr})", done.returncode, 7)
        own = re.search(r"calls (\d+) retvals (\d+) handler (\d+) deep 14", done.stdout)
        counted, retvals, handled = map(int, own.groups())
        total = counted + 1 # that of probe_deep
        value = lambda name: done.maps[name][0]["value"]
        expect("maps that are shown", sorted(done.maps),
               ["callers", "calls", "last", "retvals", "same", "sizes", "sum", "texts", "timed"])
        expect("calls", value("calls"), total)
        expect("sum", value("sum"), THREADS * CALLS * (CALLS - 1) // 2 + 5 * handled + 1)
        expect("retvals", value("retvals"), retvals + 4)
        expect("durations above 0", value("timed"), total)
        texts = {tuple(row["key"]): row["value"] for row in done.maps["texts"]}
        expect("texts", texts, {("odd", 0): THREADS * CALLS // 2, ("even", 0): THREADS * CALLS // 2,
                                ("handler", 0): handled, ("deep", 0): 1})
        sizes = {cell["from"]: cell["count"] for cell in done.maps["sizes"][0]["cells"]}
        expect("sizes", sizes, {0: THREADS * 500 + handled + 1, 500: THREADS * 500, 1000: THREADS * 500, 1500: THREADS * 500})
        callers = {row["key"][0][0].split(" ")[0]: row["value"] for row in done.maps["callers"]}
        expect("callers", callers, {"work": THREADS * CALLS, "on_signal": handled, "probe_deep": 1})
        assert total - handled <= value("same") <= total, (value("same"), total)
        expect("what is said", done.printed, [f"deep: {depth}\n" for depth in range(10, -1, -1)] + ["ended\n"])


def check_attached(folder):
    with subprocess.Popen([SUBJECT, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            program.stdout.readline()
            done = probe("--json", "-f", os.path.join(folder, "counts.o"), "--duration", "1", "-p", str(program.pid))
            expect(f"exit status of -p ({done.stderr})", done.returncode, 0)
            calls, timed = (done.maps[name][0]["value"] for name in ("calls", "timed"))
            assert calls >= timed > 0, (calls, timed)
            with open(f"/proc/{program.pid}/maps") as mapped:
                expect("what is left of us", [line for line in mapped if "qut" in line], [])
        finally:
            program.stdin.close()
            expect("its end", program.wait(PATIENCE_S), 0)


def check_explained(folder):
    path = os.path.join(folder, "counts.o")
    done = probe("-f", path, "--explain", SUBJECT)
    expect(f"--explain ({done.stderr})", done.returncode, 0)
    for said in ("the one function of \"probe_subject!probe_work\"", "takes the stack of who called it", "looks at arg0, arg1, tid",
                 "changes @calls, @sum, @texts, @sizes, @callers, @last, @__own", "looks up @last", "says \"%s: %d\\n\", 24 bytes"):
        assert said in done.stdout, f"{said!r} is not in {done.stdout!r}"
    done = probe("-f", path, "--functions", SUBJECT)
    expect(f"--functions ({done.stderr})", (done.returncode, "probe_subject!probe_deep" in done.stdout), (0, True))
    done = probe("-f", path, "-a", "1", SUBJECT)
    expect("parameters of an object", (done.returncode, "an object has no parameters" in done.stderr), (2, True))


def check_refused(clang, folder):
    path = os.path.join(folder, "refused.o")
    for number, wanted in enumerate(REFUSED, 1):
        done = compile_object(clang, os.path.join(OBJECTS, "refused.c"), path, f"-DCASE={number}")
        expect(f"the compiler's exit status of case {number} ({done.stderr})", done.returncode, 0)
        done = probe("-f", path, "--explain")
        expect(f"exit status of case {number} ({done.stderr})", done.returncode, 2)
        assert re.search(wanted, done.stderr) and "section \"ent" in done.stderr, (number, wanted, done.stderr)


def check_damaged(folder):
    with open(os.path.join(folder, "counts.o"), "rb") as file:
        whole = file.read()
    path = os.path.join(folder, "damaged.o")
    for size in (4, 63, 64, 200, len(whole) // 2, len(whole) - 1):
        with open(path, "wb") as file:
            file.write(whole[:size])
        done = probe("-f", path, SUBJECT, "1", "1", "0")
        expect(f"exit status of {size} bytes", (done.returncode, "damaged.o: cut off: " in done.stderr), (2, True))
    done = probe("-f", SUBJECT, SUBJECT, "1", "1", "0") # a program of this machine
    expect("another machine", (done.returncode, "no object of \"clang -target bpf\"" in done.stderr), (2, True))


def main():
    clang = shutil.which("clang")
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "nothing.c")
        with open(source, "w") as file:
            file.write("int nothing;\n")
        if not clang or compile_object(clang, source, os.path.join(folder, "nothing.o")).returncode != 0:
            print("SKIP: no clang that compiles for bpf")
            sys.exit(77)
        try:
            check_counts(clang, folder)
            check_attached(folder)
            check_explained(folder)
            check_refused(clang, folder)
            check_damaged(folder)
        except (AssertionError, KeyError, IndexError, ValueError, AttributeError) as error:
            sys.exit(f"FAIL: {error!r}")


main()

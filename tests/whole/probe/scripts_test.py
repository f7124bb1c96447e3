#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library of scripts (probes/): what each counts is what the program did.

    scripts_test.py QUT SUBJECT THROWS A-SCRIPT-OF-THE-LIBRARY [TIMES]

THROWS "-": there is no compiler of C++. With TIMES redis is asked so many times as much.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import checks  # noqa: E402

QUT, SUBJECT = (os.path.realpath(path) for path in sys.argv[1:3])
THROWS, FOLDER = sys.argv[3], os.path.dirname(sys.argv[4])
NAME = os.path.basename(SUBJECT)
ASKED = 200 * (int(sys.argv[5]) if len(sys.argv) > 5 else 1)
PATIENCE_S = 120


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


def probe(script, parameters, *command, more=()):
    options = [word for value in parameters for word in ("-a", value)]
    return subprocess.run([QUT, "probe", "--json", "-f", script, *options, *more, *command], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE_S)


def run(script, parameters, *command):
    """What it shows, of a program that ends as it should."""
    done = probe(script, parameters, *(command or (SUBJECT,)))
    expect(f"exit status of {script} ({done.stderr})", done.returncode, 7)
    documents = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    maps = {document["map"]: document["rows"] for document in documents if "map" in document}
    return maps, [document["printf"] for document in documents if "printf" in document]


def function(frame):
    return frame.split(" (")[0]


def by_caller(rows):
    found = {}
    for row in rows:
        stack = next(part for part in row["key"] if isinstance(part, list))
        found[function(stack[0])] = found.get(function(stack[0]), 0) + row.get("value", row["updates"])
    return found


def check_all_are_known():
    done = subprocess.run([QUT, "probe", "--list-scripts"], capture_output=True, text=True, timeout=PATIENCE_S)
    expect(f"--list-scripts ({done.stderr})", done.returncode, 0)
    names = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    expect("its names", names, sorted(name[:-3] for name in os.listdir(FOLDER) if name.endswith(".qp")))
    assert len(done.stdout.splitlines()) >= 2 * len(names) and "SPDX" not in done.stdout, done.stdout
    for name in names:
        for script in (name, os.path.join(FOLDER, f"{name}.qp")):
            with open(os.path.join(FOLDER, f"{name}.qp")) as file:
                needs_functions = ":$1" in file.read()
            done = probe(script, ["libc.so*!read"] if needs_functions else [], more=("--explain",))
            expect(f"{script} is explained ({done.stderr})", (done.returncode, "whenever" in done.stdout), (0, True))
    done = probe("slow-calls", [], "true")
    expect("without what it needs", done.returncode, 2)
    assert "slow-calls:6:7: parameter 1 is missing: -a VALUE" in done.stderr, done.stderr
    done = probe("exceptions", ["x"], "true")
    assert done.returncode == 2 and "no parameter $1" in done.stderr, done.stderr
    done = probe("slow-call", ["x"], "true")
    assert done.returncode == 2 and "slow-call: No such file" in done.stderr, done.stderr


def check_who_calls():
    maps, _ = run("who-calls", [f"{NAME}!probe_try"], SUBJECT, "try", "300")
    expect("who calls", by_caller(maps[""]), {"probe_retries": 300})
    maps, _ = run("who-calls", [f"{NAME}!probe_try", "1"], SUBJECT, "try", "30")
    expect("frames", [len(row["key"][0]) for row in maps[""]], [1])


def check_errors():
    maps, _ = run("errors", [f"{NAME}!probe_try", "2"], SUBJECT, "try", "300")
    found = {row["key"][0]: (row["value"], function(row["key"][1][0])) for row in maps[""]}
    expect("errors", found, {-11: (50, "probe_retries"), -4: (50, "probe_retries")})


def check_allocations():
    maps, _ = run("allocations", [], SUBJECT, "small", "200", "large", "50")
    found = by_caller(maps["bytes"])
    expect("bytes", [found.get(name) for name in ("probe_takes_small", "probe_takes_large")], [4800, 5000000])
    cells = {function(row["key"][0][0]): row["cells"] for row in maps["sizes"]}
    expect("sizes", [cells["probe_takes_small"], cells["probe_takes_large"]],
           [[{"from": 16, "count": 200}], [{"from": 65536, "count": 50}]])


    maps, _ = run("allocations", ["2"], SUBJECT, "kinds", "40") # in a command some go through the agent
    ours = [row["value"] for row in maps["bytes"] if "probe_takes_all_kinds" in map(function, row["key"][0])]
    expect("all kinds", sum(ours), 100 * 40 * 8)


def check_alloc_and_free():
    script = ("alloc /size == 100/ { @given[address] = count(); @n = count() }"
              "free { @free[stack(2)] = count(); @taken[address] = count() }")
    done = subprocess.run([QUT, "probe", "--json", "-e", script, SUBJECT, "kinds", "30"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE_S)
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    maps = {document["map"]: document["rows"] for document in map(json.loads, done.stdout.splitlines())}
    expect("maps", sorted(maps), ["free", "given", "n", "taken"]) # without those that are its own affair
    expect("how often", maps["n"][0]["value"], 8 * 30)
    # What realloc is given is free, and so is what free is given, but for no memory at all.
    expect("freed", by_caller(maps["free"])["probe_takes_all_kinds"], 8 * 30)
    given = {row["key"][0]: row["value"] for row in maps["given"]}
    taken = {row["key"][0]: row["value"] for row in maps["taken"]}
    assert all(taken.get(address, 0) >= number for address, number in given.items()), (given, taken)


def check_lock_holders():
    maps, printed = run("lock-holders", ["15ms", "2"], SUBJECT, "hold", "3", "wait", "20", "quick-lock", "500")
    held, waited = by_caller(maps["held_us"]), by_caller(maps["waited_us"])
    expect("held", (held["probe_holds"], held["probe_waits"]), (503, 40))
    expect("taken", (waited["probe_holds"], waited["probe_waits"]), (503, 20))
    addresses = [line.split()[2] for line in printed] # on a busy machine also of others
    assert addresses and max(addresses.count(address) for address in addresses) >= 3, printed
    sums = by_caller(maps["held_sum_us"])
    assert sums["probe_holds"] >= 60000, sums


def check_opened_files():
    with tempfile.TemporaryDirectory() as folder:
        there, missing = os.path.join(folder, "there"), os.path.join(folder, "missing")
        open(there, "w").close()
        maps, _ = run("opened-files", [], SUBJECT, there, "20", missing, "30")
    opened = {row["key"][0]: row["value"] for row in maps["opened"]}
    expect("opened", (opened[there], opened[missing]), (20, 30))
    failed = {row["key"][0]: (row["value"], function(row["key"][1][0])) for row in maps["failed"]}
    expect("not there", (failed[missing], there in failed), ((30, "probe_looks_for"), False))


def check_call_values():
    _, printed = run("call-values", [f"{NAME}!probe_wait"], SUBJECT, "quick", "21", "quick", "1000")
    tid = printed[0].split()[0]
    lines = [re.sub(r"after \d+ us", "after T", re.sub(r"(0x\w+, 0x0), .*\)", r"\1)", line)) for line in printed]
    expect("lines", lines, [f"{tid} enters (0x15, 0x0)\n", f"{tid} leaves = 42, 0x2a, after T\n",
                            f"{tid} enters (0x3e8, 0x0)\n", f"{tid} leaves = 2000, 0x7d0, after T\n"])


def check_slow_calls():
    # On a busy machine quick ones may be slow, too.
    maps, printed = run("slow-calls", [f"{NAME}!probe_wait", "15ms"], SUBJECT, "quick", "1", "slow", "5", "slow", "77", "quick", "3")
    slow = [re.sub(r"^\d+ us: (\(0x\w+, 0x14), .*\)", r"\1)", line) for line in printed]
    assert {"(0x5, 0x14) = 10\n", "(0x4d, 0x14) = 154\n"} <= set(slow), printed
    expect("calls", sum(cell["count"] for cell in maps["us"][0]["cells"]), 4)
    expect("stacks of slow ones", by_caller(maps["slow"]), {"main": len(printed)})


def check_time_by_argument():
    maps, _ = run("time-by-argument", [f"{NAME}!probe_wait", "arg1"], SUBJECT, "slow", "1", "quick", "2", "quick", "3")
    found = {row["key"][0]: row["updates"] for row in maps["us"]}
    expect("calls by argument", found, {0: 2, 20: 1})
    slow = next(row for row in maps["us"] if row["key"] == [20])
    assert slow["cells"][0]["from"] >= 16384, slow


def check_exceptions():
    if THROWS == "-":
        print("SKIP: no compiler of C++")
        return
    maps, _ = run("exceptions", [], THROWS, "60")
    thrown = {row["key"][0]: (row["value"], function(row["key"][1][0])) for row in maps["thrown"]}
    expect("thrown", {name: number for name, (number, _) in thrown.items()}, {"St13runtime_error": 20, "l": 40})
    assert all("probe_throws" in caller for _, caller in thrown.values()), thrown
    caught = {re.sub(r"\(.*", "", name): number for name, number in by_caller(maps["caught"]).items()}
    expect("caught", caught, {"probe_swallows": 60, "main": 12})
    expect("rethrown", sum(row["value"] for row in maps["rethrown"]), 12)
    # What is thrown once more as it was kept stands for the first one: it has its type, and its address.
    script = "throw { @thrown[str(type)] = count(); @__last[tid] = address } catch { @caught[str(type)] = count() }" \
             "catch /address == @__last[tid]/ { @same = count() }"
    done = subprocess.run([QUT, "probe", "--json", "-e", script, THROWS, "60", "again"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE_S)
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    maps = {document["map"]: document["rows"] for document in map(json.loads, done.stdout.splitlines())}
    found = {name: {row["key"][0]: row["value"] for row in maps[name]} for name in ("thrown", "caught")}
    expect("types", found, {"thrown": {"St13runtime_error": 20, "l": 40}, "caught": {"St13runtime_error": 40, "l": 80}})
    expect("the same object", maps["same"][0]["value"], 120)


def ask(server, *words):
    """A command of redis, and its whole answer."""
    server.sendall(b"".join([b"*%d\r\n" % len(words)] + [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]))
    file = server.makefile("rb")
    line = file.readline()
    return file.read(int(line[1:]) + 2) if line[:1] == b"$" and int(line[1:]) >= 0 else line


def connect(path, program):
    until = time.monotonic() + PATIENCE_S
    while True:
        assert program.poll() is None, "the server has ended"
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(path)
            return server
        except OSError:
            server.close()
            assert time.monotonic() < until, "the server does not come up"
            time.sleep(0.02)


def check_redis():
    redis = shutil.which("redis-server")
    version = redis and subprocess.run([redis, "--version"], capture_output=True, text=True).stdout
    if not version or "v=7.0." not in version:
        print("SKIP: no redis-server of version 7.0")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        output = open(os.path.join(folder, "out"), "w+")
        program = subprocess.Popen([QUT, "probe", "--json", "-f", "redis-commands", "-a", "100s", redis, "--port", "0",
                                    "--unixsocket", path, "--save", "", "--dir", folder, "--logfile", f"{folder}/log"],
                                   stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            with connect(path, program) as server:
                for i in range(ASKED):
                    ask(server, b"SET", b"key:%d" % i, b"value")
                    ask(server, b"get", b"key:%d" % (i // 2))
                    ask(server, b"LPUSH", b"list", b"%d" % i)
                own = ask(server, b"INFO", b"commandstats").decode()
                server.sendall(b"SHUTDOWN NOSAVE\r\n")
            _, said = program.communicate(timeout=PATIENCE_S)
        finally:
            if program.poll() is None: # the server as well
                os.killpg(program.pid, signal.SIGKILL)
                program.wait()
        expect(f"exit status of the server ({said})", program.returncode, 0)
        output.seek(0)
        maps = {document["map"]: document["rows"] for document in map(json.loads, output) if "map" in document}
        output.close()
    wanted = {name: int(calls) for name, calls in re.findall(r"cmdstat_(\w+):calls=(\d+)", own)}
    expect("what it was asked", [wanted.get(name) for name in ("set", "get", "lpush")], [ASKED] * 3)
    calls = {row["key"][0]: row["value"] for row in maps["calls"]}
    times = {row["key"][0]: row["updates"] for row in maps["us"]}
    for name, number in wanted.items():
        expect(f"calls of {name}, and returns", (calls.get(name), times.get(name)), (number, number))


def main():
    checks.run(check_all_are_known, check_who_calls, check_errors, check_allocations, check_alloc_and_free, check_lock_holders, check_opened_files,
               check_call_values, check_slow_calls, check_time_by_argument, check_exceptions, check_redis)


main()

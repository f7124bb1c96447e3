#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qut probe, as it is called: what scripts count is what the program has counted itself.

    probe_test.py QUT SUBJECT ARGUMENTS LATER
"""
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import checks  # noqa: E402

import prometheus_text

QUT, SUBJECT, ARGUMENTS, LATER = (os.path.realpath(path) for path in sys.argv[1:5])
NAME, TYPED, LATE = (os.path.basename(path) for path in (SUBJECT, ARGUMENTS, LATER))
PATIENCE_S = 120
RUNS_ON_S = 5 # at most, after a kill; on a machine with much load


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


def check_lot():
    threads, calls = 4, 10000
    done = probe(f"entry:{NAME}!probe_work /random % 4 == 0/ {{ @drawn = count(); @tid[tid] = count() }}"
                 f"entry:{NAME}!probe_work {{ @bits[random >> 28] = count(); @most = max(random); @next[random] = count() }}",
                 SUBJECT, str(threads), str(calls), "0")
    found = maps(done.lines)
    total = account(done)[0] + 1
    # Six standard deviations on either side: sqrt(n p (1 - p)).
    for what, got, share in (("drawn", value(found["drawn"]), 1 / 4),
                             *((f"upper bits {row['key']}", row["value"], 1 / 16) for row in found["bits"]["rows"])):
        far = 6 * (total * share * (1 - share)) ** 0.5
        assert abs(got - total * share) < far, f"{what}: {got} of {total}"
    expect("upper bits", len(found["bits"]["rows"]), 16)
    assert 0.99 * 2**32 < value(found["most"]) < 2**32, found["most"]
    # Threads have numbers of their own: of 4,096 keys that fit hardly one comes twice.
    assert sum(row["value"] > 1 for row in found["next"]["rows"]) <= 2, found["next"]["rows"]
    assert len(found["tid"]["rows"]) >= threads, found["tid"]


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


def until_interrupted(pid, script):
    """Probes until something has been counted and shown. What is shown at the end."""
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


def shared_memory(pid):
    """A copy of its descriptor of what its programs write: it stays when that process is gone."""
    for number in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{number}"
        if os.readlink(path).startswith("/memfd:qut-probe"):
            return open(path, "rb", buffering=0)
    raise AssertionError("it has no memory of maps")


def maps_in(memory):
    """The bytes of all maps: struct qut_probe_live (formats/qut_probe_live.h) says where they are."""
    maps_begin, maps_end = struct.unpack_from("<QQ", os.pread(memory.fileno(), 48, 0), 32)
    return os.pread(memory.fileno(), maps_end - maps_begin, maps_begin)


def until_killed(pid):
    """How long its programs ran on, in seconds; what they write is looked at for as long again as they may."""
    script = f"entry:{NAME}!probe_work {{ @n = count() }} timer:20ms {{ print(@n) }}"
    with subprocess.Popen([QUT, "probe", "-q", "-e", script, "-p", str(pid)], stdout=subprocess.PIPE) as killed:
        try:
            assert killed.stdout.readline(), "it ended before it had counted anything"
            memory = shared_memory(killed.pid)
            before, until = maps_in(memory), time.monotonic() + PATIENCE_S
            while maps_in(memory) == before: # print comes before the first call is counted
                assert time.monotonic() < until, "nothing is counted"
        finally:
            killed.kill()
    with memory:
        began = last = time.monotonic()
        before = maps_in(memory)
        while time.monotonic() < last + RUNS_ON_S:
            time.sleep(0.01)
            now = maps_in(memory)
            if now != before:
                before, last = now, time.monotonic()
                assert last < began + RUNS_ON_S, "programs run on after the tool was killed"
    return last - began


def check_attached():
    with subprocess.Popen([SUBJECT, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            program.stdout.readline()
            for _ in range(2):
                found = until_interrupted(program.pid, f"entry:{NAME}!probe_work {{ @n = count() }}"
                                          f"return:{NAME}!probe_work {{ @d = count(); @s[stack(1)] = count() }}"
                                          "timer:20ms { print(@d) }")
                assert value(found["n"]) >= value(found["d"]) > 0, found
                expect("who calls", [row["key"] for row in found["s"]["rows"]], [[[f"work ({NAME})"]]])
                with open(f"/proc/{program.pid}/maps") as mapped:
                    expect("what is left of us", [line for line in mapped if "qut" in line], [])
            # Who is killed leaves the program as it is: it runs on.
            print(f"programs ran on for {until_killed(program.pid):.3f} s after a kill")
            expect("it runs on", program.poll(), None)
            left = [name for name in os.listdir(os.environ["TMPDIR"]) if name.startswith("qut-probe-")]
            probe(f"entry:{NAME}!probe_work {{ @n = count() }}", SUBJECT, "1", "1", "0")
            still = [name for name in os.listdir(os.environ["TMPDIR"]) if name.startswith("qut-probe-")]
            expect("folders that are left, and then", (len(left), still), (1, []))
        finally:
            program.stdin.close()
            try:
                program.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                program.kill()
    expect("its end", program.returncode, 0)


def check_names_while_it_runs():
    with subprocess.Popen([SUBJECT, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            program.stdout.readline()
            with subprocess.Popen([QUT, "probe", "--json", "-q", "-p", str(program.pid), "-e",
                                   f"entry:{NAME}!probe_work {{ @s[stack(1)] = count() }} timer:50ms {{ print(@s) }}"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as prober:
                keys = ["stack "]
                while keys and isinstance(keys[0], str):
                    keys = [row["key"][0] for row in json.loads(prober.stdout.readline())["rows"]] or keys
                expect("who calls", keys, [[f"work ({NAME})"]])
                prober.send_signal(signal.SIGINT)
                prober.communicate(timeout=PATIENCE_S)
            expect("exit status", prober.returncode, 0)
        finally:
            program.kill()


def check_arguments():
    calls = 1001
    noticed = f"entry:{LATE}!probe_later {{ @noticed = count() }}" # the program waits for that
    done = probe(noticed + "entry:probe_take { @all = count() }"
                 "entry:probe_take { @calls = count(); @sizes = sum(args->item->size); @kinds = sum(args->item->kind);"
                 " @nexts = sum(args->item->next->size); @counts = sum(args->count);"
                 " @names[str(args->item->name), str(args->label)] = count() }"
                 "return:probe_take /retval->size < 0/ { @negative = count() }", ARGUMENTS, LATER, str(calls))
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    found = maps(done.lines)
    own = re.search(r"sizes (-?\d+) kinds (\d+) nexts (\d+) counts (-?\d+) negative (\d+)", done.stdout)
    for name, number in zip(("sizes", "kinds", "nexts", "counts", "negative"), own.groups()):
        expect(name, value(found[name]), int(number))
    names = {tuple(row["key"]): row["value"] for row in found["names"]["rows"]}
    expect("names", names, {("all of 8", "odd"): calls // 2, ("even", "even"): calls // 2 + 1})
    # The library comes later. Its function has other arguments by these names: only what asks for none runs there.
    expect("calls of the one whose arguments are known", value(found["calls"]), calls)
    expect("calls of what is noticed", value(found["noticed"]), calls)
    expect("calls of both", value(found["all"]), 2 * calls)
    assert "3 functions of 2 modules probed" in done.stderr, done.stderr
    assert "1 functions were not known when the script asked" in done.stderr, done.stderr
    done = probe(noticed + "entry:probe_take { @sizes = sum(args->item->size) }", ARGUMENTS, LATER, str(calls))
    expect("sizes, alone", value(maps(done.lines)["sizes"]), int(own.group(1)))
    assert "2 functions of 2 modules probed" in done.stderr, done.stderr


def check_list():
    done = subprocess.run([QUT, "probe", "--list", f"{TYPED}!probe_*", "--list", "libc.so*!vfork", ARGUMENTS],
                          capture_output=True, text=True, timeout=PATIENCE_S)
    expect(f"--list ({done.stderr})", done.returncode, 0)
    lines = done.stdout.splitlines()
    prototype = "probe_take(struct probe_item *item, int count, const char *label) -> struct probe_item *"
    expect("its lines", [len(lines), lines[0].endswith(f"  {TYPED}!{prototype}")], [2, True])
    assert re.match(r"refused .*  libc\.so\.6!.*vfork.*  \(.*\)$", lines[1]), lines
    assert "1 functions would be probed, 1 are refused" in done.stderr, done.stderr
    done = probe("entry:probe_take { @ = sum(args->item->size) } end { printf(\"\") }", "--functions", ARGUMENTS)
    expect(f"--functions ({done.stderr})", (done.returncode, len(done.lines), prototype in done.stdout), (0, 1, True))
    done = probe(f"entry:{NAME}!probe_work {{ @ = count() }}", "--functions", SUBJECT, "1", "1", "1")
    expect("without debug information: the name alone", done.stdout.endswith(f"  {NAME}!probe_work\n"), True)
    done = probe("end { printf(\"\") }", "--functions", SUBJECT)
    expect(f"a script without places ({done.stderr})", done.returncode, 2)


def check_attached_arguments():
    with subprocess.Popen([ARGUMENTS, LATER, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            program.stdout.readline()
            for module, size in ((TYPED, 7), (LATE, 9)):
                found = until_interrupted(program.pid, f"entry:{module}!probe_take {{ @s[args->item->size] = count() }}"
                                          "timer:20ms { print(@s) }")
                expect(f"sizes in {module}", [row["key"] for row in found["s"]["rows"]], [[size]])
            done = probe("entry:probe_take { @s = sum(args->item->size) }", "-p", str(program.pid))
            expect("exit status of what is not the same everywhere", done.returncode, 2)
            assert "-e:1:41: it is not the same in probe_take and probe_take" in done.stderr, done.stderr
            done = probe("entry:probe_take { @s = count() }", "--explain", "-p", str(program.pid))
            expect(f"how many functions ({done.stderr})", "one of 2 functions of \"probe_take\"" in done.stdout, True)
        finally:
            program.stdin.close()
            try:
                program.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                program.kill()
    expect("its end", program.returncode, 0)


def check_prometheus():
    threads, calls = 3, 1000
    done = subprocess.run([QUT, "probe", "--prometheus", "-e",
                           f'entry:{NAME}!probe_work {{ @n = count(); @sizes[str(arg1)] = hist(arg0 - 1); @mean[str(arg1)] = avg(arg0);'
                           f' @n_total = max(arg0); @steps = lhist(arg0, 0, 500, 100); @who[pid, stack(1)] = sum(arg0) }}'
                           'begin { printf("begin\\n") } timer:1ms { print(@n) } end { printf("end\\n") }',
                           SUBJECT, str(threads), str(calls), "0"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    _, _, handled = account(done)
    found = prometheus_text.read(re.sub(r"^calls .*\n", "", done.stdout, flags=re.MULTILINE))
    expect("types", {name: family.kind for name, family in found.items()},
           {"qut_probe_n_total": "counter", "qut_probe_sizes": "histogram", "qut_probe_mean": "summary",
            "qut_probe_n_total_": "gauge", "qut_probe_steps": "histogram", "qut_probe_who": "gauge",
            "qut_probes_lost_updates_total": "counter"})
    numbers = {}
    for family in found.values():
        for (name, labels), number in family.samples.items():
            numbers[name, labels] = number
    total = threads * calls + handled + 1
    expect("calls", (numbers["qut_probe_n_total", ()], numbers["qut_probe_n_total_", ()]), (total, calls - 1))
    odd = [number for number in range(calls) if number % 2]
    own = (("arg1", "odd"),)
    expect("an average", [numbers[f"qut_probe_mean_{what}", own] for what in ("sum", "count")],
           [threads * sum(odd), threads * len(odd)])
    expect("a histogram's sum", numbers["qut_probe_sizes_sum", own], threads * (sum(odd) - len(odd)))
    for bound in (-1, 0, 1, 3, 255, 511):
        expect(f"up to {bound}", numbers["qut_probe_sizes_bucket", (*own, ("le", str(bound)))],
               threads * sum(number - 1 <= bound for number in odd))
    everything = [*range(calls)] * threads + [5] * handled + [1]
    for bound in (99, 299, 499):
        expect(f"up to {bound} in steps", numbers["qut_probe_steps_bucket", (("le", str(bound)),)],
               sum(number <= bound for number in everything))
    expect("all steps", numbers["qut_probe_steps_bucket", (("le", "+Inf"),)], total)
    callers = {dict(labels)["stack"]: number for (name, labels), number in numbers.items() if name == "qut_probe_who"}
    expect("by caller", (callers[f"work ({NAME})"], callers[f"on_signal ({NAME})"]),
           (threads * sum(range(calls)), 5 * handled))
    assert done.stderr.count("begin\n") == 1 and "\nend\n" in done.stderr, done.stderr
    done = probe("entry:open { @ = count() }", "true", more=("--prometheus",))
    expect("two forms", (done.returncode, "not with --json" in done.stderr), (2, True))


def switched_off(said):
    """The share of processor time, and the process."""
    found = re.search(r"--budget: probes took ([\d.]+) % of the processor time of process (\d+), in ([\d.]+) s", said)
    return found and (float(found.group(1)), int(found.group(2)))


def check_budget():
    threads, calls = 2, 1000000
    expensive = f"entry:{NAME}!probe_work {{ @n = count(); @[str(arg1, 200), stack()] = count() }}"
    done = probe(expensive, SUBJECT, str(threads), str(calls), "0", more=("--budget", "5"))
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    counted, retvals, handled = account(done)
    expect("the program's own result", (counted, retvals),
           (threads * calls + handled, threads * sum(3 * i + 1 for i in range(calls)) + 16 * handled))
    share = switched_off(done.stderr)
    assert share and 5 < share[0] <= 100, done.stderr
    found = maps(done.lines)
    assert 0 < value(found["n"]) < counted, found["n"]
    expect("what was counted until then", sum(row["value"] for row in found[""]["rows"]), value(found["n"]))
    # What is within it stays.
    done = probe(f"entry:{NAME}!probe_deep {{ @ = sum(arg0) }}", SUBJECT, str(threads), "1000", "0", more=("--budget", "50"))
    expect("a script that takes little", (done.returncode, value(maps(done.lines)[""]), switched_off(done.stderr)), (7, 55, None))
    for wrong in ("0", "100", "x", "5%"):
        done = probe(expensive, "true", more=("--budget", wrong))
        assert done.returncode == 2 and "a percentage from 0.1 to 99.9" in done.stderr, (wrong, done.stderr)


def check_attached_budget():
    with subprocess.Popen([SUBJECT, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            program.stdout.readline()
            with subprocess.Popen([QUT, "probe", "--json", "--budget", "5", "-p", str(program.pid), "-e",
                                   f"entry:{NAME}!probe_work {{ @n = count(); @[str(arg1, 200), stack()] = count() }}"
                                   "timer:100ms { print(@n) }"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as prober:
                said = ""
                while "--budget" not in said:
                    line = prober.stderr.readline()
                    assert line, f"it ended: {said}"
                    said += line
                expect("the process", switched_off(said)[1], program.pid)
                prober.send_signal(signal.SIGINT)
                shown, rest = prober.communicate(timeout=PATIENCE_S)
            expect(f"exit status ({said}{rest})", prober.returncode, 1)
            assert value(maps(shown.splitlines())["n"]) > 0, shown
            found = until_interrupted(program.pid, f"entry:{NAME}!probe_work {{ @n = count() }} timer:20ms {{ print(@n) }}")
            assert value(found["n"]) > 0, found # it goes on, and can be probed again
        finally:
            program.stdin.close()
            try:
                program.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                program.kill()
    expect("its end", program.returncode, 0)


def check_mistakes():
    asks = f"entry:{TYPED}!probe_take {{ @s = sum(args->item->sice) }}"
    for arguments, status, wanted in (((ARGUMENTS, LATER, "1"), 2, "no member of this name: did you mean \"size\"?"),
                                      (("--explain",), 2, "it is known of a program only: a COMMAND, or -p PID"),
                                      (("/nowhere/at/all",), 127, "/nowhere/at/all")):
        done = probe(asks, *arguments)
        expect(f"exit status with {arguments} ({done.stderr})", done.returncode, status)
        assert wanted in done.stderr, f"{wanted!r} is not in {done.stderr!r}"
    done = probe(asks.replace("sice", "size"), "--explain", ARGUMENTS)
    expect(f"--explain ({done.stderr})", (done.returncode, "the one function of" in done.stdout), (0, True))
    done = probe("entry:open { @n = count() }", more=("--explain",))
    expect(f"--explain ({done.stderr})", (done.returncode, "open" in done.stdout), (0, True))
    for script, status, wanted in (
            ("entry:x { @n = cont() }", 2, "-e:1:16: no value has this name: did you mean \"count\"?"),
            ("alocc { @n = count() }", 2, "-e:1:1: no probe begins so: did you mean \"alloc\"?"),
            ("end { printf(\"x\") }", 2, "no place in a program"),
            ("entry:libc.so*!maloc { @n = count() }", 1, "no function fits, in any module that was loaded: did you mean \"malloc\"?"),
            ("entry:libcc!malloc { @n = count() }", 1, "did you mean the module \"libc\"?"),
            ("entry:libc.so*!maloc* { @n = count() }", 1, "in any module that was loaded\n"),
            ("entry:no_such_function_anywhere { @n = count() }", 1, "no function fits")):
        done = probe(script, "true")
        expect(f"exit status of {script}", done.returncode, status)
        assert wanted in done.stderr, f"{wanted!r} is not in {done.stderr!r}"
    for arguments, wanted in ((("-f", "slow-cals"), "did you mean \"slow-calls\"?"), (("-f", "nothing-near"), "--list-scripts"),
                              (("--list", f"{NAME}!probe_wrok"), "is linked with: did you mean \"probe_work\"?")):
        done = subprocess.run([QUT, "probe", *arguments, SUBJECT], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE_S)
        expect(f"exit status with {arguments}", done.returncode, 2)
        assert wanted in done.stderr, f"{wanted!r} is not in {done.stderr!r}"


def main():
    folder = tempfile.TemporaryDirectory() # of one that is killed something is left there
    os.environ["TMPDIR"] = folder.name
    checks.run(check_mistakes, check_prometheus, check_budget, check_attached_budget, check_counts, check_lot, check_children, check_records, check_hostile, check_attached,
               check_names_while_it_runs, check_arguments, check_list, check_attached_arguments)


main()

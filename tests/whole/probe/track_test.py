#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qut probe -o: the trace has the values of maps as counters and what is printed as instants, beside samples. The last
value is what the tool shows, which is what the program has counted itself.

    track_test.py QUT SUBJECT TRACE_PROCESSOR
"""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import checks  # noqa: E402
from waiting_program import Program

QUT, SUBJECT, TRACE_PROCESSOR = (os.path.realpath(path) for path in sys.argv[1:4])
NAME = os.path.basename(SUBJECT)
PATIENCE_S = 120
WORK = f"entry:{NAME}!probe_work"


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


def await_that(what, is_so):
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def run(*command, **more):
    return subprocess.run([QUT, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, **more)


def probe(script, *arguments, more=(), **how):
    return run("probe", "--json", "-o", "t.qtrace", "-e", script, *more, *arguments, **how)


def maps(lines):
    documents = [json.loads(line) for line in lines if line.startswith("{")]
    return {document["map"]: document["rows"] for document in documents if "map" in document}


def printed(lines):
    documents = [json.loads(line) for line in lines if line.startswith("{")]
    return [document["printf"].rstrip("\n") for document in documents if "printf" in document]


class Trace:
    """As it is in Chrome's format: another reader than those of the tool."""
    def __init__(self, *paths, statuses=(0,)):
        done = run("export", "-q", "-f", "chrome", "-o", "t.json", *paths)
        assert done.returncode in statuses, done
        with open("t.json") as file:
            self.events = json.load(file)["traceEvents"]
        names = {event["pid"]: event["args"]["name"] for event in self.events if event["name"] == "process_name"}
        self.ours = [pid for pid, name in names.items() if re.match(r"qut(@\S*)? probe$", name)]
        self.counters = {}
        for event in self.events:
            if event["ph"] == "C" and event["pid"] in self.ours:
                self.counters.setdefault(event["name"], []).append((event["ts"], event["args"]["value"]))
        self.instants = [event["name"] for event in self.events if event["ph"] == "i" and event["pid"] in self.ours]
        self.slices = sum(event["ph"] == "B" and event["pid"] not in self.ours for event in self.events)

    def last(self, name):
        assert name in self.counters, (name, sorted(self.counters))
        return self.counters[name][-1][1]


def ticks(path):
    return json.loads(run("info", "--json", path).stdout)["kinds"].get("cpu", 0)


def keyed(name, row):
    parts = (" <- ".join(part) if isinstance(part, list) else str(part) for part in row["key"])
    return f"@{name}[{', '.join(parts)}]" if row["key"] else f"@{name}"


def check_last_values(trace, shown):
    """Each counter's last value is what its map was shown with; all but the greatest of large maps have one."""
    names = 0
    for name, rows in shown.items():
        has = 0
        for row in rows:
            counter = keyed(name, row)
            if "cells" in row or f"{counter}: mean" in trace.counters:
                whole = row["sum"] / row["updates"] if "cells" in row else row["value"]
                expect(f"{counter}: count", trace.last(f"{counter}: count"), row["updates"])
                mean = trace.last(f"{counter}: mean")
                assert abs(mean - whole) <= 0.51, (counter, mean, whole)
                has, names = has + 1, names + 2
            elif counter in trace.counters:
                expect(counter, trace.last(counter), row["value"])
                has, names = has + 1, names + 1
        for row in rows[-16:]:
            assert keyed(name, row) in trace.counters or f"{keyed(name, row)}: mean" in trace.counters, (keyed(name, row), sorted(trace.counters))
        if has < len(rows):
            expect(f"other keys of {name}", trace.last(f"@{name}: other keys"), len(rows) - has)
            names += 1
        names += f"@{name}: updates without room" in trace.counters
        names += has == len(rows) and f"@{name}: other keys" in trace.counters
    expect("counters in all", len(trace.counters), names)


def check_perfetto(trace):
    """Perfetto's own trace processor finds the same values; negative ones, too."""
    done = run("export", "-q", "-f", "perfetto", "-o", "t.pftrace", "t.qtrace")
    expect(f"exit status of the export ({done.stderr})", done.returncode, 0)
    try:
        asked = subprocess.run(["node", TRACE_PROCESSOR, "t.pftrace", "select t.name as name, cast(value as int) as value from counter c"
                                " join process_counter_track t on c.track_id = t.id join process p using (upid)"
                                " where p.name = 'qut probe' order by ts"], capture_output=True, text=True, timeout=PATIENCE_S)
    except FileNotFoundError:
        asked = None
    if not asked or asked.returncode == 77:
        print("SKIP: Perfetto's trace processor is not here")
        return
    expect(f"exit status of the trace processor ({asked.stderr})", asked.returncode, 0)
    found = {}
    for row in map(json.loads, asked.stdout.splitlines()):
        found.setdefault(row["name"], []).append(row["value"])
    expect("counters in Perfetto", found, {name: [value for _, value in values] for name, values in trace.counters.items()})


def watched_command(threads, calls):
    return probe(f'begin {{ printf("begins\\n") }} end {{ @end = 7; printf("ends\\n") }}'
                 f"{WORK} {{ @n = count(); @down = sum(0 - arg0); @text[str(arg1), arg0 & 1] = count(); @largest = max(arg0);"
                 f" @sizes = hist(arg0); @mean[tid] = avg(arg0); @steps = lhist(arg0, 0, 1000, 100); @__own = count() }}"
                 f"return:{NAME}!probe_work {{ @stacks[stack(1)] = count() }}"
                 'timer:50ms { printf("a\\ttick,\\n\\"%d\\"", 0 - 5) }', SUBJECT, str(threads), str(calls), "0", more=("--every", "20"))


def check_command():
    # Where others have the processors the tool may have no turn before the program ends: then one that takes longer.
    for calls in (200000, 1000000, 5000000):
        done = watched_command(4, calls)
        if len(Trace("t.qtrace").counters["@n"]) > 3:
            break
        os.unlink("t.qtrace")
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    own = re.search(r"calls (\d+) retvals (\d+) handler (\d+)", done.stdout)
    trace, shown = Trace("t.qtrace"), maps(done.stdout.splitlines())
    expect("the program's own account", trace.last("@n"), int(own.group(1)) + 1)
    assert trace.last("@down") < 0, trace.counters["@down"]
    expect("what end has put there", trace.last("@end"), 7)
    check_last_values(trace, shown)
    # Nothing twice but the last, times rise, and count() never falls.
    for name, values in trace.counters.items():
        expect(f"{name}: times", [time for time, _ in values], sorted(time for time, _ in values))
        written = [value for _, value in values]
        assert all(a != b for a, b in zip(written[:-1], written[1:-1])), (name, written)
    counted = [value for _, value in trace.counters["@n"]]
    expect("counts rise", counted, sorted(counted))
    assert len(counted) > 3, counted
    lines = printed(done.stdout.splitlines())
    expect("instants", trace.instants, [re.sub("[\t\n]", " ", line) for line in lines])
    begins = next(event["ts"] for event in trace.events if event["name"] == "begins")
    assert begins < trace.counters["@n"][0][0], (begins, trace.counters["@n"])
    expect("their first, their last", (trace.instants[0], trace.instants[-1]), ("begins", "ends"))
    assert trace.slices > 0, "no samples"
    check_perfetto(trace)
    info = json.loads(run("info", "--json", "t.qtrace").stdout)
    expect("marks", info["mark_kinds"], {"instant": len(lines), "counter": sum(map(len, trace.counters.values()))})
    assert re.search(r"t\.qtrace: \d+ counters and \d+ lines of the script", done.stderr), done.stderr
    expect("nothing beside", glob.glob("t.qtrace*"), ["t.qtrace"])


def check_keys():
    done = probe(f"{WORK} {{ @[arg0] = sum(arg0); @few[arg0 & 3] = count() }} timer:30ms {{ clear(@few) }} end {{ clear(@few) }}",
                 SUBJECT, "2", "20000", "0", more=("--samples", "0", "--every", "10"))
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    trace, shown = Trace("t.qtrace"), maps(done.stdout.splitlines())
    expect("keys of the map that is cleared", shown["few"], [])
    assert all(values[-1][1] == 0 for name, values in trace.counters.items() if name.startswith("@few[")), trace.counters
    del shown["few"]
    trace.counters = {name: values for name, values in trace.counters.items() if not name.startswith("@few")}
    check_last_values(trace, shown)
    others = trace.last("@: other keys")
    expect("counters and other keys", others + sum(name.startswith("@[") for name in trace.counters), len(shown[""]))
    assert f"{others:,} keys have no counter" in done.stderr, done.stderr
    assert trace.last("@: updates without room") > 0
    expect("without ticks", ticks("t.qtrace"), 0)


def check_many_lines():
    text = "more text than the trace has room for, " * 5
    done = probe(f'{WORK} {{ printf("%d {text}\\n", arg0) }}', SUBJECT, "1", "40000", "0", more=("--samples", "0"))
    expect(f"exit status ({done.stderr[-2000:]})", done.returncode, 7)
    lines, trace = printed(done.stdout.splitlines()), Trace("t.qtrace")
    lost = trace.last("printf: lines without room")
    assert lost > 0 and f"0 values and {lost:,} lines of printf had no room" in done.stderr, (lost, done.stderr)
    expect("lines that are there, and lost ones", len(trace.instants) + lost, len(lines))
    expect("the first ones", trace.instants[:1000], lines[:1000])


def check_children():
    done = probe(f"{WORK} {{ @[pid] = count(); @all = count() }}", SUBJECT, "2", "5000", "3")
    own = int(re.search(r"calls (\d+)", done.stdout).group(1))
    trace = Trace("t.qtrace")
    check_last_values(trace, maps(done.stdout.splitlines()))
    expect("of all processes", trace.last("@all"), own + 1 + 3 * 5000)


def attached(pid, script, *more):
    return subprocess.Popen([QUT, "probe", "--json", "-q", "-o", "t.qtrace", "-e", script, "-p", str(pid), *more],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def mapped(pid):
    with open(f"/proc/{pid}/maps") as file:
        return [line for line in file if "qut" in line]


def end(tool, how, status):
    how()
    out, said = tool.communicate(timeout=PATIENCE_S)
    expect(f"exit status ({said})", tool.returncode, status)
    return maps(out.splitlines()[:-2] + out.splitlines()[-2:])


SHOWN = f'{WORK} {{ @n = count(); @s[stack(1)] = sum(arg0); @__seen = 1 }} timer:100ms /@__seen/ {{ printf("seen\\n") }}'


def until_seen(tool, times=8):
    for _ in range(times):
        expect("a line", json.loads(tool.stdout.readline()), {"printf": "seen\n"})


def check_attached():
    with Program(SUBJECT) as program:
        for _ in range(2):
            with attached(program.pid, SHOWN) as tool:
                until_seen(tool)
                shown = end(tool, lambda: tool.send_signal(signal.SIGINT), 0)
            trace = Trace("t.qtrace")
            check_last_values(trace, shown)
            expect("who calls", list(trace.counters), ["@n", f"@s[work ({NAME})]"])
            assert len(trace.counters["@n"]) > 3 and trace.slices > 0 and "seen" in trace.instants, trace.counters
            expect("what is left of us", mapped(program.pid), [])
        # What was there is kept under another name.
        expect("files", sorted(glob.glob("t.qtrace*")), ["t.qtrace", *sorted(glob.glob("t.qtrace.*"))])
        assert glob.glob("t.qtrace.*"), "the first recording is gone"


def check_killed_program():
    with Program(SUBJECT) as program:
        with attached(program.pid, SHOWN) as tool:
            until_seen(tool)
            shown = end(tool, program.kill, 0)
        trace = Trace("t.qtrace", statuses=(0, 1))
        check_last_values(trace, shown)
        assert trace.last("@n") > 0 and trace.slices > 0


def check_killed_tool():
    with Program(SUBJECT) as program:
        with attached(program.pid, SHOWN) as tool:
            until_seen(tool, 60)
            tool.kill()
            tool.wait()
        parts = glob.glob("t.qtrace.parts/*.qtrace")
        values = [part for part in parts if os.path.basename(part).startswith(f"{tool.pid}-")]
        expect("parts with values", len(values), 1)
        trace = Trace("t.qtrace", *values, statuses=(1,))
        assert trace.last("@n") > 0 and trace.slices > 0, trace.counters
        # What came in the last half second may be missing.
        assert trace.instants.count("seen") > 10 and len(trace.counters["@n"]) > 10, (trace.instants, trace.counters)
        # The next one moves both away, and takes out what was left.
        with attached(program.pid, SHOWN) as tool:
            until_seen(tool)
            check_last = end(tool, lambda: tool.send_signal(signal.SIGINT), 0)
        check_last_values(Trace("t.qtrace"), check_last)
        expect("parts of the old one", len(glob.glob("t.qtrace.*.parts/*")), len(parts))
        expect("parts of the new one", glob.glob("t.qtrace.parts"), [])
        await_that("the agent is still there", lambda: not mapped(program.pid))


def check_together():
    """Slices of another recording beside them: two recordings of one program, on one clock."""
    with Program(SUBJECT) as program:
        with attached(program.pid, SHOWN, "--samples", "0") as tool:
            until_seen(tool, 2)
            done = run("record", "-q", "-o", "samples.qtrace", "--duration", "1", "-p", str(program.pid))
            expect(f"exit status of the recording ({done.stderr})", done.returncode, 0)
            until_seen(tool, 2)
            end(tool, lambda: tool.send_signal(signal.SIGINT), 0)
    expect("ticks beside the script", ticks("t.qtrace"), 0)
    trace = Trace("t.qtrace", "samples.qtrace")
    values = [time for time, _ in trace.counters["@n"]]
    sampled = [event["ts"] for event in trace.events
               if event["ph"] in "BE" and event["pid"] == program.pid and event["ts"] > values[0]]
    assert len(sampled) > 3 and max(sampled) < values[-1], (values, sampled)
    assert any(min(sampled) < time < max(sampled) for time in values), "no value while it was sampled"


def check_mistakes():
    for options, status, what in ((("-o", "/nowhere/t"), 2, "/nowhere: No such file"), (("-o", "."), 2, "is a directory"),
                                  (("-o", ""), 2, "is no name of a file"), (("-o", "x", "--every", "9"), 2, "milliseconds"),
                                  (("--every", "20"), 2, "--every: needs -o"), (("--samples", "20"), 2, "--samples: needs -o"),
                                  (("-o", "x", "--samples", "many"), 2, "many")):
        done = run("probe", *options, "-e", f"{WORK} {{ @ = count() }}", SUBJECT, "1", "1", "0")
        expect(f"{options} ({done.stderr})", done.returncode, status)
        assert what in done.stderr and "calls" not in done.stdout, (options, done)
    done = run("probe", "-o", "x", "-e", f"{WORK} {{ @ = count() }}", "./missing")
    expect("a command that is not there", done.returncode, 127)
    assert not glob.glob("x*"), glob.glob("x*")


def check_full_disk():
    os.mkdir("full")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", "full"], capture_output=True).returncode != 0:
        print("SKIP: a full disk: mount is not allowed")
        return
    try:
        with open("full/filler", "wb") as file:
            file.write(bytes(48 << 10))
        done = run("probe", "--json", "--every", "10", "-o", "full/t", "-e", f'{WORK} {{ @n = count(); @[arg0 & 63] = count() }}'
                   'timer:1ms { printf("%d\\n", time) }', SUBJECT, "4", "4000000", "0")
        expect(f"exit status ({done.stderr})", done.returncode, 7) # the command's own
        own = int(re.search(r"calls (\d+)", done.stdout).group(1))
        expect("what is shown all the same", maps(done.stdout.splitlines())["n"][0]["value"], own + 1)
        assert re.search(r"full/t: (the script's values could not be|could not be written).*No space left", done.stderr), done.stderr
    finally:
        subprocess.run(["umount", "full"], check=True)


def main():
    checks.run_in_a_folder(check_mistakes, check_command, check_keys, check_many_lines, check_children, check_attached, check_killed_program,
                           check_killed_tool, check_together, check_full_disk,
                           takes_away="t.qtrace*")


main()

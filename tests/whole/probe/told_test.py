#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qut probe -o FILE --calls: the trace has each call of the probed functions, as the program has counted them itself, by
process and by how it was left, and the script counts as it does without.

    told_test.py QUT SUBJECT UNWIND-SUBJECT CALLERS-SUBJECT CALLERS-LIBRARY TRACE_PROCESSOR
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

QUT, SUBJECT, UNWINDS, CALLERS, LIBRARY, TRACE_PROCESSOR = (os.path.realpath(path) for path in sys.argv[1:7])
NAME = os.path.basename(SUBJECT)
PATIENCE_S = 120
# Samples make slices, too, which have the same names: those of calls are on tracks of their own.
SLICES = ("select s.name as name, count(*) as calls, sum(case when s.dur >= 0 then 1 else 0 end) as ended from slice s"
          " join track t on s.track_id = t.id where t.name like '%(calls%' and s.name like 'probe_%' group by 1")


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


def run(*command, **more):
    return subprocess.run([QUT, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, **more)


def probe(script, *command, more=("--wait",), **how):
    return run("probe", "--json", "-o", "t.qtrace", "--calls", *more, "-e", script, *command, **how)


def maps(text):
    """Of each map the values, by key; without a key by ()."""
    documents = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {document["map"]: {tuple(row["key"]): row["value"] for row in document["rows"]} for document in documents if "map" in document}


def recorded(status=0):
    """The processes with calls; of each the functions by name."""
    done = run("info", "--calls", "--json", "t.qtrace")
    expect(f"exit status of qut info ({done.stderr})", done.returncode, status)
    processes = json.loads(done.stdout)["calls"]
    for process in processes:
        expect("it is accounted for", process["balanced"], True)
    return [(process, {function["function"]: function for function in process["functions"] if function["calls"]}) for process in processes]


def sums(status=0):
    """Calls, those that returned, and the others, of all processes by function."""
    found = {}
    for _, functions in recorded(status):
        for name, function in functions.items():
            ends = found.setdefault(name, [0, 0, 0])
            ends[0] += function["calls"]
            ends[1] += function["returned"]
            ends[2] += function["unwound"]
    return {name: tuple(ends) for name, ends in found.items()}


def check_processes():
    """Threads, a signal handler, recursion, children of fork: whatever the condition says."""
    threads, calls, children = 4, 4000, 3
    done = probe(f"entry:{NAME}!probe_work {{ @n[pid] = count(); @all = count() }} return:{NAME}!probe_deep /retval > 4/ {{ @deep = count() }}"
                 f"return:{NAME}!probe_work /duration > 100s/ {{ @never = count() }}", SUBJECT, str(threads), str(calls), str(children))
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    own = int(re.search(r"calls (\d+)", done.stdout).group(1)) + 1 + children * calls
    shown = maps(done.stdout)
    expect("what the script has counted", shown["all"][()], own)
    by_process = {process["pid"]: functions["probe_work"]["calls"] for process, functions in recorded()}
    expect("calls of each process", by_process, {pid: number for (pid,), number in shown["n"].items()})
    expect("all of them", sums(), {"probe_work": (own, own, 0), "probe_deep": (11, 11, 0)})
    assert f"{own + 11:,} entries, {own + 11:,} exits" in done.stderr, done.stderr
    check_perfetto(own)


def check_perfetto(own):
    """Perfetto's own trace processor finds as many slices, and the script's counters beside them."""
    done = run("export", "-q", "-f", "perfetto", "-o", "t.pftrace", "t.qtrace")
    expect(f"exit status of the export ({done.stderr})", done.returncode, 0)

    def asked(query):
        done = subprocess.run(["node", TRACE_PROCESSOR, "t.pftrace", query], capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode == 77:
            return None
        expect(f"exit status of the trace processor ({done.stderr})", done.returncode, 0)
        return [json.loads(line) for line in done.stdout.splitlines()]
    try:
        slices = asked(SLICES)
    except FileNotFoundError:
        slices = None
    if slices is None:
        print("SKIP: Perfetto's trace processor is not here")
        return
    expect("slices in Perfetto", slices, [{"name": "probe_deep", "calls": 11, "ended": 11}, {"name": "probe_work", "calls": own, "ended": own}])
    counters = asked("select t.name as name, cast(max(value) as int) as value from counter c join process_counter_track t on c.track_id = t.id"
                     " where t.name = '@all' group by 1")
    expect("the counter in Perfetto", counters, [{"name": "@all", "value": own}])


def check_ways_out():
    """By returning, by exceptions, out of recursions, by longjmp, at a thread's end. What marks these is not told."""
    names = ("inner", "middle", "outer", "cleanup", "deep", "again", "jump", "ends", "aside", "hops")
    script = "".join(f"unwind:{os.path.basename(UNWINDS)}!un_{name} {{ @left_{name} = count() }}" for name in names)
    with subprocess.Popen([QUT, "probe", "--json", "-o", "t.qtrace", "--calls", "--wait", "-e", script, UNWINDS, "500", "3"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
        lines = [tool.stdout.readline().split() for _ in names]
        time.sleep(0.5) # threads that have ended are looked at
        out, said = tool.communicate("\n", timeout=PATIENCE_S)
    expect(f"exit status ({said})", tool.returncode, 0)
    own = {words[0]: tuple(map(int, words[1:])) for words in lines}
    told = {**own, "un_hops": (own["un_hops"][0], 0, 0)} # that is over where it jumps to another one
    expect("calls, returned, left", sums(), told)
    expect("what the script has counted as left", {name: rows.get((), 0) for name, rows in maps(out).items()},
           {name.replace("un_", "left_"): left for name, (_, _, left) in own.items()})


def check_callers():
    """Of `in CALLER` calls out of it alone."""
    program = os.path.basename(CALLERS)
    done = probe(f"call:{program}!callers_target in {program}!callers_two {{ @two = count() }}"
                 f"entry:{os.path.basename(LIBRARY)}!callers_library_noticed {{ @noticed = count() }}", CALLERS, LIBRARY, "4", "1000")
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    own = int(re.search(r"two calls (\d+)", done.stdout).group(1))
    expect("counted, and told", (maps(done.stdout)["two"][()], sums()["callers_target"]), (own, (own, own, 0)))


def check_losses():
    """Without --wait what has no room is counted."""
    done = probe(f"entry:{NAME}!probe_work {{ @n = count() }}", SUBJECT, "4", "1500000", "0", more=("--samples", "0"))
    own = int(re.search(r"calls (\d+)", done.stdout).group(1)) + 1
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    expect("what the script has counted", maps(done.stdout)["n"][()], own)
    lost = re.search(r"([\d,]+) entries and ([\d,]+) exits were lost", done.stderr)
    lost = [int(number.replace(",", "")) for number in lost.groups()] if lost else [0, 0]
    process = recorded(1 if any(lost) else 0)[0][0]
    expect("entries, and exits", (process["enters"] + lost[0], process["exits"] + lost[1]), (own, own))


def attached(pid, *more):
    return subprocess.Popen([QUT, "probe", "--json", "-q", "-o", "t.qtrace", "--calls", "--wait", "-p", str(pid), *more, "-e",
                             f"entry:{NAME}!probe_work {{ @n = count(); @__seen = 1 }} return:{NAME}!probe_work {{ @r = count() }}"
                             'timer:100ms /@__seen/ { printf("seen\\n") }'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def mapped(pid):
    with open(f"/proc/{pid}/maps") as file:
        return [line for line in file if "qut" in line]


def check_attached():
    with Program(SUBJECT) as program:
        for _ in range(3):
            with attached(program.pid) as tool:
                tool.stdout.readline()
                tool.send_signal(signal.SIGINT)
                out, said = tool.communicate(timeout=PATIENCE_S)
            expect(f"exit status ({said})", tool.returncode, 0)
            process, functions = recorded()[0]
            shown = maps(out)
            expect("entries, and exits", (process["enters"], process["exits"]), (shown["n"][()], shown["r"][()]))
            ends = functions["probe_work"]
            assert ends["calls"] > 1000 and ends["open"] <= 1 and ends["calls"] == ends["returned"] + ends["open"], ends
            expect("what is left of us", mapped(program.pid), [])


def check_killed_tool():
    """Its parts are there, and the program goes on."""
    with Program(SUBJECT) as program:
        with attached(program.pid) as tool:
            for _ in range(10):
                tool.stdout.readline()
            tool.kill()
            tool.wait()
        parts = glob.glob(f"t.qtrace.parts/{program.pid}-*.qtrace")
        expect("its calls are in a part", len(parts), 1)
        done = run("info", "--calls", "--json", parts[0])
        assert json.loads(done.stdout)["calls"][0]["enters"] > 1000, done
        until = time.monotonic() + PATIENCE_S
        while mapped(program.pid):
            assert time.monotonic() < until, "the agent is still there"
            time.sleep(0.02)


def check_mistakes():
    for options, what in ((("--calls",), "--calls: needs -o FILE"), (("-o", "x", "--wait"), "--wait: needs --calls")):
        done = run("probe", *options, "-e", f"entry:{NAME}!probe_work {{ @ = count() }}", SUBJECT, "1", "1", "0")
        expect(f"{options} ({done.stderr})", (done.returncode, what in done.stderr, done.stdout), (2, True, ""))


def main():
    checks.run_in_a_folder(check_mistakes, check_processes, check_ways_out, check_callers, check_losses, check_attached, check_killed_tool,
                           takes_away="t.*")


main()

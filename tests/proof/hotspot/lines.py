# SPDX-License-Identifier: Apache-2.0
"""Lines and inlined methods, for run: what qut stack says of each thread of Lines.java against jstack, all frames and all
lines; of the one that runs, against the calls that the program makes; of a core file, against the living process."""
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../support"))
import export_formats  # noqa: E402 pylint: disable=wrong-import-position
ALIVE_S = 900
LOOKS = {True: 20, False: 200}  # at the thread that runs; of the short form
DEPTH = 13
MODES = {
    "lines, C1 and C2": [],
    "lines, C2": ["-XX:-TieredCompilation"],
    "lines, C1": ["-XX:TieredStopAtLevel=1"],
    "lines, C2, all described": ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"],
    "lines, interpreter": ["-Xint"],
}
SHORT_MODES = ["lines, C1 and C2", "lines, interpreter"]


def plain(name):
    """Hidden classes have a number behind their names, which tools write in different ways."""
    return re.sub(r"[+/]0x[0-9a-f]+", "", name)


def told_by_jstack(jdk, pid):
    """{(tid, name): [(method, "File.java:12")]}; "": no line is known there."""
    said = subprocess.run([*jdk.tool("jstack"), str(pid)], capture_output=True, text=True, check=True).stdout
    threads = {}
    frames = []
    for line in said.splitlines():
        if head := re.match(r'"([^"]*)" .*nid=(0x[0-9a-f]+|\d+)', line):
            frames = threads.setdefault((int(head.group(2), 0), head.group(1)), [])
        elif frame := re.match(r"\tat (?:[\w.@-]+//?)?(.+)\(([^()]*)\)$", line):
            source = frame.group(2).split("/")[-1]
            frames.append((plain(frame.group(1)), source if ":" in source else ""))
    return {thread: frames for thread, frames in threads.items() if frames}


def stacks(options, *arguments):
    """{tid: [frames]}, as qut stack tells them."""
    said = subprocess.run([os.path.join(options.build, "tracer/qut"), "stack", "--json", "--limit", "10000", *arguments],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    if said.returncode != 0:
        raise RuntimeError(f"qut stack: {said.stderr}")
    return {stack["threads"][0]["tid"]: stack["frames"] for stack in json.loads(said.stdout)["stacks"]}


def methods(frames):
    """Of Java alone: stubs and the interpreter have no class."""
    found = []
    for frame in frames:
        if frame["kind"] in ("jit", "dex") and "." in frame.get("function", "?.") and "(" not in frame.get("function", ""):
            line = f"{frame['file']}:{frame['line']}" if "line" in frame else ""
            found.append((plain(frame.get("function", "?")), line))
    return found


def method_lines():
    """{method: its lines} of Lines.java, as they stand between one declaration and the next."""
    starts = []
    with open(os.path.join(HERE, "Lines.java"), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            starts += [(number, name) for name in re.findall(r"static (?:synchronized )?\w+ (\w+)\(", line)]
    ends = [number for number, _ in starts[1:]] + [10000]
    return {name: range(number, max(end, number + 1)) for (number, name), end in zip(starts, ends)}


def problem_of_runner(found, lines):
    """None: spin, descend 13 times, work, and what is inlined into that; or on the way there. Where the innermost method
    was interrupted, what is inlined further in may be missing, and its line."""
    chain = [(method, source) for method, source in found if re.match(r"Lines\.\w+$", method)]
    names = [method[len("Lines."):] for method, _ in chain if "lambda" not in method]
    text = " ".join(names)
    if not re.fullmatch(r"(((third )?second )?first )?work (descend ){%d}spin|(descend ){0,%d}spin" % (DEPTH, DEPTH), text):
        return text or "no frames"
    for (method, source), name in zip(chain, names):
        # Where it was interrupted there may be no line; a caller has one.
        at = re.fullmatch(r"Lines\.java:(\d+)", source)
        if at and int(at.group(1)) not in lines[name]:
            return f"{method} at {source}"
        if not at and name in ("spin", "descend") and names[0] == "work":
            return f"{method} has no line"
    return None


def core_of(pid, work):
    if not shutil.which("gcore"):
        return None
    done = subprocess.run(["gcore", "-o", os.path.join(work, "core"), str(pid)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    core = os.path.join(work, f"core.{pid}")
    return core if done.returncode == 0 and os.path.exists(core) else None


def compare(what, expected, found):
    """A check: (good, text, [what is wrong])."""
    wrong = []
    for (tid, name), frames in expected.items():
        got = methods(found.get(tid, []))
        if got == frames:
            continue
        differs = next((i for i, (one, other) in enumerate(zip(frames, got)) if one != other), min(len(frames), len(got)))
        wrong.append(f"{name}, frame {differs}: {frames[differs:differs + 1]} is {got[differs:differs + 1]}")
    count = sum(map(len, expected.values()))
    lines = sum(":" in source for frames in expected.values() for _, source in frames)
    return (bool(expected) and not wrong,
            f"{what}: {len(expected) - len(wrong)} of {len(expected)} threads, {count} frames, {lines} lines", wrong)


def check_running(options, pid, tid):
    lines = method_lines()
    wrong, levels, told_before = [], 0, 0
    for _ in range(LOOKS[options.short]):
        frames = stacks(options, "-p", str(pid), "--tid", str(tid))[tid]
        levels += sum(frame.get("inlined", False) for frame in frames)
        if problem := problem_of_runner(methods(frames), lines):
            # The machine describes some instructions; another has the description of one before it, and what was
            # inlined there may have returned.
            called = list(itertools.dropwhile(lambda frame: frame.get("inlined", False), frames))
            if len(called) < len(frames) and not problem_of_runner(methods(called), lines):
                told_before += 1
            else:
                wrong.append(problem)
        time.sleep(0.01)
    good = not wrong and told_before <= 0.02 * LOOKS[options.short] + 1
    return (good, f"running: {LOOKS[options.short]} looks, {len(wrong)} wrong, {told_before} with what was inlined before, "
            f"{levels} inlined frames", wrong)


def check_recorded(options, what, arguments, work):
    """The runner's samples in a recording, with functions and lines as pprof has them."""
    trace, profile = os.path.join(work, "lines.qtrace"), os.path.join(work, "lines.pb.gz")
    for command in (["record", "-F", "500", "-o", trace, *arguments],
                    ["export", trace, "-f", "pprof", "--lines", "--thread", "spinner", "-o", profile]):
        done = subprocess.run([os.path.join(options.build, "tracer/qut"), *command], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            raise RuntimeError(f"qut {command[0]}: {done.stderr[-300:]}")
    lines, wrong, count, told = method_lines(), [], 0, 0
    for sample in export_formats.read_pprof(profile)["samples"]:
        found = [(plain(name), f"Lines.java:{line}" if line else "") for name, line in sample["lines"]]
        if not any(name == "Lines.spin" for name, _ in found):
            continue  # it starts, or is compiled
        count += 1
        told += sum(source != "" for name, source in found if name.startswith("Lines."))
        if problem := problem_of_runner(found, lines):
            wrong.append(problem)
    return (count > 0 and told > count and len(wrong) <= 0.01 * count,
            f"{what}: {count} stacks, {len(wrong)} wrong, {told} lines", wrong)


def check_all(options, jdk, mode, work, pid):
    told = told_by_jstack(jdk, pid)
    seen = stacks(options, "-p", str(pid))
    runner = next(tid for tid, name in told if name == "spinner")
    # The machine's own threads wait as ours do.
    expected = {thread: frames for thread, frames in told.items() if thread[0] != runner}
    ours = [tid for tid, name in expected if name.startswith("way-")]
    inlined = sum(frame.get("inlined", False) for tid in ours for frame in seen.get(tid, []))
    good, text, wrong = compare("against jstack", expected, seen)
    is_inlining = mode == "lines, interpreter" or inlined >= 3
    checks = [(good and len(ours) == 8 and is_inlining, f"{text}, {inlined} of our frames inlined", wrong),
              check_running(options, pid, runner)]
    checks.append(check_recorded(options, "recorded from outside", ["-p", str(pid), "--duration", "2"], work))
    if not options.short and (core := core_of(pid, work)):
        # gdb does not write all that it should: of some threads of OpenJDK 11 it has zeros for the stack.
        found = stacks(options, "--core", core)
        kept = {thread: frames for thread, frames in expected.items() if len(found.get(thread[0], [])) > 1}
        checks.append(compare("core file", kept if len(kept) >= len(expected) / 2 else expected, found))
    return checks


def run_mode(options, jdk, mode, work):
    subprocess.run([*jdk.tool("javac"), "-d", work, os.path.join(HERE, "Lines.java")], check=True)
    command = [*jdk.tool("java"), "-Xmx64m", "-Xbatch", *MODES[mode], "-cp", work, "Lines", str(ALIVE_S)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as java:
        try:
            if java.stdout.readline() != "warm\n":
                raise RuntimeError("it did not get warm")
            checks = check_all(options, jdk, mode, work, java.pid)
        finally:
            os.kill(java.pid, signal.SIGKILL)
    inside = ["--", *command[:-1], "4"]
    return checks if options.short else checks + [check_recorded(options, "recorded from inside", inside, work)]

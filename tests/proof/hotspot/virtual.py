# SPDX-License-Identifier: Apache-2.0
"""Virtual threads, for run: the calls of Virtual.java against the samples of its carrier, inside and from outside. What has
not come back from the heap is not seen; the walk passes the return barrier, and comes to the carrier's own frames."""
import os
import re
import subprocess

FIRST_RELEASE = 21
DEPTH = 30
WARM_UP_S = 3
ALIVE_S = 120
SAMPLES_MIN = 200
SPLIT_MIN = 30  # a small stack comes back from the heap as a whole
WRONG_MAX = 0.001
ON_THE_WAY_MAX = 0.02
ON_THE_WAY_FEW = 6  # where a busy machine leaves few samples
KEPT = ["leaf", "work", "whole", "split", "run"]
COMPILED = ["-XX:CompileCommand=quiet"] + [f"-XX:CompileCommand=dontinline,Virtual.{name}" for name in KEPT]
MODES = {
    "virtual threads": COMPILED,
    "virtual threads, small heap": COMPILED + ["-Xmx16m", "-XX:+UseSerialGC"],
    "virtual threads, interpreter": ["-Xint"],
}
SHORT_MODES = ["virtual threads"]
CARRIER = ["java.lang.VirtualThread.runContinuation", "java.util.concurrent.ForkJoinWorkerThread.run"]
BARRIER = re.compile(r"StubRoutines|Continuation")


def problem_of(names):
    """None: as the program makes it. False: on its way down or up."""
    ours = [name.removeprefix("Virtual.") for name in names if name.startswith("Virtual.") and "$$" not in name]
    rest = names[len(names) - 1 - names[::-1].index(f"Virtual.{ours[-1]}") + 1:]
    carrier = [name for name in rest if name in CARRIER]
    if carrier != CARRIER:
        return f"behind {ours[-1]}: " + " ".join(rest[:8])
    inner = [name for name in ours if name in ("leaf", "work")]
    if inner not in (["work"], ["leaf", "work"]):
        return False
    calls = ours[len(inner):]
    if calls == ["whole"] * (DEPTH + 1) + ["run"]:
        return None
    # Of split so many as came back from the heap, then the barrier; all, if it was not left there.
    if calls == ["split"] * (DEPTH + 1) + ["run"]:
        return None
    if calls and set(calls) == {"split"} and len(calls) <= DEPTH and BARRIER.search(rest[0]):
        return None
    return "calls: " + " ".join(ours)


def judge(way, blocks):
    """blocks: of each sample, the names of its frames, the innermost first."""
    wrong, on_the_way, total, split, cut = [], 0, 0, 0, 0
    for names in blocks:
        if not any(name in ("Virtual.whole", "Virtual.split") for name in names):
            continue
        total += 1
        if names[-1].startswith("[") and names[-1] != "[unknown]":
            cut += 1  # it says why
            continue
        problem = problem_of([name for name in names if name != "Interpreter"])
        on_the_way += problem is False
        split += names.count("Virtual.split") in range(1, DEPTH)
        if problem:
            wrong.append(problem)
    good = total >= SAMPLES_MIN and split >= SPLIT_MIN and cut <= WRONG_MAX * total + 1 and \
        len(wrong) <= WRONG_MAX * total + 1 and \
        on_the_way <= ON_THE_WAY_MAX * total + ON_THE_WAY_FEW
    return (good, f"{way}: {total} samples of the virtual thread, {split} at the return barrier, {on_the_way} on the way "
            f"down or up, {len(wrong)} wrong, {cut} not to the root", wrong)


def samples_of(options, trace):
    tool = os.path.join(options.build, "tracer/qut")
    said = subprocess.run([tool, "export", trace, "-f", "perf-script", "--no-inlines", "--show-interpreters", "-o", "-"], capture_output=True,
                          text=True, errors="replace", timeout=300, check=False)
    begin = None
    for block in said.stdout.split("\n\n"):
        lines = block.strip("\n").split("\n")
        head = re.search(r" (\d+\.\d+):", lines[0])
        if not head:
            continue
        begin = begin or float(head.group(1))
        if float(head.group(1)) - begin > WARM_UP_S:
            yield [line.split(None, 2)[1] for line in lines[1:] if line.strip()]


def run_mode(options, jdk, mode, work):
    tool = os.path.join(options.build, "tracer/qut")
    here = os.path.dirname(os.path.abspath(__file__))
    subprocess.run([*jdk.tool("javac"), "-d", work, os.path.join(here, "Virtual.java")], check=True)
    seconds = WARM_UP_S + options.seconds
    command = [*jdk.tool("java"), *MODES[mode], "-cp", work, "Virtual"]
    trace = os.path.join(work, "virtual.qtrace")
    subprocess.run([tool, "record", "-o", trace, "--", *command, str(seconds)], stdin=subprocess.DEVNULL,
                   capture_output=True, timeout=ALIVE_S, check=True)
    checks = [judge("inside", samples_of(options, trace))]
    os.unlink(trace)
    program = subprocess.Popen([*command, str(ALIVE_S)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        subprocess.run([tool, "record", "--duration", str(seconds), "-o", trace, "-p", str(program.pid)],
                       capture_output=True, timeout=ALIVE_S, check=True)
        checks.append(judge("outside", samples_of(options, trace)))
    finally:
        program.kill()
        program.wait(timeout=60)
    return checks

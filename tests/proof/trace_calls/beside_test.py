#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A process whose calls are traced is sampled from outside by `qut record -p`: its stacks are whole, to the outermost
function, through all calls that return to the tracer's code.

usage: beside_test.py QUT DEEP
"""
import os
import signal
import subprocess
import sys
import tempfile

DEPTH = 20


def main():
    qut, deep = sys.argv[1:3]
    with tempfile.TemporaryDirectory(prefix="beside.") as folder:
        calls, samples, stacks = (os.path.join(folder, name) for name in ("calls.qtrace", "samples.qtrace", "stacks"))
        with subprocess.Popen([qut, "trace", "-q", "-f", "deep!traced_*", "-o", calls, "--", deep, str(DEPTH)],
                              stdout=subprocess.PIPE, text=True) as tracer:
            pid = int(tracer.stdout.readline())  # said in the innermost call
            done = subprocess.run([qut, "record", "-q", "--duration", "2", "-o", samples, "-p", str(pid)], check=False)
            os.kill(pid, signal.SIGTERM)
            tracer.wait(60)
        if done.returncode != 0:
            print(f"FAIL: qut record -p ended with {done.returncode}")
            return 1
        subprocess.run([qut, "export", "-q", "-f", "collapsed", "-o", stacks, samples], check=True, timeout=60)
        with open(stacks, encoding="utf-8") as file:
            told = [line.rsplit(" ", 1) for line in file.read().splitlines()]
    whole = sum(int(count) for stack, count in told
                if "main;" in stack and stack.count("traced_deep") == DEPTH and "traced_busy" in stack)
    everything = sum(int(count) for _, count in told)
    print(f"{whole} of {everything} samples are whole")
    if whole == 0 or 20 * (everything - whole) > everything:
        print("FAIL:", *(stack for stack, _ in told[:5]), sep="\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qut stack --verbose marks the frame that a doubtful row led out of, and no other. usage: doubtful_test.py QUT QUTC CC
"""
import json
import os
import platform
import subprocess
import sys
import tempfile

# `odd` is jumped to with a frame of its caller's on the stack, and says so: the walk is right. That something calls it as
# functions are called makes the code say that nothing stated fits.
SOURCE = r"""
#include <unistd.h>
void __attribute__((noinline)) wait_here(void) { write(1, "ready\n", 6); for (;;) pause(); }
void enters_odd(void);
__asm__(".text\n.p2align 4\n.globl odd\n.type odd, @function\nodd:\n.cfi_startproc\n.cfi_def_cfa_offset 80\n"
        "sub $8, %rsp\n.cfi_def_cfa_offset 88\ncall wait_here\nadd $8, %rsp\n.cfi_def_cfa_offset 80\nret\n"
        ".cfi_endproc\n.size odd, .-odd\n"
        ".globl calls_odd\n.type calls_odd, @function\ncalls_odd:\n.cfi_startproc\ncall odd\nret\n.cfi_endproc\n"
        ".size calls_odd, .-calls_odd\n"
        ".globl enters_odd\n.type enters_odd, @function\nenters_odd:\nlea 1f(%rip), %rax\nsub $64, %rsp\npush %rax\n"
        "jmp odd\n1: add $64, %rsp\nret\n.size enters_odd, .-enters_odd\n");
int main(void) { enters_odd(); return 0; }
"""


def main():
    if platform.machine() != "x86_64":
        print("SKIP: the code is of x86-64")
        return 77
    qut, qutc, compiler, failed = sys.argv[1], sys.argv[2], sys.argv[3:], 0

    def check(name, good, why):
        nonlocal failed
        if not good:
            print(f"{name}: {why}")
            failed += 1

    with tempfile.TemporaryDirectory() as folder:
        subject, cache = os.path.join(folder, "subject"), os.path.join(folder, "cache")
        with open(subject + ".c", "w", encoding="ascii") as file:
            file.write(SOURCE)
        subprocess.run(compiler + ["-O1", "-w", "-fno-optimize-sibling-calls", "-Wl,--build-id=sha1", "-o", subject,
                                   subject + ".c"], check=True)
        notes = subprocess.run(["readelf", "-n", subject], capture_output=True, text=True, check=True).stdout
        build_id = notes.split("Build ID: ")[1].split()[0]
        os.mkdir(cache)
        subprocess.run([qutc, "compile", "-q", "--check", "-o", os.path.join(cache, f"x86_64-{build_id}.qut"), subject],
                       check=True, stdout=subprocess.DEVNULL)
        with subprocess.Popen([subject], stdout=subprocess.PIPE) as process:
            try:
                process.stdout.readline()

                def look(*options):
                    return subprocess.run([qut, "stack", "-p", str(process.pid), "--cache", cache, *options],
                                          capture_output=True, text=True, check=False)
                run = look("--verbose")
                lines = [line for line in run.stdout.splitlines() if " pc " in line]
                marked = [line for line in lines if "[doubtful]" in line]
                check("text", len(marked) == 1 and "(odd+" in marked[0], run.stdout + run.stderr)
                check("the walk goes on", any("(main+" in line for line in lines), run.stdout)
                run = look()
                check("not without --verbose", "[doubtful]" not in run.stdout and "(odd+" in run.stdout, run.stdout)
                run = look("--json")
                frames = [frame for stack in json.loads(run.stdout)["stacks"] for frame in stack["frames"]]
                marked = [frame["function"] for frame in frames if frame.get("doubtful")]
                check("JSON", marked == ["odd"], run.stdout)
            finally:
                process.kill()
    print(f"{failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

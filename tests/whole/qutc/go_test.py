#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stripped Go programs against what the same build says unstripped: at each byte of code the rule made of .gopclntab must
be that of .debug_frame, on each architecture that Go's compiler makes code for here; what stays out is counted by name.
A program that runs then reaches the root of its goroutines.

Usage: go_test.py QUTC QUT"""
import bisect
import os
import re
import shutil
import subprocess
import sys
import tempfile

QUTC, QUT = (os.path.abspath(path) for path in sys.argv[1:3])
PROGRAM = """package main

import (
	"fmt"
	"os"
	"sort"
	"time"
)

func work(depth int) int {
	if depth == 0 {
		list := []string{}
		for i := 0; i < 2000; i++ {
			list = append(list, fmt.Sprint(i*7919%2001))
		}
		sort.Strings(list)
		return len(list[7])
	}
	return work(depth-1) + 1
}

func main() {
	fmt.Println("ready")
	done := make(chan bool)
	go func() {
		for end := time.Now().Add(6 * time.Second); time.Now().Before(end); {
			work(20)
		}
		done <- true
	}()
	<-done
	fmt.Fprintln(os.Stderr, "done")
}
"""
ARCHS = {"amd64": "x86_64", "arm64": "aarch64", "386": "x86", "arm": "arm", "riscv64": "riscv64"}
# Go says 1 GiB of frames that must never be walked out of.
NONSENSE_BYTES = 1 << 29
passed = failed = 0


def check(what, is_so, *why):
    global passed, failed
    passed += bool(is_so)
    failed += not is_so
    print(("ok: " if is_so else "not ok: ") + what, *([] if is_so else why), flush=True)


def go(arch, folder, name, *flags):
    environment = dict(os.environ, GOARCH=arch, GOOS="linux", CGO_ENABLED="0", GOFLAGS="-mod=mod", GO111MODULE="off",
                       GOCACHE=os.path.join(folder, "cache"), GOPATH=os.path.join(folder, "path"), HOME=folder)
    subprocess.run(["go", "build", "-o", name, *flags, "main.go"], cwd=folder, env=environment, check=True)


def rows(folder, name):
    """[(start, end, cfa, ra)]; cfa is the whole text of what is no frame."""
    table = os.path.join(folder, name + ".qut")
    subprocess.run([QUTC, "compile", "-o", table, os.path.join(folder, name)], check=True, stdout=subprocess.DEVNULL)
    found = []
    for line in subprocess.run([QUTC, "dump", table], check=True, capture_output=True, text=True).stdout.splitlines():
        parts = re.match(r"0x([0-9a-f]+)-0x([0-9a-f]+) (.*)", line)
        if parts:
            words = dict(word.split("=", 1) for word in parts[3].split() if "=" in word)
            found.append((int(parts[1], 16), int(parts[2], 16), words.get("cfa", parts[3]), words.get("ra")))
    return found


def at(table, starts, pc):
    row = bisect.bisect(starts, pc) - 1
    return table[row][2:] if row >= 0 and table[row][0] <= pc < table[row][1] else None


def compare(stripped, whole):
    """Bytes of code by what the stripped program's rule is beside the whole one's."""
    starts, whole_starts = [row[0] for row in stripped], [row[0] for row in whole]
    cuts = sorted({pc for row in stripped + whole for pc in row[:2]})
    count = dict.fromkeys(("equal", "switch", "outermost", "nonsense", "missing", "different"), 0)
    for pc, end in zip(cuts, cuts[1:]):
        is_, should = at(stripped, starts, pc), at(whole, whole_starts, pc)
        if should is None:
            continue
        depth = re.match(r"\w+[+-](\d+)$", should[0])
        if is_ and "STACK_SWITCH" in is_[0]:
            kind = "switch"
        elif is_ == should:
            kind = "equal"
        elif is_ and is_[0] == should[0] and is_[1] == "undefined":
            kind = "outermost"
        elif depth and (int(depth[1]) > NONSENSE_BYTES or "-" in should[0]):
            kind = "nonsense"
        else:
            kind = "missing" if is_ is None else "different"
        count[kind] += end - pc
    return count


def compare_all(folder):
    for arch in ARCHS:
        go(arch, folder, "whole-" + arch)
        go(arch, folder, "stripped-" + arch, "-ldflags=-s -w")
        count = compare(rows(folder, "stripped-" + arch), rows(folder, "whole-" + arch))
        text = ", ".join(f"{kind} {size}" for kind, size in count.items())
        check(f"{arch}: {text} bytes", count["different"] == 0 and count["equal"] > 300000)
        check(f"{arch}: what has no rule is next to nothing", count["missing"] <= 64)
        check(f"{arch}: stack switches are few", 0 < count["switch"] < count["equal"] / 200)


def walk_one(folder):
    go("amd64", folder, "pie", "-buildmode=pie", "-ldflags=-s -w")
    for name in ("stripped-amd64", "pie"):
        process = subprocess.Popen([os.path.join(folder, name)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.readline()
        trace = os.path.join(folder, name + ".qtrace")
        subprocess.run([QUT, "record", "-q", "-p", str(process.pid), "-F", "500", "--duration", "3", "-o", trace],
                       check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        process.kill()
        process.wait()
        stacks = subprocess.run([QUT, "export", "-f", "collapsed", "-o", "-", trace], capture_output=True, text=True)
        lines = [line.rsplit(" ", 1)[0].split(";") for line in stacks.stdout.splitlines()]
        work = [line for line in lines if "main.work" in line]
        check(f"{name}: it was sampled at work", len(work) >= 5, stacks.stderr, lines[:3])
        check(f"{name}: every such stack begins where goroutines do",
              all("runtime.goexit" in line[:4] for line in work), work[:3])
        whole = [line for line in work if line.count("main.work") == 21]
        check(f"{name}: and has all 21 calls", len(whole) >= len(work) / 2, work[:2])


def main():
    if not shutil.which("go"):
        print("SKIP: no go\n0 passed, 0 failed, 1 skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "main.go"), "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        os.environ["QUT_CACHE"] = os.path.join(folder, "tables")
        compare_all(folder)
        walk_one(folder)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


sys.exit(main())

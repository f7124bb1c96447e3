#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How far a recording can be believed, and that all who tell what cost most tell the same. Usage: quality_test.py QUT
PROGRAM, which uses its time in `inlined_part`, inlined into `outer_part`, and has debug information"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

qut, program = (os.path.abspath(path) for path in sys.argv[1:3])
failed = []


def check(what, good, seen):
    print(f"{'ok' if good else 'not ok'} - {what}")
    if not good:
        failed.append(what)
        print(f"# {str(seen)[:2500]}")


def run(*arguments):
    return subprocess.run([qut, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True)


def info(*options):
    return json.loads(run("info", "--json", "--top", "5", *options, "trace").stdout)


def functions(document):
    return [(row["function"], row["self"]) for row in document["top"]]


def record(path):
    ran = run("record", "-F", "1000", "--json", "summary", "-o", "trace", "--", path, "300")
    with open("summary", encoding="utf-8") as file:
        return ran.stderr, json.load(file)


def one_top():
    text, summary = record(program)
    top = functions(summary)
    check("the end of a recording knows inlined functions", top[0][0] == "inlined_part", top)
    check("qut info says the same", functions(info()) == top, (functions(info()), top))
    shown = re.findall(r"^ +[\d.]+ % .*  (\S.*)$", run("info", "--top", "5", "trace").stdout, re.MULTILINE)
    check("as text, too", shown == [name for name, _ in top], (shown, top))
    leaves = {}
    for line in run("export", "-q", "-f", "collapsed", "-o", "-", "trace").stdout.splitlines():
        stack, weight = line.rsplit(" ", 1)
        leaf = stack.rsplit(";", 1)[-1]
        leaves[leaf] = leaves.get(leaf, 0) + int(weight)
    check("and an export", max(leaves, key=leaves.get) == "inlined_part", leaves)
    names = [name for name, _ in functions(info("--no-inlines"))]
    check("--no-inlines has none", "outer_part" in names and "inlined_part" not in names, names)
    quality = summary["quality"]
    check("it has whole stacks, with names", quality["whole"] > 0.99 and quality["named"] > 0.95, quality)
    # On a busy machine ticks come late.
    is_good = quality.get("late", 0) <= 0.05 and quality.get("lost", 0) <= 0.01
    check("and is called good if no more is wrong", quality["good"] == is_good and bool(quality["advice"]) != is_good,
          quality)
    word = "good" if is_good else "NOT GOOD"
    check("which is said", re.search(rf"quality: {word}: [\d.]+ % of processor time with the whole stack, ", text), text)
    plain = json.loads(run("info", "--json", "trace").stdout)["quality"]
    check("and qut info says so, without tables, too", plain == quality, (plain, quality))


def stripped():
    build_id = re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", program], stdout=subprocess.PIPE,
                                                           text=True, check=True).stdout)[1]
    os.makedirs(f"debug/.build-id/{build_id[:2]}")
    subprocess.run(["objcopy", "--only-keep-debug", program, f"debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"],
                   check=True)
    shutil.copy(program, "bare")
    subprocess.run(["strip", "bare"], check=True)
    text, summary = record("./bare")
    quality = summary["quality"]
    check("a stripped program is not good", not quality["good"] and quality["named"] < 0.5, quality)
    check("its file is named", quality["unnamed"][0]["file"].endswith("/bare") and quality["unnamed"][0]["share"] > 0.5,
          quality)
    check("with what to do", re.search(r"has no names: \S*/bare \(stripped.*--debug-root", text) and "NOT GOOD" in text,
          text)
    quality = info("--debug-root", "debug")["quality"]
    check("qut info --debug-root has the names", quality["named"] > 0.95, quality)
    check("and the functions", functions(info("--debug-root", "debug"))[0][0] == "inlined_part", functions(info()))


with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    os.mkdir("run", 0o700)
    os.environ.update(QUT_CACHE=f"{directory}/cache", XDG_RUNTIME_DIR=f"{directory}/run")
    one_top()
    stripped()
sys.exit(1 if failed else 0)

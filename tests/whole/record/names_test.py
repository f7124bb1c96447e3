#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Names of threads and processes that are changed after they began, by what lives for moments. Usage: names_test.py QUT
NAMES"""
import json
import os
import subprocess
import sys
import tempfile

qut, program = (os.path.abspath(path) for path in sys.argv[1:3])
failed = []


def check(what, good, seen):
    print(f"{'ok' if good else 'not ok'} - {what}")
    if not good:
        failed.append(what)
        print(f"# {str(seen)[:1500]}")


def record(options, command):
    subprocess.run([qut, "record", "-q", "-o", "trace", *options, "--", *command], check=True)
    return json.loads(subprocess.run([qut, "info", "--json", "trace"], stdout=subprocess.PIPE, check=True).stdout)


def short_threads():
    own = {f"short-{i}" for i in range(200)}
    trace = record(["--sync", "thread"], [program, "threads", "200"])
    names = [thread["name"] for thread in trace["threads"]]
    check("200 threads of one call each have their own names", own <= set(names), sorted(names))
    # Of few slots each is another thread's in turn: only what a thread stored tells its name, and some had no room; one
    # that had none for its end keeps the name that it began with. Before, that was each of them.
    trace = record(["--sync", "thread", "--buffer", "2M"], [program, "threads", "200"])
    names = [thread["name"] for thread in trace["threads"]]
    check("and next to none has its parent's where slots are given again", len(names) > 50 and len(set(names) - own) == 1 and
          len([name for name in names if name not in own]) <= 4, sorted(names))


def titles():
    # Room for the titles to come.
    trace = record(["--sync", "all"], [program, "titles", "40", "room for the titles of its processes"])
    commands = {process["command"] for process in trace["processes"]}
    check("processes are called by the titles that they have given themselves",
          {f"server: client {i}" for i in range(40)} <= commands, sorted(commands))
    names = {thread["name"] for thread in trace["threads"]}
    check("and their threads", {f"client-{i}" for i in range(40)} <= names, sorted(names))


def links():
    os.symlink(program, "server-by-link")
    trace = record([], ["./server-by-link", "threads", "1"])
    check("what is run by a link has the link's name",
          trace["command"].startswith("./server-by-link ") and trace["threads"][0]["name"] == "server-by-link", trace)


def programs():
    kinds = ["true", "expr", "date", "env", "printf", "dirname", "basename", "seq"]
    lines = []
    for i in range(200):
        name = f"{kinds[i % len(kinds)]}-{i}"
        os.symlink("/usr/bin/true", name)
        lines.append(f"./{name}")
    with open("script", "w", encoding="ascii") as script:
        script.write("\n".join(lines) + "\n")
    trace = record([], ["sh", "script"])
    wanted = {line[2:][:15] for line in lines}
    names = {thread["name"] for thread in trace["threads"]}
    check("200 programs that do nothing have their own names", wanted <= names, sorted(wanted - names))


with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    os.mkdir("run", 0o700)
    os.environ.update(QUT_CACHE=f"{directory}/cache", XDG_RUNTIME_DIR=f"{directory}/run")
    for test in (short_threads, titles, links, programs):
        test()
sys.exit(1 if failed else 0)

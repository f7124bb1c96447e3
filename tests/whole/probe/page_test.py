#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/probes.md's section "The library at work": each runs, ends as it should, and shows what stands there.

    page_test.py QUT SOURCE-TREE

Numbers and bars may be others, and lines may stand elsewhere; "..." stands for what is left out. Each script of the library is
in one of them. A command whose programs are not on this machine is skipped, which is said.
"""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

QUT, TREE = (os.path.realpath(path) for path in sys.argv[1:3])
SECTION = "## The library at work"
PROGRAMS = ("python3", "gdb", "redis-server", "redis-cli", "nginx", "curl", "psql", "setpriv")
PATIENCE_S = 120


def section():
    with open(os.path.join(TREE, "docs/probes.md"), encoding="utf-8") as file:
        return file.read().split(SECTION + "\n", 1)[1].split("\n## ", 1)[0]


def examples(text):
    """Commands, and the lines that each shows."""
    found = []
    for line in text.splitlines():
        if line.startswith("    $ "):
            found.append((line[6:], []))
        elif line.startswith("    > "):
            found[-1] = (f"{found[-1][0]}\n{line[6:]}", found[-1][1])
        elif line.startswith("    ") and found:
            found[-1][1].append(line[4:])
    return found


def pattern_of(line):
    """What a line may be on another day."""
    parts = []
    for part in re.split(r"(\.\.\.|\|@* *\||0x[0-9a-f]+|\d+|\s+)", line.strip()):
        parts.append(r".*" if part == "..." else r"\|@* *\|" if part.startswith("|") else r"0x[0-9a-f]+" if part.startswith("0x")
                     else r"\d+" if part.isdigit() else r"\s+" if part.isspace() else re.escape(part))
    return re.compile("^" + "".join(parts) + "$")


def run(command, folder):
    """What it shows, and its exit status; what it has started ends with it."""
    environment = {**os.environ, "PATH": f"{os.path.dirname(QUT)}:{os.environ['PATH']}:/usr/sbin", "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    os.chmod(folder, 0o755) # PostgreSQL is another user
    with subprocess.Popen(["bash", "-c", command], cwd=TREE, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True) as shell:
        try:
            output, said = shell.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            output, said = shell.communicate()
            raise AssertionError(f"{command}\ndoes not end:\n{output}{said}") from None
    return shell.returncode, output, said


def main():
    shown = examples(section())
    names = {os.path.basename(path)[:-3] for path in glob.glob(os.path.join(TREE, "probes/*.qp"))}
    missing = names - {name for command, _ in shown for name in re.findall(r"-f ([a-z-]+)", command)}
    assert not missing, f"scripts that the section does not show: {sorted(missing)}"
    for command, lines in shown:
        absent = [name for name in PROGRAMS if re.search(rf"(^|[ /]){name}\b", command) and not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")]
        if absent:
            print(f"SKIP {command}: {', '.join(absent)}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            status, output, said = run(command, folder)
        assert status == 0, f"{command}\nends with {status}:\n{output}{said}"
        actual = [line.strip() for line in output.splitlines()]
        for line in lines:
            if line.strip() and line.strip() != "..." and not any(map(pattern_of(line).match, actual)):
                raise AssertionError(f"{command}\ndoes not show\n{line}\nbut\n{output[-4000:]}{said[-2000:]}")
        print(f"ok {command.splitlines()[0]}: {len(lines)} lines", flush=True)


try:
    main()
except (AssertionError, IndexError) as error:
    sys.exit(f"FAIL: {error}")

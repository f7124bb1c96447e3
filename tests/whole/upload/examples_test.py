#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples of tools/fleet, and of its page: what they run is what this qut and this qutc take.

usage: examples_test.py QUT QUTC FOLDER PAGE
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

QUT, QUTC, FOLDER, PAGE = (os.path.abspath(path) for path in sys.argv[1:5])
COMMANDS = {"qut-monitor.service": r"^ExecStart=/usr/bin/(qut monitor .*)$", "compose.yaml": r"^ +command: (qut monitor .*)$",
            "kubernetes.yaml": r"^ +command: \[(qut, monitor, .*)\]$"}
FOLDERS = ("/run/qut", "/var/lib/qut/spool")


def words_of(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        text = file.read()
    found = re.search(COMMANDS[name], text, re.MULTILINE)
    if not found:
        return None, text
    return (re.split(", ", found[1]) if name == "kubernetes.yaml" else shlex.split(found[1])), text


def check(name, work):
    words, text = words_of(name)
    if not words:
        return "it has no command of qut monitor"
    for folder in FOLDERS:
        if folder not in words:
            return f"{folder} is not in its command"
    os.makedirs(f"{work}/segments", exist_ok=True)
    with open(f"{work}/url", "w", encoding="utf-8") as file:
        file.write("http://127.0.0.1:9\n")  # nobody is there: what is taken would wait
    replaced = {"/run/qut": f"{work}/segments", "/var/lib/qut/spool": f"{work}/spool-{name}", "@/etc/qut/url": f"@{work}/url",
                "http://collector:4318": f"@{work}/url"}
    words = [replaced.get(word.strip('"'), word.strip('"')) for word in words[1:]]
    done = subprocess.run([QUT, *words, "--window", "1", "--duration", "1", "--patience", "0"], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode not in (0, 1):
        return f"status {done.returncode}: {done.stderr}"
    # The agent's folder is the monitor's.
    if "QUT_AGENT" in text and not re.search(r"QUT_AGENT[,=:]? ?(value: )?/run/qut", text):
        return "QUT_AGENT is another folder"
    return None


def check_tables(path, work):
    """Each qutc warm-up that is written there, of one file in place of its folders, makes a table where it says."""
    with open(path, encoding="utf-8") as file:
        commands = re.findall(r"(?<!`)\bqutc (warm-up [^`\n]*?/var/cache/qut/tables(?: /usr[^`\n]*)?)", file.read().replace("`qutc", " qutc"))
    if not commands:
        return "it makes no tables"
    for number, command in enumerate(commands):
        tables = f"{work}/tables-{os.path.basename(path)}-{number}"
        words = [tables if word == "/var/cache/qut/tables" else word for word in shlex.split(command) if not word.startswith("/usr")]
        done = subprocess.run([QUTC, *words, QUTC], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0 or not os.listdir(tables):
            return f"{command}: status {done.returncode}: {done.stderr}"
    return None


def main():
    failed = 0
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=base) as work:
        for name in COMMANDS:
            wrong = check(name, work)
            print(f"{'FAIL' if wrong else 'ok  '} {name}{': ' + wrong if wrong else ''}")
            failed += wrong is not None
        pages = [f"{FOLDER}/qut-tables.service", f"{FOLDER}/qut-agent.env", PAGE]
        for path in pages:
            wrong = check_tables(path, work)
            print(f"{'FAIL' if wrong else 'ok  '} {os.path.basename(path)}{': ' + wrong if wrong else ''}")
            failed += wrong is not None
    print(f"{len(COMMANDS) + len(pages) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""System calls that are denied while something is recorded: to the recorder, to its command, to both. The command does
its work and ends as it does without us; and where the recording is not whole, or was not begun, the message names what
was denied.
    denied_test.py QUT DENY SUBJECT           the calls that filters of containers are known to deny
    denied_test.py QUT DENY SUBJECT --long    every call that a recording was seen to make, with EPERM and ENOSYS
    denied_test.py QUT DENY SUBJECT CALL...   these
Observed with tests/whole/record/deny.c."""
import errno
import json
import os
import re
import subprocess
import sys
import tempfile

USUAL = "pidfd_open memfd_create connect clone3 accept4 recvmsg epoll_wait".split()
# What a function of libc that we name does with another name.
SAID_AS = {"clone3": ["pthread_create", "fork"], "clone": ["fork", "pthread_create"], "eventfd2": ["eventfd"],
           "epoll_create1": ["epoll_create"], "signalfd4": ["signalfd"], "pipe2": ["pipe"], "getrandom": ["getrandom"],
           "wait4": ["wait"], "pwrite64": ["pwrite"], "accept4": ["accept"], "prlimit64": ["prlimit", "getrlimit"]}
WAYS = ("first", "others", "all")
NOBODY = {"execve": "nothing can be begun", "exit": "no thread of libc's ends",
          "exit_group": "no process ends",
          "readlink": "qut does not find its agent, and says so before anything is begun"}
STATUS, SAYS = 7, "done\n"


def numbers():
    text = subprocess.run(["cc", "-dM", "-E", "-include", "sys/syscall.h", "-x", "c", "/dev/null"], capture_output=True,
                          text=True, check=True).stdout
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", text)}


class Bench:
    def __init__(self, qut, deny, subject, folder):
        self.qut, self.deny, self.subject, self.folder = (os.path.realpath(p) for p in (qut, deny, subject, folder))
        self.numbers = numbers()
        self.names = {number: name for name, number in self.numbers.items()}
        self.trace = f"{self.folder}/trace"
        self.failed = self.count = self.effective = 0

    def run(self, who, call, error, command):
        report = f"{self.folder}/report"
        ran = subprocess.run([self.deny, who, str(self.numbers.get(call, 0)), str(error), report, *command], text=True,
                             capture_output=True, stdin=subprocess.DEVNULL, cwd=self.folder, timeout=60, check=False)
        counts = {(who, self.names.get(int(number), number)): int(count)
                  for who, number, count in (line.split() for line in open(report))}
        return ran, counts

    def command(self):
        return [self.subject, "works"]

    def recorded(self):
        return [self.qut, "record", "-o", self.trace, "--", *self.command()]

    def seen(self):
        """Every call that the recorder, or what it records, was seen to make."""
        _, counts = self.run("none", None, 0, self.recorded())
        self.clear()
        return sorted({name for _, name in counts if name in self.numbers})

    def clear(self):
        for name in os.listdir(self.folder):
            if name.startswith("trace") and os.path.isfile(f"{self.folder}/{name}"):
                os.unlink(f"{self.folder}/{name}")

    def is_whole(self):
        """Whether the file has samples of all processes, and knows of nothing that is missing."""
        ran = subprocess.run([self.qut, "info", "--json", self.trace], capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            return False
        info = json.loads(ran.stdout)
        return info["present_samples"] > 0 and info["complete"] and \
            all(one["notes"]["trigger"] != "none" for one in info["processes"])

    def fail(self, what, text):
        self.failed += 1
        print(f"not ok: {what}: {text}")

    def begins(self, command, call, error):
        """Whether such a program can begin at all where that is denied."""
        ran, _ = self.run("all", call, error, command)
        return ran.returncode == 0

    def try_one(self, who, call, error):
        what = f"{call} {errno.errorcode[error]} {who}"
        if call in NOBODY:
            print(f"SKIP: {what}: {NOBODY[call]}")
            return
        if not self.begins([self.qut, "--version"], call, error):
            print(f"SKIP: {what}: no program of libc's begins")
            return
        if who == "first":
            wanted = (STATUS, SAYS)
        else:
            plain, _ = self.run("all", call, error, self.command())
            wanted = (plain.returncode, plain.stdout)
        ran, counts = self.run(who, call, error, self.recorded())
        denied = sum(count for (whose, name), count in counts.items() if name == call and who in ("all", whose))
        is_whole = self.is_whole() and "not, or not all" not in ran.stderr
        said = [name for name in [call, *SAID_AS.get(call, [])] if re.search(rf"\b{name}\b", ran.stderr)]
        self.count += 1
        self.effective += denied > 0
        if (ran.returncode, ran.stdout) != wanted:
            self.fail(what, f"wanted {wanted}, not {(ran.returncode, ran.stdout)}: {ran.stderr}")
        elif denied and not is_whole and not said:
            self.fail(what, f"not said: {ran.stderr}")
        else:
            print(f"ok: {what}: {denied} times denied, "
                  f"{'whole' if is_whole else 'said'}{' ' + said[0] if said else ''}")
        self.clear()


def main():
    qut, deny, subject, *calls = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["QUT_CACHE"] = f"{folder}/cache"
        bench = Bench(qut, deny, subject, folder)
        ran, _ = bench.run("none", None, 0, bench.command())
        if ran.returncode == 77:
            print(ran.stderr.strip())
            return 77
        if (ran.returncode, ran.stdout) != (STATUS, SAYS):
            bench.fail("the command", f"{ran}")
        is_long = calls == ["--long"]
        errors = (errno.EPERM, errno.ENOSYS) if is_long else (errno.EPERM,)
        for call in bench.seen() if is_long else calls or USUAL:
            for error in errors:
                for who in WAYS:
                    try:
                        bench.try_one(who, call, error)
                    except subprocess.TimeoutExpired:
                        bench.fail(f"{call} {error} {who}", "never ends")
        print(f"{bench.count} denials, {bench.effective} of calls that were made, {bench.failed} failed")
        return int(bench.failed != 0 or bench.effective == 0)


sys.exit(main())

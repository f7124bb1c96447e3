# SPDX-License-Identifier: Apache-2.0
"""The programs that are looked at: how each is started, and what it needs. They are frozen before anybody looks."""
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
START_TIMEOUT_S = 60


class Missing(Exception):
    pass


@dataclass
class Program:
    name: str
    command: list  # {build}: the directory with our C programs; {work}: scratch
    short: bool = False
    rounds: int = 1  # it goes on in between: each time its threads are somewhere else
    ready: str = "ready"  # what it prints, somewhere in a line
    build: list = field(default_factory=list)  # a command that makes it
    environment: dict = field(default_factory=dict)
    unread: str = ""  # regular expression: of what qut says of a frame of native code that has no unwind information


ALL = [
    Program("C, 500 threads of depth 50", ["{subject}", "500", "50"], short=True),
    Program("C, handlers on alternate stacks", ["{build}/live_handlers"], short=True),
    Program("C, no frame pointer, alloca", ["{build}/live_frameless"], short=True, rounds=10),
    Program("python3", [sys.executable, f"{PROGRAMS}/threads.py"], short=True, rounds=3),
    Program("python3 of Debian", ["/usr/bin/python3", f"{PROGRAMS}/threads.py"], rounds=3),
    Program("node", ["node", f"{PROGRAMS}/threads.js"], rounds=3, unread=r" Builtins_"),
    Program("java", ["java", f"{PROGRAMS}/Threads.java"], rounds=3),
    Program("java -Xint", ["java", "-Xint", f"{PROGRAMS}/Threads.java"]),
    Program("Rust", ["{work}/threads-rs"],
            build=["rustc", "-O", "-o", "{work}/threads-rs", f"{PROGRAMS}/threads.rs"]),
    Program("Go (kubectl proxy)", ["kubectl", "proxy", "--port=0"], ready="serve", environment={"KUBECONFIG": "/dev/null"},
            unread=r"^kubectl "),
    Program("gdb", ["gdb", "-nx", "-q", "{build}/live_frameless", "-ex", "echo ready\\n"]),
    Program("perl", ["perl", "-e", "$| = 1; print qq(ready\\n); sub f { $_[0] ? f($_[0] - 1) : sleep(10000) } f(30)"]),
    Program("bash", ["bash", "-c", "f() { if [ $1 = 0 ]; then echo ready; read x; else f $(($1 - 1)); fi; }; f 20"]),
]


class Running:
    """A started program; `with` ends it."""

    def __init__(self, program, places):
        self.program = program
        if program.build:
            self.build(program, places)
        command = [part.format(**places) if "{" in part and part[0] == "{" else part for part in program.command]
        if not shutil.which(command[0]):
            raise Missing(f"no {command[0]}")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, errors="replace",
                                        env={**os.environ, **program.environment})
        self.pid = self.process.pid

    @staticmethod
    def build(program, places):
        command = [part.format(**places) for part in program.build]
        if not shutil.which(command[0]):
            raise Missing(f"no {command[0]}")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Missing(f"{command[0]} cannot build it: {done.stderr.strip()[-200:]}")

    def wait_until_ready(self):
        ready = threading.Event()
        said = []

        def read():
            for line in self.process.stdout:
                said.append(line)
                if self.program.ready in line:
                    ready.set()

        threading.Thread(target=read, daemon=True).start()
        deadline = time.monotonic() + START_TIMEOUT_S
        while not ready.wait(0.05):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Missing(f"it did not start: {''.join(said)[-200:].strip()}")
        time.sleep(0.5)

    def freeze(self):
        """Stopped as by a user's Ctrl-Z: whoever attaches and goes leaves it so."""
        os.kill(self.pid, signal.SIGSTOP)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if all(state in "TZX" for state in self.states()):
                return
            time.sleep(0.01)
        raise Missing("it cannot be stopped")

    def go_on(self):
        os.kill(self.pid, signal.SIGCONT)
        time.sleep(0.05)

    def states(self):
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            try:
                with open(f"/proc/{self.pid}/task/{tid}/stat", encoding="utf-8", errors="replace") as file:
                    yield file.read().rpartition(") ")[2][0]
            except (FileNotFoundError, ProcessLookupError):
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

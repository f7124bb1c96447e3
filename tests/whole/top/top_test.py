#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""qut top says what the recording says that it looks at, and leaves terminal, disk and process as they were.
Usage: top_test.py QUT PROGRAM, which uses its time in `inlined_part`, for so many milliseconds"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

qut, program = (os.path.abspath(path) for path in sys.argv[1:3])
counts = {"passed": 0, "failed": 0, "skipped": 0}


def check(what, good, seen=""):
    print(f"{'ok' if good else 'not ok'} - {what}")
    counts["passed" if good else "failed"] += 1
    if not good:
        print(f"# {str(seen)[-2500:]}")


def top(*arguments):
    return subprocess.run([qut, "top", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, text=True, timeout=200)


def wait_until(holds):
    deadline = time.monotonic() + 60
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def is_clean():
    return not os.listdir(os.environ["TMPDIR"])


# ---- the same numbers

def rows(document):
    return [(row["function"], row["self"], row["self_error"], row["total"]) for row in document["top"]]


def same_as_info():
    ran = top("--json", "--interval", "0.5", "--output", "kept.qtrace", "--", program, "2000")
    screens = [json.loads(line) for line in ran.stdout.splitlines()]
    check("a command's status", ran.returncode == 0, ran)
    check("there are screens", len(screens) >= 2, ran)
    info = json.loads(subprocess.run([qut, "info", "--json", "--top", "20", "--by-thread", "--blocked", "kept.qtrace"],
                                     stdout=subprocess.PIPE, check=True).stdout)
    last = screens[-1]
    check("the last one is what qut info says", rows(last) == rows(info) and last["by_thread"] == info["by_thread"] and
          last["blocked"] == info["blocked"] and last["quality"] == info["quality"], (last, info))
    live = [screen for screen in screens[:-1] if screen["top_samples"] > 50]
    check("those before are of the last moments", live and all(
        screen["to_ns"] - screen["from_ns"] <= 500000000 and screen["top_sum"] <= 530000000 for screen in live), live)
    check("and say where it is", all(screen["top"][0]["function"] == "inlined_part" and
                                     screen["top"][0]["self_share"] > 0.5 for screen in live), live)
    check("samples under way are not called lost", all(screen["quality"].get("lost", 0) == 0 for screen in live), live)
    middle = json.loads(subprocess.run([qut, "info", "--json", "--top", "20", "--between", "500ms,1s", "kept.qtrace"],
                                       stdout=subprocess.PIPE, check=True).stdout)
    check("info tells of a part", 0 < middle["top_sum"] <= 530000000 and middle["top_sum"] < info["top_sum"], middle)


# ---- as text, of processes, and what is wrong

def texts():
    ran = top("--batch", "2", "--interval", "0.5", "--view", "threads", "--", program, "100000")
    check("after the last screen all ends well", ran.returncode == 0 and ran.stdout.count("\n  threads: of the time") == 2,
          ran)
    ran = top("--batch", "0", "--", "sh", "-c", f"{program} 700; printf 'spo%s\\n' ken; echo complaint >&2; exit 7")
    check("a command's own status", ran.returncode == 7, ran)
    check("its last words, where it fails", "spoken\ncomplaint\n" in ran.stderr and "spoken" not in ran.stdout, ran)
    check("several processes", re.search(r"threads? of \d+ processes", ran.stdout), ran)
    ran = top("--batch", "0", "--command-output", "said", "--", "sh", "-c", f"{program} 300; printf 'spo%s\\n' ken; exit 3")
    with open("said", encoding="utf-8") as file:
        check("or where one wants them", file.read() == "spoken\n" and "spoken" not in ran.stderr and
              ran.returncode == 3, ran)
    check("nothing is left", is_clean(), os.listdir(os.environ["TMPDIR"]))


def reader_goes():
    with subprocess.Popen([qut, "top", "--json", "--interval", "0.3", "--", program, "100000"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        ran.stdout.readline()
        ran.stdout.close()
        said = ran.stderr.read()
    check("a reader that goes away is told of", ran.returncode == 2 and "standard output" in said, (ran.returncode, said))
    check("and leaves nothing", is_clean(), os.listdir(os.environ["TMPDIR"]))


def processes():
    with subprocess.Popen([program, "100000"]) as subject:
        for options in ([], ["--inject"]):
            ran = top("--batch", "2", "--interval", "0.7", *options, "-p", str(subject.pid))
            check(f"a process {options}", ran.returncode == 0 and "inlined_part" in ran.stdout, ran)
            check("goes on", subject.poll() is None)
        with subprocess.Popen([qut, "top", "--batch", "0", "-p", str(subject.pid)], stdout=subprocess.PIPE,
                              stdin=subprocess.DEVNULL) as killed:
            killed.stdout.readline()
            children = f"/proc/{killed.pid}/task/{killed.pid}/children"
            with open(children, encoding="ascii") as file:
                recorder = int(file.read().split()[0])
            killed.kill()
        # A zombie is waited for by whoever has it now.
        check("the recorder ends with us", wait_until(lambda: not is_running(recorder)))
        check("and the process goes on", subject.poll() is None)
        subject.kill()
    for name in os.listdir(os.environ["TMPDIR"]): # of the one that was killed
        subprocess.run(["rm", "-r", os.path.join(os.environ["TMPDIR"], name)], check=True)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def mistakes():
    for what, arguments, status, words in (
            ("nothing to look at", [], 2, "needs a COMMAND, or -p PID"),
            ("two things", ["-p", "1", "true"], 2, "not both"),
            ("no such view", ["--view", "nothing", "true"], 2, "functions, threads, waits or locks"),
            ("no interval", ["--interval", "0", "true"], 2, "seconds from 0.1 to 3600"),
            ("no such process", ["--batch", "1", "-p", "999999999"], 2, "999999999"),
            ("no such command", ["--batch", "1", "--", "/no/such/command"], 127, "/no/such/command"),
            ("what record refuses", ["--frequency", "no", "true"], 2, "samples a second")):
        ran = top(*arguments)
        check(what, ran.returncode == status and words in ran.stderr, ran)
    check("and leaves nothing", is_clean(), os.listdir(os.environ["TMPDIR"]))


# ---- on a terminal

class Terminal:
    def __init__(self, columns, rows_, *arguments):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            # The size is there when it looks.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows_, columns, 0, 0))
            os.execv(qut, [qut, "top", *arguments])
        self.seen = b""
        self.before = termios.tcgetattr(self.fd)

    def read(self, seconds=0.05):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                self.seen += os.read(self.fd, 65536)
            except OSError: # nobody has the other side any more
                return False
        return True

    def wait_for(self, pattern):
        deadline = time.monotonic() + 60
        while not re.search(pattern, self.seen) and time.monotonic() < deadline:
            if not self.read():
                break
        return re.search(pattern, self.seen) is not None

    def press(self, key):
        self.seen = b""
        os.write(self.fd, key)

    def end(self):
        """Its status as of a shell, once it has ended, and whether the terminal is as it was."""
        after = self.before
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                after = termios.tcgetattr(self.fd)
            except termios.error:
                pass
            if not self.read():
                break
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        is_restored = after[3] == self.before[3] and self.seen.rfind(b"\033[?1049l") > self.seen.rfind(b"\033[?1049h")
        return 128 - status if status < 0 else status, is_restored and b"\033[?25h" in self.seen


def lines_of(screen):
    """Of what was drawn last."""
    text = re.sub(rb"\033\[[0-9;?]*[A-Za-z]", b"", screen.rsplit(b"\033[H", 1)[-1])
    return text.decode().split("\r\n")


def keys():
    terminal = Terminal(60, 12, "--interval", "0.3", "--", program, "100000")
    check("the terminal shows functions", terminal.wait_for(rb"inlined_part"), terminal.seen)
    for key, wanted in ((b"t", rb"threads: of the time"), (b"w", rb"blocked"), (b"l", rb"waits for locks"),
                        (b"f", rb"functions by cpu"), (b"a", rb"functions of all"), (b"p", rb"paused"),
                        (b"h", rb"arrows"), (b"x", rb"inlined_part"), (b"\033[B", rb"inlined_part")):
        terminal.press(key)
        check(f"key {key}", terminal.wait_for(wanted), terminal.seen)
    drawn = lines_of(terminal.seen)
    check("nothing is wider or higher than it", len(drawn) <= 12 and all(len(line) <= 60 for line in drawn), drawn)
    terminal.press(b"q")
    check("q ends it all, and well", terminal.end() == (0, True), terminal.seen)


def ends():
    for what, do, status in (
            ("Ctrl-C", lambda terminal: os.write(terminal.fd, b"\003"), 130),
            ("SIGTERM", lambda terminal: os.kill(terminal.pid, signal.SIGTERM), 143),
            ("SIGHUP", lambda terminal: os.kill(terminal.pid, signal.SIGHUP), 129)):
        terminal = Terminal(80, 24, "--interval", "0.3", "--", program, "100000")
        check(f"{what}: it is there", terminal.wait_for(rb"inlined_part"), terminal.seen)
        do(terminal)
        check(f"{what}: the terminal is as it was", terminal.end() == (status, True), terminal.seen)
    terminal = Terminal(80, 24, "--interval", "0.3", "--", "sh", "-c", f"{program} 700; exit 5")
    ended = terminal.end()
    check("the command's end", ended == (5, True), (ended, terminal.seen))
    check("its functions stay on the terminal", b"inlined_part" in terminal.seen.rsplit(b"\033[?1049l", 1)[-1], terminal.seen)
    check("nothing is left", is_clean(), os.listdir(os.environ["TMPDIR"]))


with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    os.mkdir("run", 0o700)
    os.mkdir("temporary")
    os.environ.update(QUT_CACHE=f"{directory}/cache", XDG_RUNTIME_DIR=f"{directory}/run", TMPDIR=f"{directory}/temporary")
    same_as_info()
    texts()
    reader_goes()
    processes()
    mistakes()
    try:
        os.close(os.openpty()[0])
    except OSError as error:
        print(f"SKIP: no terminals: {error}")
        counts["skipped"] += 1
    else:
        keys()
        ends()
print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
sys.exit(1 if counts["failed"] else 0)

# SPDX-License-Identifier: Apache-2.0
"""Real programs and their load: what bench/overhead/run and tests of correctness run under a recorder.

A workload is an object with `name` and run(wrap, environment): it does a fixed amount of work, where `wrap` is the
command that stands before the program's own (["qut", "record", ...]), and returns a Run.
"""
import ctypes
import dataclasses
import glob
import os
import pwd
import random
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WAIT_S = 60
RUN_LIMIT_S = 600  # whatever takes longer is stuck


class Failed(Exception):
    pass


@dataclasses.dataclass
class Run:
    """What one run took: of the program, its children and the recorder, not of the load. `wall_s`: of a server, how long
    the load took. A server's processor time and switches are those from the load's first moment to the server's end;
    what it took until then is `start_cpu_s`. `said`: stderr."""
    wall_s: float
    cpu_s: float
    user_s: float
    switches: int
    requests: int = 1
    start_cpu_s: float = 0
    said: str = ""


def ended_how(status):
    return f"died: {signal.Signals(-status).name}" if status < 0 else f"status {status}"


# How long a program that is measured has its processor before others come to it: switches of programs are no part of what is
# measured, and perf's clock is set anew at each. Linux 6.12; before, some 3 ms are what it is.
SLICE_NS = 20000000
SYS_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}


def take_long_slices():
    number = SYS_SCHED_SETATTR.get(os.uname().machine)
    if number:
        attributes = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, os.getpriority(os.PRIO_PROCESS, 0), 0, SLICE_NS, 0, 0)
        ctypes.CDLL(None).syscall(number, 0, attributes, 0)


def on(cpus):
    """For Popen: on these processors alone, where any are named."""
    def keep():
        os.sched_setaffinity(0, cpus)
        take_long_slices()
    return {"preexec_fn": keep} if cpus else {}


def start(command, environment, cpus=None, **options):
    """Its stderr goes to a file, process.said: a pipe that nobody reads would stop it."""
    said = tempfile.TemporaryFile()
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
                               start_new_session=True, **on(cpus), **options)
    process.said = said
    return process


def kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def finish(process):
    """Waits for it: what it and the children it waited for used, and its stderr."""
    limit = threading.Timer(RUN_LIMIT_S, kill, [process])
    limit.start()
    try:
        _, status, used = os.wait4(process.pid, 0)
    except BaseException:
        kill(process)
        raise
    finally:
        limit.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    process.said.seek(0)
    return used, process.said.read().decode(errors="replace")


def quietly(command, cpus=None, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **on(cpus), **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: status {done.returncode}: {done.stdout[-1500:]}")
    return done.stdout


def until(is_so, what):
    for _ in range(WAIT_S * 20):
        if is_so():
            return
        time.sleep(0.05)
    raise Failed(f"{what}: not after {WAIT_S} s")


def children_of(pid):
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path, encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
        except OSError:
            pass  # the thread is gone
    return found


def used_so_far(pid):
    """(processor time, switches) of a process and all below it, those that are gone included. To the nanosecond for
    those that live; the kernel tells only hundredths of a second of the others."""
    cpu_s, switches = 0.0, 0
    try:
        cpu_s = time.clock_gettime((~pid << 3) | 2)  # the clock of that process, as clock_getcpuclockid makes it
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            words = file.read().rpartition(")")[2].split()
        cpu_s += (int(words[13]) + int(words[14])) / os.sysconf("SC_CLK_TCK")
        for path in glob.glob(f"/proc/{pid}/task/*/status"):
            with open(path, encoding="ascii", errors="replace") as file:
                switches += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
    except OSError:
        pass  # ended meanwhile: it is in its parent's sums
    for child in children_of(pid):
        more = used_so_far(child)
        cpu_s, switches = cpu_s + more[0], switches + more[1]
    return cpu_s, switches


def write_lines(path, count):
    source = random.Random(1)
    with open(path, "w", encoding="ascii") as file:
        for _ in range(count):
            file.write(f"{source.randrange(1 << 20)} {source.getrandbits(60):x} {source.randrange(1 << 40)}\n")


def write_c(path, count):
    with open(path, "w", encoding="ascii") as file:
        for i in range(count):
            file.write(f"long f{i}(long *p, long k)\n{{\n    long sum = {i};\n    for (long j = 0; j < k; j++)\n"
                       f"        sum ^= (p[j % {3 + i % 5}] + {i * 7919 % 1000}) << (j % 7);\n"
                       f"    return k > 1 ? sum + f{max(i - 1, 0)}(p, k / 2) : sum;\n}}\n")


class Command:
    cpus = None  # all

    def __init__(self, name, words, is_threaded=False):
        self.name, self.words, self.is_threaded = name, words, is_threaded

    def run(self, wrap, environment):
        began = time.monotonic()
        process = start(wrap + self.words, environment, self.cpus)
        used, said = finish(process)
        wall_s = time.monotonic() - began
        if process.returncode != 0:
            raise Failed(f"{ended_how(process.returncode)} {said[-300:]}".strip())
        return Run(wall_s, used.ru_utime + used.ru_stime, used.ru_utime, used.ru_nvcsw + used.ru_nivcsw, said=said)


class Server:
    """Starts a server, waits until it answers, puts its load on it, ends it with `end_signal`."""
    name = ""
    is_threaded = False
    end_signal = signal.SIGTERM
    good_ends = (0, -signal.SIGTERM, 128 + signal.SIGTERM)
    cpus, load_cpus = None, None  # all

    def prepare(self):
        """What begin() finds is as it was the first time."""

    def begin(self, wrap, environment):
        raise NotImplementedError

    def is_there(self):
        raise NotImplementedError

    def load(self):
        """Returns how many requests were answered; None: nobody counted."""
        raise NotImplementedError

    def run(self, wrap, environment):
        self.prepare()
        process = self.begin(wrap, environment)
        try:
            until(lambda: process.poll() is not None or self.is_there(), self.name)
            if process.returncode is not None:
                raise Failed(f"{self.name}: ended before it answered: {ended_how(process.returncode)}")
            start_cpu_s, start_switches = used_so_far(process.pid)
            began = time.monotonic()
            requests = self.load()
            wall_s = time.monotonic() - began
            # Where a recorder stands before it, the server is its child.
            os.kill((children_of(process.pid) or [process.pid])[0] if wrap else process.pid, self.end_signal)
        except BaseException:
            kill(process)
            if process.returncode is None:
                process.wait()
            raise
        used, said = finish(process)
        if process.returncode not in self.good_ends:
            raise Failed(f"{self.name}: {ended_how(process.returncode)} {said[-300:]}".strip())
        return Run(wall_s, used.ru_utime + used.ru_stime - start_cpu_s, used.ru_utime,
                   used.ru_nvcsw + used.ru_nivcsw - start_switches, requests or 1, start_cpu_s, said)


def is_answering(family, address):
    probe = socket.socket(family)
    try:
        probe.connect(address)
        return True
    except OSError:
        return False
    finally:
        probe.close()


class Redis(Server):
    name = "redis"
    tests = ("set", "get", "incr", "lpush", "lrange_100", "zadd")

    def __init__(self, work, requests):
        self.folder, self.requests = f"{work}/redis", requests
        os.makedirs(self.folder)
        self.socket = f"{self.folder}/socket"

    def begin(self, wrap, environment):
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        return start(wrap + ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir", self.folder],
                     environment, self.cpus)

    def is_there(self):
        return is_answering(socket.AF_UNIX, self.socket)

    def load(self):
        said = quietly(["redis-benchmark", "-s", self.socket, "-q", "-n", str(self.requests), "-t", ",".join(self.tests)],
                       self.load_cpus)
        if "rror" in said:
            raise Failed(f"redis-benchmark: {said[-500:]}")
        return self.requests * len(self.tests)


class Nginx(Server):
    name = "nginx"
    end_signal = signal.SIGQUIT
    port = 18181

    def __init__(self, work, seconds):
        self.folder, self.seconds = f"{work}/nginx", seconds
        os.makedirs(f"{self.folder}/html")
        with open(f"{self.folder}/html/index.html", "w", encoding="ascii") as file:
            file.write("x" * 4000)
        with open(f"{self.folder}/nginx.conf", "w", encoding="ascii") as file:
            file.write(f"daemon off; worker_processes 1; user root; pid {self.folder}/pid; error_log {self.folder}/error;\n"
                       f"events {{ worker_connections 512; }}\n"
                       f"http {{ access_log {self.folder}/access; gzip on; gzip_min_length 100; gzip_types *;\n"
                       f"  server {{ listen 127.0.0.1:{self.port}; root {self.folder}/html; }} }}\n")

    def begin(self, wrap, environment):
        for name in glob.glob(f"{self.folder}/access"):
            os.unlink(name)  # it would grow from run to run
        return start(wrap + [shutil.which("nginx") or "/usr/sbin/nginx", "-p", self.folder, "-e", f"{self.folder}/error", "-c",
                             f"{self.folder}/nginx.conf"], environment, self.cpus)

    def is_there(self):
        return is_answering(socket.AF_INET, ("127.0.0.1", self.port))

    def load(self):
        """wrk loads for a time, not for a number of requests."""
        said = quietly(["wrk", "-t1", "-c16", "-d", f"{self.seconds}s", "-H", "Accept-Encoding: gzip",
                        f"http://127.0.0.1:{self.port}/"], self.load_cpus)
        if "Non-2xx" in said or "Socket errors" in said:
            raise Failed(f"wrk: {said}")
        return int(next(line for line in said.splitlines() if "requests in" in line).split()[0])


class Postgres(Server):
    """Each run begins with the same files."""
    name = "postgres"
    end_signal = signal.SIGINT
    good_ends = (0,)

    def __init__(self, work, transactions, settings=()):
        self.folder, self.transactions, self.settings = f"{work}/postgres", transactions, settings
        self.bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        os.makedirs(self.folder)
        # It refuses to run as root.
        self.user = {}
        if os.getuid() == 0:
            entry = pwd.getpwnam("postgres")
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
            self.user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        quietly([f"{self.bin}/initdb", "-D", f"{self.folder}/data", "-U", "bench", "-A", "trust"], cwd=self.folder, **self.user)
        process = self.begin([], dict(os.environ))
        try:
            until(self.is_there, self.name)
            self.pgbench("-i", "-q", "-s", "2")
        finally:
            process.send_signal(self.end_signal)
            finish(process)
        os.rename(f"{self.folder}/data", f"{self.folder}/filled")

    def begin(self, wrap, environment):
        return start(wrap + [f"{self.bin}/postgres", "-D", f"{self.folder}/data", "-k", self.folder, "-h", "", "-F",
                             *self.settings], environment, self.cpus, cwd=self.folder, **self.user)

    def is_there(self):
        return subprocess.run([f"{self.bin}/pg_isready", "-q", "-h", self.folder], check=False).returncode == 0

    def pgbench(self, *words):
        return quietly([f"{self.bin}/pgbench", "-h", self.folder, "-U", "bench", *words, "postgres"], self.load_cpus,
                       cwd=self.folder)

    def load(self):
        self.pgbench("-c", "2", "-t", str(self.transactions), "-n", "-b", "simple-update")
        return 2 * self.transactions

    def prepare(self):
        shutil.rmtree(f"{self.folder}/data", ignore_errors=True)
        quietly(["cp", "-a", f"{self.folder}/filled", f"{self.folder}/data"])

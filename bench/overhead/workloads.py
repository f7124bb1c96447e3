# SPDX-License-Identifier: Apache-2.0
"""Real programs and their load: what bench/overhead/run and tests of correctness run under a recorder.

A workload is an object with `name` and run(wrap, environment): it does a fixed amount of work, where `wrap` is the
command that stands before the program's own (["qut", "record", ...]), and returns the processor time, in seconds, that the
program, its children and the recorder took. Its load (wrk, redis-benchmark, pgbench) is not counted.
"""
import glob
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WAIT_S = 60


class Failed(Exception):
    pass


def cpu_of(process):
    """Waits for it; its processor time with that of the children it waited for."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def start(command, environment, **options):
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, **options)


def quietly(command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: status {done.returncode}: {done.stdout[-1500:]}")
    return done.stdout


def until(is_so, what):
    for _ in range(WAIT_S * 20):
        if is_so():
            return
        time.sleep(0.05)
    raise Failed(f"{what}: not after {WAIT_S} s")


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
    def __init__(self, name, words):
        self.name, self.words = name, words

    def run(self, wrap, environment):
        process = start(wrap + self.words, environment)
        said = process.stderr.read()
        used = cpu_of(process)
        if process.returncode != 0:
            raise Failed(f"{self.name}: status {process.returncode}: {said[-1500:].decode(errors='replace')}")
        return used


class Server:
    """Starts a server, waits until it answers, puts its load on it, ends it with `end_signal`."""
    name = ""
    end_signal = signal.SIGTERM
    good_ends = (0, -signal.SIGTERM, 128 + signal.SIGTERM)

    def begin(self, wrap, environment):
        raise NotImplementedError

    def is_there(self):
        raise NotImplementedError

    def load(self):
        raise NotImplementedError

    def pid(self, process):  # of the server, where a recorder stands before it
        children = open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii").read().split()
        return int(children[0]) if children else process.pid

    def run(self, wrap, environment):
        process = self.begin(wrap, environment)
        try:
            until(lambda: self.is_there() or process.poll() is not None, self.name)
            self.load()
        except BaseException:
            process.kill()
            process.wait()
            raise
        os.kill(self.pid(process) if wrap else process.pid, self.end_signal)
        said = process.stderr.read()
        used = cpu_of(process)
        if process.returncode not in self.good_ends:
            raise Failed(f"{self.name}: status {process.returncode}: {said[-1500:].decode(errors='replace')}")
        return used


def answers(path):
    probe = socket.socket(socket.AF_UNIX)
    try:
        probe.connect(path)
        return True
    except OSError:
        return False
    finally:
        probe.close()


class Redis(Server):
    name = "redis"

    def __init__(self, work, requests):
        self.folder, self.requests = f"{work}/redis", requests
        os.makedirs(self.folder)
        self.socket = f"{self.folder}/socket"

    def begin(self, wrap, environment):
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        return start(wrap + ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir", self.folder],
                     environment)

    def is_there(self):
        return answers(self.socket)

    def load(self):
        said = quietly(["redis-benchmark", "-s", self.socket, "-q", "-n", str(self.requests), "-t",
                        "set,get,incr,lpush,lrange_100,zadd"])
        if "rror" in said:
            raise Failed(f"redis-benchmark: {said[-500:]}")


class Nginx(Server):
    name = "nginx"
    end_signal = signal.SIGQUIT

    def __init__(self, work, requests):
        self.folder, self.requests = f"{work}/nginx", requests
        os.makedirs(f"{self.folder}/html")
        os.chmod(work, 0o755)
        with open(f"{self.folder}/html/index.html", "w", encoding="ascii") as file:
            file.write("x" * 4000)
        with open(f"{self.folder}/nginx.conf", "w", encoding="ascii") as file:
            file.write(f"daemon off; worker_processes 1; user root; pid {self.folder}/pid; error_log {self.folder}/error;\n"
                       f"events {{ worker_connections 512; }}\n"
                       f"http {{ access_log {self.folder}/access; gzip on; gzip_min_length 100; gzip_types *;\n"
                       f"  server {{ listen 127.0.0.1:18181; root {self.folder}/html; }} }}\n")

    def begin(self, wrap, environment):
        return start(wrap + [shutil.which("nginx") or "/usr/sbin/nginx", "-p", self.folder, "-e", f"{self.folder}/error", "-c",
                             f"{self.folder}/nginx.conf"], environment)

    def is_there(self):
        probe = socket.socket()
        try:
            probe.connect(("127.0.0.1", 18181))
            return True
        except OSError:
            return False
        finally:
            probe.close()

    def load(self):
        """wrk loads for a time, not for a number of requests: what it did is kept, to divide by."""
        said = quietly(["wrk", "-t1", "-c16", "-d", f"{max(1, self.requests // 10000)}s", "-H", "Accept-Encoding: gzip",
                        "http://127.0.0.1:18181/"])
        if "Non-2xx" in said or "Socket errors" in said:
            raise Failed(f"wrk: {said}")
        self.done = int(next(line for line in said.splitlines() if "requests in" in line).split()[0])

    def run(self, wrap, environment):
        return super().run(wrap, environment) / self.done * self.requests


class Postgres(Server):
    name = "postgres"
    end_signal = signal.SIGINT
    good_ends = (0,)

    def __init__(self, work, transactions):
        self.folder, self.transactions = f"{work}/postgres", transactions
        self.bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        os.makedirs(self.folder)
        # It refuses to run as root.
        self.user = {}
        if os.getuid() == 0:
            entry = pwd.getpwnam("postgres")
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
            os.chmod(work, 0o777)
            self.user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        quietly([f"{self.bin}/initdb", "-D", f"{self.folder}/data", "-U", "bench", "-A", "trust"], cwd=self.folder, **self.user)
        self.is_filled = False

    def begin(self, wrap, environment):
        return start(wrap + [f"{self.bin}/postgres", "-D", f"{self.folder}/data", "-k", self.folder, "-h", "", "-F"], environment,
                     cwd=self.folder, **self.user)

    def is_there(self):
        return subprocess.run([f"{self.bin}/pg_isready", "-q", "-h", self.folder], check=False).returncode == 0

    def pgbench(self, *words):
        return quietly([f"{self.bin}/pgbench", "-h", self.folder, "-U", "bench", *words, "postgres"], cwd=self.folder)

    def load(self):
        if not self.is_filled:
            self.pgbench("-i", "-q", "-s", "2")
            self.is_filled = True
        self.pgbench("-c", "2", "-t", str(self.transactions), "-n", "-b", "simple-update")


def all_workloads(work, scale):
    """`scale` 1: some ten seconds of work each. Names of what is not installed: (found, missing)."""
    source, lines, packed = f"{work}/source.c", f"{work}/lines", f"{work}/packed"
    write_c(source, int(2500 * scale) + 20)
    write_lines(lines, int(2500000 * scale) + 2000)
    with open(lines, "rb") as file, open(packed, "wb") as out:
        out.write(file.read(int(9e6 * scale) + 100000))
    found, missing = [], []
    clang = shutil.which("clang")
    wanted = [
        ("python3", "/usr/bin/python3", lambda: Command("python3", ["/usr/bin/python3", "-S", f"{HERE}/../programs/busy.py",
                                                                    str(int(14 * scale) + 1)])),
        ("clang", clang, lambda: Command("clang", [clang, "-O2", "-w", "-c", source, "-o", f"{work}/source.o"])),
        ("redis", shutil.which("redis-server"), lambda: Redis(work, int(250000 * scale) + 1000)),
        ("nginx", shutil.which("wrk") and (shutil.which("nginx") or glob.glob("/usr/sbin/nginx")),
         lambda: Nginx(work, int(100000 * scale) + 10000)),
        ("postgres", glob.glob("/usr/lib/postgresql/*/bin/postgres"), lambda: Postgres(work, int(20000 * scale) + 200)),
        ("sort", "sort", lambda: Command("sort", ["sort", "--parallel=2", "-S", "64M", "-T", work, "-k2,2", "-k1,1n", "-o",
                                                  f"{work}/sorted", lines])),
        ("xz", "xz", lambda: Command("xz", ["xz", "-k", "-f", "-T2", "-4", "--block-size=1MiB", packed])),
    ]
    for name, there, make in wanted:
        if there:
            found.append(make())
        else:
            missing.append(name)
    return found, missing

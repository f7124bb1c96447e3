#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each script of the library, put into a program under load and taken out again, over and over: what is mapped from files
and the bytes of all code are what they were before the first time, each time.

    detaches_test.py QUT [TIMES]        2 times each; a hundred take half an hour

The scripts about servers run in these, where they are there, under load of clients; that about exceptions in a gdb, which
throws for each mistake that it is given; the others in a python3 whose threads read, connect in vain, allocate, and take locks.
"""
import glob
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../support"))
import servers

QUT, TIMES = os.path.realpath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2
LIBRARY = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../../probes")
PATIENCE_S, PROBED_S, FIRST_PROBED_S = 120, 0.2, 1 # as long as nothing was counted: on a busy machine little happens in a moment

BUSY = """
import ctypes, os, socket, sys, threading
libc, lock = ctypes.CDLL(None), threading.Lock()
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def reads():
    while True:
        fd = os.open(sys.executable, os.O_RDONLY); os.read(fd, 1000); os.close(fd)
        try: os.open("/missing", os.O_RDONLY)
        except OSError: pass
def connects():
    while True:
        with socket.socket(socket.AF_UNIX) as client: client.connect_ex("/missing")
def allocates():
    while True:
        libc.free(libc.malloc(5000))
        with lock: pass
for work in (reads, connects, allocates): threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
os._exit(0)
"""
FUNCTIONS = {"call-values": "libc.so*!close", "errors": "libc.so*!connect", "retries": "libc.so*!connect", "slow-calls": "libc.so*!read",
             "time-by-argument": "libc.so*!read", "who-calls": "libc.so*!malloc"}


# Until something comes, or the end of it.
MISTAKES = """
import os, select
os.write(1, b"ready\\n")
while not select.select([0], [], [], 0)[0]:
    try: gdb.parse_and_eval("1 / 0")
    except gdb.error: pass
"""


def state_of(pid):
    """What is mapped from files, or may run; and the bytes of what may run."""
    mapped, code = [], hashlib.sha256()
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            words = line.split(maxsplit=5)
            may_run, is_file = "x" in words[1], len(words) > 5 and words[5].startswith("/")
            if not may_run and not is_file:
                continue # memory of its own, which the load moves
            mapped.append(line)
            if may_run and words[5:] != ["[vsyscall]\n"]:
                begin, end = (int(word, 16) for word in words[0].split("-"))
                code.update(os.pread(memory.fileno(), end - begin, begin))
    return mapped, code.hexdigest()


def ran_ns(pid):
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def until_as_before(pid, before):
    """At the latest a moment after the tool has ended."""
    until = time.monotonic() + PATIENCE_S
    while (now := state_of(pid)) != before:
        if time.monotonic() > until:
            gone = [line for line in before[0] if line not in now[0]]
            new = [line for line in now[0] if line not in before[0]]
            raise AssertionError(f"not as before: gone {gone}, new {new}, code {now[1] == before[1]}")
        time.sleep(0.02)


def put_in_and_out(script, pid, folder):
    """How often it ran, of all times."""
    options = ["-a", FUNCTIONS[script]] if script in FUNCTIONS else []
    before, shown = state_of(pid), 0
    for _ in range(TIMES):
        with subprocess.Popen([QUT, "probe", "-q", "--json", "--cache", os.path.join(folder, "cache"), "-f", script, *options,
                               "--duration", str(PROBED_S if shown else FIRST_PROBED_S), "-p", str(pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as tool:
            output, said = tool.communicate(timeout=PATIENCE_S)
        # 1: more came than could be shown.
        assert tool.returncode in (0, 1) and "could not be put back" not in said, (script, tool.returncode, said)
        shown += any(has in output for has in ('"rows":[{', '"rows": [{', '"printf"'))
        until_as_before(pid, before)
    began, until = ran_ns(pid), time.monotonic() + PATIENCE_S
    while ran_ns(pid) == began:
        assert time.monotonic() < until, f"{script}: the program does not go on"
        time.sleep(0.01)
    print(f"ok {script}: {TIMES} times, of which {shown} counted something", flush=True)
    return shown


class Load:
    """Something that is done over and over, by a thread."""

    def __init__(self, work):
        self.is_over, self.failed = False, None
        self.thread = threading.Thread(target=self.run, args=(work,))

    def run(self, work):
        try:
            while not self.is_over:
                work()
        except (OSError, AssertionError) as error:
            self.failed = error

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()
        assert not self.failed, f"the load: {self.failed!r}"


def main_pid(server):
    with open(f"{server.folder}/pid", encoding="ascii") as file:
        return int(file.readline())


def nginx_worker(server):
    with open(f"/proc/{main_pid(server)}/task/{main_pid(server)}/children", encoding="ascii") as file:
        return int(file.read().split()[0])


def in_gdb():
    if not shutil.which("gdb"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/mistakes.py", "w", encoding="utf-8") as file:
            file.write(MISTAKES)
        with subprocess.Popen(["gdb", "-nx", "-batch", "-x", file.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            try:
                assert program.stdout.readline() == b"ready\n"
                shown = put_in_and_out("exceptions", program.pid, folder)
                program.stdin.close()
                assert program.wait(PATIENCE_S) == 0, program.returncode
            finally:
                program.kill()
        return shown


def in_nginx():
    if not servers.nginx_program():
        return None
    with tempfile.TemporaryDirectory() as folder:
        server = servers.Nginx(folder, [], workers=1)
        try:
            server.until_up()
            connection = server.connect()
            servers.answer(connection, "/there")
            with Load(lambda: servers.answer(connection, "/there")):
                shown = put_in_and_out("nginx-requests", nginx_worker(server), folder)
            connection.close()
            server.stop()
            server.end()
            return shown
        finally:
            server.kill()


def in_postgres():
    if not servers.postgres_programs():
        return None
    with tempfile.TemporaryDirectory() as folder:
        server = servers.Postgres(folder, [])
        try:
            server.until_up()
            server.ask("-c", "create table items (n int)")
            with subprocess.Popen(["psql", "-h", folder, "-U", "postgres", "-XAtq"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True) as client:
                def ask(text):
                    client.stdin.write(text + "\n")
                    client.stdin.flush()
                    return client.stdout.readline()
                pid = int(ask("select pg_backend_pid();"))
                with Load(lambda: ask("select count(*) from items;")):
                    shown = put_in_and_out("postgres-queries", pid, folder)
                client.stdin.close()
            server.stop()
            server.end()
            return shown
        finally:
            server.kill()


def in_redis():
    if not shutil.which("redis-server"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        server = servers.Redis(folder, [])
        try:
            server.until_up()
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(f"{folder}/socket")
                def ask():
                    client.sendall(b"SET a b\r\n")
                    assert client.recv(100) == b"+OK\r\n"
                with Load(ask):
                    shown = put_in_and_out("redis-commands", server.program.pid, folder)
            server.stop()
            server.end()
            return shown
        finally:
            server.kill()


PROGRAMS = {"exceptions": in_gdb, "nginx-requests": in_nginx, "postgres-queries": in_postgres, "redis-commands": in_redis}


def main():
    scripts = sorted(os.path.basename(path)[:-3] for path in glob.glob(f"{LIBRARY}/*.qp"))
    never = []
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as busy:
            busy.stdout.readline()
            for script in scripts:
                if script not in PROGRAMS and put_in_and_out(script, busy.pid, folder) == 0:
                    never.append(script)
            busy.stdin.close()
            assert busy.wait(PATIENCE_S) == 0, busy.returncode
    for script, run in PROGRAMS.items():
        shown = run()
        if shown is None:
            print(f"SKIP {script}: there is no such program, of a version that is known")
        elif shown == 0:
            never.append(script)
    assert not never, f"these never counted anything: {never}"


signal.signal(signal.SIGPIPE, signal.SIG_DFL)
try:
    main()
except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as error:
    sys.exit(f"FAIL: {error!r}")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library of scripts on programs that others wrote: what each counts is what the program says of itself.

    servers_test.py QUT [TIMES]      with so many times the requests

PostgreSQL beside pg_stat_statements, nginx beside stub_status, python3, node and gdb beside what they were told to do. Those
that are not on this machine are skipped, which is said. (redis: scripts_test.py.)
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../support"))
import checks  # noqa: E402
import servers

QUT, TIMES = os.path.realpath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
PATIENCE_S = 120 * TIMES


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


def shown(text):
    documents = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    maps = {document["map"]: document["rows"] for document in documents if "map" in document}
    return maps, [document["printf"] for document in documents if "printf" in document]


def run(script, parameters, *command, status=0):
    options = [word for value in parameters for word in ("-a", value)]
    done = subprocess.run([QUT, "probe", "--json", "-f", script, *options, *command], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE_S)
    expect(f"exit status of {script} ({done.stderr})", done.returncode, status)
    return shown(done.stdout)


def probing(script, parameter, folder):
    """What a server's command stands behind."""
    return [QUT, "probe", "--json", "--cache", os.path.join(folder, "cache"), "-f", script, "-a", parameter]


def by_key(rows, field="value"):
    return {row["key"][0]: row[field] for row in rows}


# ---- PostgreSQL

STATEMENTS = (("select count(*) from items", 40 * TIMES), ("select sum(n) from items where n > 3", 25 * TIMES), ("insert into items values (1)", 15),
              ("select pg_sleep(0.2)", 2), ("select nested()", 10))


def check_postgres():
    if not servers.postgres_programs():
        print("SKIP: no PostgreSQL of version 12 to 17")
        return
    with tempfile.TemporaryDirectory() as folder:
        server = servers.Postgres(folder, probing("postgres-queries", "100ms", folder), "-c", "pg_stat_statements.track=all")
        ask = server.ask
        try:
            server.until_up()
            ask("-c", "create extension pg_stat_statements", "-c", "create table items (n int)",
                "-c", "create function nested() returns bigint language plpgsql as 'begin return (select count(*) from items); end'")
            ask(*(word for text, number in STATEMENTS for _ in range(number) for word in ("-c", text)),
                "-c", "select 1 / 0", "-c", "select count(*) from items") # after an error it goes on
            own = ask("-c", "select query, sum(calls) from pg_stat_statements group by query").stdout
            server.stop()
            maps, printed = shown(server.end())
        finally:
            server.kill()
    counted = dict(line.rsplit("|", 1) for line in own.splitlines() if "|" in line)
    calls, times = by_key(maps["calls"]), by_key(maps["us"], "updates")
    for text, number in STATEMENTS:
        number += text == "select count(*) from items"
        there = re.sub(r"(\d+\.\d+|\b\d+\b)", "$1", text) # constants
        expect(f"{text}: its own account, counted, and timed", (counted.get(there), calls.get(text), times.get(text)),
               (str(number), number, number))
    inner = "(select count(*) from items)" # of the function
    expect("statements within a function", (counted.get(inner), calls.get(inner)), ("10", 10))
    slow = [line for line in printed if "pg_sleep" in line]
    expect("slow ones", [re.sub(r"^2\d{5} us", "T us", line) for line in slow], ["T us: select pg_sleep(0.2)\n"] * 2)
    expect("utilities", by_key(maps["utilities"]).get("create table items (n int)"), 1)


# ---- nginx

def check_nginx():
    if not servers.nginx_program():
        print("SKIP: no nginx of version 1.22 with stub_status")
        return
    with tempfile.TemporaryDirectory() as folder:
        server = servers.Nginx(folder, probing("nginx-requests", "100s", folder))
        try:
            server.until_up()
            wanted = {200: 0, 404: 0, 410: 0}
            for _ in range(8): # connections, of both workers
                connection = server.connect()
                for path, status, number in (("/there", 200, 40 * TIMES), ("/missing", 404, 15 * TIMES), ("/gone", 410, 5 * TIMES)):
                    for _ in range(number):
                        expect(path, servers.answer(connection, path)[0], status)
                    wanted[status] += number
                connection.close()
            connection = server.connect()
            _, own = servers.answer(connection, "/status")
            wanted[200] += 1
            connection.close()
            server.stop()
            maps, _ = shown(server.end())
        finally:
            server.kill()
    requests = server.requests(own)
    expect("its own account, and counted", (requests, maps["requests"][0]["value"]), (sum(wanted.values()),) * 2)
    expect("by status", by_key(maps["answers"]), wanted)
    expect("times", by_key(maps["us"], "updates"), wanted)


# ---- python3, node

READS = "import os, sys\nfor path, number in zip(sys.argv[1::2], sys.argv[2::2]):\n for _ in range(int(number)):\n" \
        "  fd = os.open(path, os.O_RDONLY)\n  assert len(os.read(fd, 300)) == 300 and len(os.pread(fd, 200, 7)) == 200\n" \
        "  os.close(fd)\n"


def check_file_reads():
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        paths = [os.path.join(folder, name) for name in ("one", "other")]
        for path in paths:
            with open(path, "w") as file:
                file.write("x" * 1000)
        maps, _ = run("file-reads", [], sys.executable, "-c", READS, paths[0], "30", paths[1], "70")
        for path, number in zip(paths, (30, 70)):
            found = by_key(maps["reads"]).get(path), by_key(maps["bytes"]).get(path), by_key(maps["us"], "updates").get(path)
            expect(path, found, (2 * number, 500 * number, 2 * number))
        node = shutil.which("node")
        if not node:
            print("SKIP: no node")
            return
        code = "const fs = require('fs'); for (let i = 0; i < 50; i++) { const fd = fs.openSync(process.argv[1]);" \
               "if (fs.readSync(fd, Buffer.alloc(100)) != 100) process.exit(1); fs.closeSync(fd); }"
        maps, _ = run("file-reads", [], node, "-e", code, paths[0])
        expect("node", (by_key(maps["reads"]).get(paths[0]), by_key(maps["bytes"]).get(paths[0])), (50, 5000))


RETRIES = "import errno, os, socket, sys\npath, number = sys.argv[1], int(sys.argv[2])\nclient = socket.socket(socket.AF_UNIX)\n" \
          "for _ in range(number):\n assert client.connect_ex(path) == errno.ENOENT\n" \
          "server = socket.socket(socket.AF_UNIX)\nserver.bind(path)\n" \
          "for _ in range(number // 2):\n assert client.connect_ex(path) == errno.ECONNREFUSED\n" \
          "server.listen()\nassert client.connect_ex(path) == 0\n"


def check_retries():
    with tempfile.TemporaryDirectory() as folder:
        maps, _ = run("retries", ["libc.so*!connect", "1"], sys.executable, "-c", RETRIES, os.path.join(folder, "socket"), "40")
    expect("failures", by_key(maps["failures"]), {2: 40, 111: 20}) # ENOENT, ECONNREFUSED
    expect("retries", by_key(maps["retries"]), {2: 40, 111: 20})
    expect("tries", [cell for cell in maps["tries"][0]["cells"] if cell["from"] > 1], [{"from": 32, "count": 1}]) # 61


ALLOCATES = "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]\n" \
            "libc.free.argtypes = [ctypes.c_void_p]\nfor _ in range(300):\n libc.free(libc.malloc(777777))\n"


def check_allocations():
    maps, _ = run("allocations", ["1"], sys.executable, "-c", ALLOCATES)
    large = [cell["count"] for row in maps["sizes"] for cell in row["cells"] if cell["from"] == 524288]
    assert sum(large) >= 300, maps["sizes"]
    assert sum(row["value"] for row in maps["bytes"]) >= 300 * 777777, maps["bytes"]


# ---- gdb, which throws for each mistake; its python swallows that, and says so as an exception of its own

MISTAKES = (("1 / 0", 200 * TIMES), ("no_such_symbol", 100 * TIMES), ("(", 50 * TIMES))
ASKS_GDB = "raised = 0\nfor text, number in %r:\n for _ in range(number):\n  try: gdb.parse_and_eval(text)\n" \
           "  except gdb.error: raised += 1\nprint('raised', raised)\n" % (MISTAKES,)


def check_exceptions():
    if not shutil.which("gdb") or "19gdb_exception_error" not in strings_of(shutil.which("gdb")):
        print("SKIP: no gdb that throws")
        return
    done = subprocess.run([QUT, "probe", "--json", "-f", "exceptions", "--", "gdb", "-nx", "-batch", "-ex", "python exec(%r)" % ASKS_GDB],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)
    expect(f"exit status ({done.stderr})", done.returncode, 0)
    own = int(re.search(r"raised (\d+)", done.stdout).group(1))
    expect("what its python was told", own, sum(number for _, number in MISTAKES))
    maps, _ = shown(done.stdout)
    thrown = {}
    for row in maps["thrown"]:
        thrown[row["key"][0]] = thrown.get(row["key"][0], 0) + row["value"]
    expect("thrown", thrown, {"19gdb_exception_error": own})
    # Who catches, and throws again, is there in both.
    caught, rethrown = ({tuple(row["key"][0]): row["value"] for row in maps[name]} for name in ("caught", "rethrown"))
    assert rethrown and all(caught.get(stack) == number for stack, number in rethrown.items()), (caught, rethrown)
    swallowed = {stack: number for stack, number in caught.items() if stack not in rethrown}
    expect("swallowed, by who is called from python alone", (sum(swallowed.values()), all("python" in stack[1] for stack in swallowed)),
           (own, True))


def strings_of(path):
    with open(path, "rb") as file:
        return file.read().decode("latin-1")


def main():
    checks.run(check_file_reads, check_retries, check_allocations, check_exceptions, check_nginx, check_postgres)


main()

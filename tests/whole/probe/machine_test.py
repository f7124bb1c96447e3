#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of probes as machine code: they count what the interpreter counts, the code is in memory that is never both
written and executed, is gone when all is put back, and where the kernel refuses such memory the interpreter goes on.

    machine_test.py QUT SUBJECT
"""
import ctypes
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time

QUT, SUBJECT = (os.path.realpath(path) for path in sys.argv[1:3])
NAME = os.path.basename(SUBJECT)
PATIENCE_S = 120
# All kinds of operations, with results by which a wrong one shows.
SCRIPT = (f"entry:{NAME}!probe_work /arg0 >= 0 && (arg0 & 3) != 7/ {{ @n = count(); @mixed[arg0 % 7, arg0 >> 3 & 15] ="
          f" sum(arg0 * 3 + 7 - (arg0 >> 1) ^ 5); @quotients = sum((arg0 - 500) / 13 * 100 + (arg0 - 500) % 13);"
          f" @by_zero = sum(100 / (arg0 - 3)); @text[str(arg1)] = max(arg0 << 40 | ~arg0); @l = lhist(arg0 - 100, -50, 900, 50);"
          f" @v[arg0 % 5] = arg0; @seen = sum(@v[arg0 * 2 % 5]); @none = max(u64(arg2)) }}"
          f"return:{NAME}!probe_work {{ @r = sum(retval); @h = hist(retval); if (retval % 500 == 0) {{ printf(\"%d\", retval) }} }}"
          f"return:{NAME}!probe_deep /duration > 0/ {{ @deep = max(retval) }}")


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


def probe(*more, before=None):
    done = subprocess.run([QUT, "probe", "--json", "-q", *more, "-e", SCRIPT, SUBJECT, "1", "3000", "0"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE_S, preexec_fn=before)
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    account = re.search(r"calls (\d+) retvals (\d+)", done.stdout)
    documents = sorted(line for line in done.stdout.splitlines() if line.startswith("{"))
    maps = {document["map"]: document["rows"] for document in map(json.loads, documents) if "map" in document}
    expect("calls", maps["n"][0]["value"], int(account[1]) + 1)
    expect("what they return", maps["r"][0]["value"], int(account[2]) + 4)
    # The handler comes in at any time: what the last one was is another one each time.
    return [line for line in documents if not re.search('"(v|seen)"', line)], done.stderr


def refuse_code():
    """Of this process and what it becomes: mprotect with PROT_EXEC fails, by EPERM."""
    load, is_equal, has, give = 0x20, 0x15, 0x45, 0x06
    allow, refuse, mprotect = 0x7fff0000, 0x00050000 | 1, 10 # of x86-64
    program = b"".join(struct.pack("=HBBI", *one) for one in (
        (load, 0, 0, 0), (is_equal, 0, 3, mprotect), (load, 0, 0, 16 + 2 * 8), (has, 0, 1, 4), (give, 0, 0, refuse), (give, 0, 0, allow)))
    libc = ctypes.CDLL(None, use_errno=True)
    kept = ctypes.create_string_buffer(program)
    filters = struct.pack("=HxxxxxxQ", len(program) // 8, ctypes.addressof(kept))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, filters, 0, 0) != 0: # no new privileges; a filter
        os._exit(99)


def check_both_ways():
    machine, said = probe()
    expect("said", said, "")
    interpreted, said = probe("--interpret")
    expect("said of the interpreter that was asked for", said, "")
    expect("the interpreter's maps", interpreted, machine)
    refused, said = probe(before=refuse_code)
    expect("maps where code is refused", refused, machine)
    wanted = "in 1 of the processes programs were interpreted, which takes longer: no machine code: Operation not permitted"
    assert re.search(wanted, said), said


def code_of_programs(pid):
    """Where memory that is executed begins as machine code of programs does: with an address of the agent's, and int3."""
    agents, found = [], []
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
        rows = [line.split() for line in maps]
    for row in rows:
        assert "wx" not in row[1], f"memory that is both written and executed: {row}"
        begin, end = (int(number, 16) for number in row[0].split("-"))
        if "libqut-agent" in row[-1]:
            agents.append((begin, end))
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for row in rows:
            if row[1] == "r-xp" and len(row) == 5:
                begin = int(row[0].split("-")[0], 16)
                head = os.pread(memory.fileno(), 16, begin)
                address = struct.unpack("<Q", head[:8])[0]
                if any(low <= address < high for low, high in agents) and head[8:] == b"\xcc" * 8:
                    found.append(row[0])
    return found


def check_memory():
    with subprocess.Popen([SUBJECT, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            program.stdout.readline()
            for more, wanted in ((), 1), (("--interpret",), 0), ((), 1):
                with subprocess.Popen([QUT, "probe", "-q", *more, "-e", f"entry:{NAME}!probe_work {{ @n = count() }} timer:20ms {{ print(@n) }}",
                                       "-p", str(program.pid)], stdout=subprocess.PIPE, text=True) as tool:
                    until = time.monotonic() + PATIENCE_S
                    while not re.match(r"@n: [1-9]", tool.stdout.readline()):
                        assert time.monotonic() < until, "nothing is counted"
                    expect(f"code of programs {more}", len(code_of_programs(program.pid)), wanted)
                    tool.send_signal(signal.SIGINT)
                    tool.communicate(timeout=PATIENCE_S)
                expect("exit status", tool.returncode, 0)
                expect("code that is left", code_of_programs(program.pid), [])
        finally:
            program.stdin.close()


def main():
    check_both_ways()
    check_memory()


if __name__ == "__main__":
    main()

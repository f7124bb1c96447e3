#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What speaks to the recorder without being an agent: is refused and counted, and changes nothing for those who are.
Usage: hostile.py QUT SUBJECT"""
import array
import glob
import os
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

qut, subject = sys.argv[1:3]
folder = tempfile.TemporaryDirectory()
os.environ["XDG_RUNTIME_DIR"] = folder.name
path = f"{folder.name}/a.qtrace"
HELLO, TABLE, ADD, LEFT = 1, 2, 3, 4

recorder = subprocess.Popen([qut, "record", "-o", path, subject, "sleeps"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
recorder.stdout.readline()
with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children") as file:
    child = file.read().split()[0]
with open(f"/proc/{child}/environ", "rb") as file:
    settings = [item for item in file.read().split(b"\0") if item.startswith(b"QUT_AGENT=")][0]
with open(f"/proc/{child}/environ", "rb") as file:
    preload = [item for item in file.read().split(b"\0") if item.startswith(b"LD_PRELOAD=")][0]
token = re.search(rb"[=;]t=([0-9a-f]{32})", settings).group(1)
where = re.search(rb"[=;]k=([^;]*)", settings).group(1).decode()
where = "\0" + where[1:] if where.startswith("@") else where
sizes = {HELLO: 72, TABLE: 48 + 24 + 64 + 4096, ADD: 176, LEFT: 64}


def connect():
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.settimeout(20)
    client.connect(where)
    return client


def head(kind, version=1, with_token=token):
    return struct.pack("<II40s", version, kind, with_token)


def send(packet, fds=(), reason=b""):
    """The answer's type: 16 yes, 17 no, None: none, or without the reason."""
    with connect() as client:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        client.sendmsg([packet], rights)
        answer = client.recv(4096)
        return struct.unpack("<II", answer[:8])[1] if len(answer) == 136 and reason in answer else None


def expect(what, got, wanted):
    if got not in wanted:
        sys.exit(f"{what}: answered with {got}, wanted {wanted}")


# Many that say nothing: others are heard all the same.
idle = [connect() for _ in range(300)]
expect("one byte", send(b"x"), (17,))
for kind in (0, HELLO, TABLE, ADD, LEFT, 5, 16, 0xFFFFFFFF):
    body = b"\0" * (sizes.get(kind, 72) - 48)
    expect(f"type {kind}, wrong token", send(head(kind, with_token=b"0" * 32) + body), (17,))
    expect(f"type {kind}, no token", send(head(kind, with_token=b"") + body), (17,))
    expect(f"type {kind}, other version", send(head(kind, version=2) + body, reason=b"of another version of QUT"), (17,))
    expect(f"type {kind}, too short", send(head(kind) + body[:-1]), (17,))
    expect(f"type {kind}, too long", send(head(kind) + body + b"x"), (17,))
expect("as long as can be", send(b"\xff" * 60000), (17,))
null = os.open("/dev/null", os.O_RDONLY)
text = os.open(__file__, os.O_RDONLY)
hello = head(HELLO) + struct.pack("<IIIIiI", 1, 1, 0, 1, 0, 0)
expect("hello without a segment", send(hello), (17,))
expect("hello with a device", send(hello, [null]), (17,))
expect("hello with a text", send(hello, [text]), (17,))
expect("hello with many", send(hello, [text] * 200), (17,))


def table(offset=0, memory=0, flags=0, build_id_bytes=0, name=b"/missing"):
    return head(TABLE) + struct.pack("<QQII64s4096s", offset, memory, flags, build_id_bytes, b"\1" * 64, name)


expect("a table of nothing", send(table()), (17,))
expect("an identity that is too long", send(table(build_id_bytes=65)), (17,))
expect("a name without an end", send(table(name=b"x" * 4096)), (17,))
expect("more memory than there is", send(table(memory=1 << 62), [text]), (17,))
expect("more memory than the file has", send(table(memory=1 << 20), [text]), (17,))
expect("memory that is no program", send(table(memory=100), [text]), (17,))
expect("a table of a program", send(table(name=os.fsencode(os.path.realpath(subject)))), (16, 17))
for why, answer in ((0, 17), (1, 16), (9, 16), (10, 17), (0xFFFFFFFF, 17)):
    expect(f"left alone, reason {why}", send(head(LEFT) + struct.pack("<IIII", why, 0, 1, 0)), (answer,))
expect("taken back, never told", send(head(LEFT) + struct.pack("<IIII", 1, 1, 0, 0)), (16,))
random.seed(1)
for _ in range(200):
    packet = bytearray(random.choice([hello, table(memory=4096), head(ADD) + b"\0" * 128, head(LEFT) + b"\1" + b"\0" * 15]))
    for _ in range(random.randrange(1, 8)):
        packet[random.randrange(48, len(packet))] = random.randrange(256)
    send(bytes(packet), random.choice([(), [text], [null]]))
for client in idle:
    client.close()
# One that goes before it is answered.
for _ in range(50):
    with connect() as client:
        client.send(table(name=os.fsencode(os.path.realpath(subject))))

# An agent with the settings of another version tells that recorder with what is the same in every version.
for version in (0, 2):
    strange_token = bytes(f"{version:032x}", "ascii")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as strange:
        strange.settimeout(20)
        strange.bind(b"\0qut-" + strange_token)
        strange.listen()
        environment = {b"QUT_AGENT": b"v=%d;t=%s;what" % (version, strange_token), b"LD_PRELOAD": preload[11:]}
        with subprocess.Popen(["/bin/echo", "on"], env=environment, stdout=subprocess.PIPE) as program:
            with strange.accept()[0] as client:
                told = client.recv(4096)
                client.send(struct.pack("<II128s", version, 17, b"of another version"))
            if program.stdout.read() != b"on\n" or program.wait() != 0:
                sys.exit("a program with settings of another version did not run")
        if told != head(LEFT, with_token=strange_token) + struct.pack("<IIII", 8, 0, 0, 0):
            sys.exit(f"a recorder of version {version} is told {told}")

recorder.stdin.close()
error = recorder.stderr.read().decode()
# 1: what said hello with no segment is a process that is not in the file.
if recorder.wait(timeout=60) != 1 or error.count("is not recorded") > 5 or "packets that made no sense were refused" not in error \
        or "8 processes have the agent of another version of QUT, and are not in it" not in error:
    sys.exit(f"status {recorder.returncode}: {error}")
info = subprocess.run([qut, "info", path], stdout=subprocess.PIPE)
if info.returncode == 2:
    sys.exit("the trace cannot be read")
if glob.glob(f"{folder.name}/qut-*"):
    sys.exit("something is left behind")

# SPDX-License-Identifier: Apache-2.0
"""Threads of an interpreter, each in another call. The regular expression takes hours and never gives up the interpreter's
lock, so it is started after "ready" was said."""
import re
import select
import socket
import threading
import time

held = threading.Lock()
held.acquire()
left, right = socket.socketpair()


def deep(depth, then):
    return then() if depth == 0 else [deep(depth - 1, then)][0]


def wait_for_condition():
    condition = threading.Condition()
    with condition:
        condition.wait()


def sort_key(number):
    time.sleep(10000)
    return number


CALLS = [
    lambda: time.sleep(10000),
    lambda: held.acquire(),
    lambda: select.select([left], [], []),
    lambda: left.recv(1),
    wait_for_condition,
    lambda: sorted([3, 1, 2], key=sort_key),
    lambda: sum(i for i in iter(int, 1)),
]


def start(call):
    threading.Thread(target=deep, args=(20, call), daemon=True).start()


for each in CALLS:
    start(each)
time.sleep(1)
print("ready", flush=True)
start(lambda: re.match(r"(a+)+$", "a" * 64 + "b"))
time.sleep(10000)

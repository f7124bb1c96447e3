# What an interpreter inside the subject runs; its frames are called those of "<string>" (of "<script>" from 3.14 on), one line further down.
import time


def t0(n):
    return sorted([1, 2], key=t1)  # => t1


def t1(n):
    return t2(n)  # -> t2


def t2(n):
    total = n
    for i in range(6):
        total += i
    return total


end = time.monotonic() + SECONDS
while time.monotonic() < end:
    for _ in range(20):
        t0(1)  # -> t0

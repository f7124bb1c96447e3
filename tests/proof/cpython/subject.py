# SPDX-License-Identifier: Apache-2.0
"""A program that keeps an account of its calls. Behind a line stands what it may call:

    # -> f     a function, which an evaluator may run without a native call between
    # => f     likewise, but by way of C: native frames must lie between the two

Every function is in a chain of its own, so a frame that is missing, doubled or out of order breaks a link. What ends a
chain may stand at any of its lines.

usage: subject.py SECONDS SCENARIO...   each in a thread of its own; the first in the main thread
       "blocked" waits for ever, and prints where each thread is
"""
import ctypes
import faulthandler
import functools
import os
import sys
import threading
import time

WORK = range(6)


# ---- plain calls

def p0(n):
    return p1(n) + 1  # -> p1


def p1(n):
    a = p2(n)  # -> p2
    return a + p2(n + 1)  # -> p2


def p2(n):
    return p3(n, key=n)  # -> p3


def p3(n, *rest, key=0):
    return p4(n)[0] + key  # -> p4


def p4(n):
    class_of_n = Plain(n)  # -> Plain.__init__
    return [class_of_n.p5()]  # -> Plain.p5


class Plain:
    def __init__(self, n):
        self.n = n

    def p5(self):
        return self.p6()  # -> Plain.p6

    @staticmethod
    def p7(n):
        total = 0
        for i in WORK:
            total += i * n
        return total

    def p6(self):
        return self.p7(self.n)  # -> Plain.p7


# ---- by way of C

def c0(n):
    return sorted([2, 1, 3], key=c1)  # => c1


def c1(n):
    return functools.reduce(c2, [1, 2, 3])  # => c2


def c2(a, b):
    return list(map(c3, (a, b)))[0]  # => c3


def c3(n):
    return TO_C4(n)  # => <lambda>


def c4(n):
    return max([1, 2], key=c5)  # => c5


def c5(n):
    return n + int(Operand(n) + Operand(1))  # => Operand.__add__, Operand.__init__


class Operand:
    def __init__(self, n):
        self.n = n

    def __add__(self, other):
        return len({self: 1, other: 2})  # => Operand.__hash__, Operand.__eq__

    def __hash__(self):
        return c6(1)  # -> c6

    def __eq__(self, other):
        return c6(self.n) == c6(other.n)  # -> c6


def c6(n):
    total = n
    for i in WORK:
        total += i
    return total


TO_C4 = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(lambda n: c4(n) and 1)  # -> c4


# ---- generators and coroutines

def g0(n):
    total = 0
    for x in g1(n):  # -> g1
        total += x
    return total + sum(g4(y) for y in range(3)) + run_awaited(n)  # => g0.<locals>.<genexpr>; -> g0.<locals>.<genexpr>, g4, run_awaited


def g1(n):
    yield 1
    yield from g2(n)  # -> g2
    yield 3


def g2(n):
    yield next(g3(n))  # -> g3; => g3
    for _ in WORK:
        yield 2


def g3(n):
    yield g4(n)  # -> g4


def g4(n):
    total = n
    for i in WORK:
        total += i
    return total


def run_awaited(n):
    coroutine = a0(n)  # -> a0
    try:
        coroutine.send(None)  # => a0
    except StopIteration as stop:
        return stop.value


async def a0(n):
    return await a1(n)  # -> a1


async def a1(n):
    async with Entered() as entered:  # -> Entered.__aenter__, Entered.__aexit__
        return g4(n)  # -> g4, Entered.__aexit__


class Entered:
    async def __aenter__(self):
        return g4(1)  # -> g4

    async def __aexit__(self, *rest):
        return g4(0) < 0  # -> g4


# ---- exceptions

def e0(n):
    try:
        e1(n)  # -> e1
    except KeyError as error:
        return e9(error)  # -> e9
    return 0


def e1(n):
    with Guard():  # -> Guard.__init__, Guard.__enter__, Guard.__exit__
        e2(n)  # -> e2, Guard.__exit__


class Guard:
    def __init__(self):
        self.n = 0

    def __enter__(self):
        return e8(1)  # -> e8

    def __exit__(self, kind, value, traceback):
        return e8(2) < 0  # -> e8


def e2(n):
    try:
        e3(n)  # -> e3
    finally:
        e8(n)  # -> e8


def e3(n):
    e8(n)  # -> e8
    raise KeyError(n)


def e8(n):
    total = n
    for i in WORK:
        total += i
    return total


def e9(error):
    return e8(1) + len(error.args)  # -> e8


# ---- code that is made while the program runs, and goes: of each name its number tells the file

def x0(n):
    number = next(COUNTER)
    text = f"def made_{number}(n):\n    return x1(n)\n\n\nmade_{number}(1)\n"
    code = compile(text, f"/made/made_{number}.py", "exec")
    exec(code, {"x1": x1})  # => <module>
    return 0


COUNTER = iter(range(10 ** 9))


def x1(n):
    total = n
    for i in range(60):
        total += i
    return total


# ---- destructors, descriptors, partial, recursion

def d0(n):
    a = Dying()  # -> Dying.__init__
    a = d1  # => Dying.__del__
    return a(n) + functools.partial(d2, 1)(2)  # -> d1; => d2


class Dying:
    def __init__(self):
        self.n = 1

    def __del__(self):
        d3(self.n)  # -> d3


def d1(n):
    return Described().value  # -> Described.value


class Described:
    @property
    def value(self):
        return d3(1)  # -> d3


def d2(a, b):
    return r0(12)  # -> r0


def r0(n):
    return r1(n) if n else d3(n)  # -> r1, d3


def r1(n):
    return r0(n - 1)  # -> r0


def d3(n):
    total = n
    for i in WORK:
        total += i
    return total


# ---- an interpreter in this one, where there is one

def interpreters():
    for name in ("_xxsubinterpreters", "_interpreters"):
        try:
            return __import__(name)
        except ImportError:
            pass
    return None


def s0(n):
    SUB.run_string(SUB_ID, f"SECONDS = {SECONDS}\n" + SUB_TEXT)  # => <module>
    return 0


SUB, SUB_ID, SUB_TEXT = interpreters(), None, ""


# ---- the program

SCENARIOS = {"plain": p0, "c": c0, "generators": g0, "exceptions": e0, "made": x0, "rest": d0, "sub": s0}


def run(name):
    scenario = SCENARIOS[name]
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for _ in range(20):
            scenario(1)  # -> p0, c0, g0, e0, x0, d0, s0


# ---- threads that wait

def w0(n):
    return sorted([1], key=w1)  # => w1


def w1(n):
    for x in w2(n):  # -> w2
        pass


def w2(n):
    yield from w3(n)  # -> w3


def w3(n):
    WAITING.release()
    LOCK.acquire()
    yield 1


LOCK, WAITING = threading.Lock(), threading.Semaphore(0)


def blocked():
    LOCK.acquire()
    for _ in range(3):
        threading.Thread(target=w0, args=(1,), daemon=True).start()
    for _ in range(3):
        WAITING.acquire()
    time.sleep(0.3)
    faulthandler.dump_traceback(sys.stdout.fileno(), all_threads=True)
    print("end", flush=True)
    time.sleep(1000)


def main():
    global SECONDS, SUB_ID, SUB_TEXT
    SECONDS = float(sys.argv[1])
    names = sys.argv[2:]
    if names == ["blocked"]:
        return blocked()
    if "sub" in names:
        SUB_ID = SUB.create()
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sub.py"), encoding="utf-8") as file:
            SUB_TEXT = file.read()
    threads = [threading.Thread(target=run, args=(name,)) for name in names[1:]]
    for thread in threads:
        thread.start()
    print(f"began {time.monotonic()}", flush=True)
    print("ready", flush=True)
    run(names[0])  # -> run
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()  # -> main

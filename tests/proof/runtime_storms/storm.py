# SPDX-License-Identifier: Apache-2.0
"""An interpreter in uproar: threads that come and go, collections, code that is compiled and thrown away, generators,
exceptions, modules in C, libraries that are loaded and unloaded. Its own sums say at the end whether all of it went right."""
import ctypes
import ctypes.util
import gc
import hashlib
import json
import re
import sys
import threading
import time
import zlib


class Wrong(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Wrong(what)


def made(number):
    scope = {}
    exec(compile(f"def f(n):\n    return sum(i + {number % 1000} for i in range(n))\n", f"made{number}", "exec"), scope)
    check(all(scope["f"](30) == 435 + 30 * (number % 1000) for _ in range(20)), "code that was made")


def numbers(count):
    if count:
        yield from numbers(count - 1)
        yield count


class Ring:
    def __init__(self, number):
        self.number, self.ring = number, self


def garbage(number):
    rings = [Ring(i) for i in range(500)]
    check(sum(ring.ring.number for ring in rings) == 500 * 499 // 2, "garbage")
    del rings
    if number % 20 == 0:
        gc.collect()


def deep(depth):
    if depth == 0:
        raise KeyError("thrown")
    return deep(depth - 1) + 1


def exceptions(number):
    try:
        deep(10 + number % 100)
    except KeyError as error:
        check(error.args == ("thrown",), "an exception")
    else:
        check(False, "no exception")


def natives(number):
    text = json.dumps({"list": list(range(200)), "number": number})
    check(json.loads(text)["number"] == number, "json")
    check(zlib.decompress(zlib.compress(text.encode())).decode() == text, "zlib")
    check(len(re.findall(r"\d+", text)) == 201, "re")
    check(len(hashlib.sha256(text.encode() * 50).digest()) == 32, "hashlib")
    check(sorted(range(100), key=lambda item: -item)[0] == 99, "a call back")


def libraries():
    library = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
    library.cos.restype = ctypes.c_double
    check(library.cos(ctypes.c_double(0.0)) == 1.0, "a library")
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    items = (ctypes.c_int * 20)(*range(20, 0, -1))
    ctypes.CDLL(None).qsort(items, 20, 4, compare(lambda a, b: a[0] - b[0]))
    check(list(items) == list(range(1, 21)), "a call back from C")


def uproar(number):
    made(number)
    check(sum(numbers(40)) == 820, "generators")
    garbage(number)
    exceptions(number)
    natives(number)
    libraries()


def main():
    end = time.monotonic() + float(sys.argv[1])
    failures = []

    def guarded(number):
        try:
            uproar(number)
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)

    number = 0
    while time.monotonic() < end and not failures:
        threads = [threading.Thread(target=guarded, args=(number + i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        number += 4
    if failures:
        raise failures[0]
    print("all sums hold")


main()

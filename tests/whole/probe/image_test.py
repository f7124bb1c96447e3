#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qut probe --compile: the image that it leaves, what it says of it, and what it refuses.

usage: image_test.py QUT
"""
import os
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import checks  # noqa: E402

QUT = os.path.abspath(sys.argv[1])
HEADER = "<8s6I"


def expect(what, found, wanted):
    assert found == wanted, f"{what}: {found!r}, and not {wanted!r}"


def compile_to(path, *arguments):
    return subprocess.run([QUT, "probe", "--compile", path, *arguments], capture_output=True, text=True, timeout=60)


def check_image():
    path = "a.image"
    script = 'entry:a /arg0 > 1/ { @n[arg0, str(arg1)] = count() } return:b* { printf("%d\\n", retval) } unwind:c { @left = count() }'
    done = compile_to(path, "-e", script)
    expect(f"exit status ({done.stderr})", done.returncode, 0)
    expect("what is said", done.stdout.splitlines(),
           ["program 0: entry:a", "program 1: return:b*", "program 2: unwind:c", "map 0: @n, a key of 9 words",
            "map 1: @left, a key of 0 words", "record 0: 1 words"])
    with open(path, "rb") as file:
        image = file.read()
    magic, version, total, programs, maps, records, _ = struct.unpack_from(HEADER, image)
    expect("the header", (magic, version, total, programs, maps, records), (b"QUTProb\x01", 1, len(image), 5, 2, 1)) # and two marks, of who throws and catches
    again = compile_to(path, "-e", script)
    expect("a file that is there", (again.returncode, "File exists" in again.stderr), (2, True))
    with open(path, "rb") as file:
        expect("which stays", file.read(), image)


def check_refused():
    path = "refused.image"
    for script in ("entry:a { @n = count() } timer:1s { print(@n) }", "offset:a+4 { @n = count() }",
                   "call:a in b { @n = count() }"):
        done = compile_to(path, "-e", script)
        expect(f"{script}: {done.stderr}", (done.returncode, "other places than entry, return and unwind" in done.stderr), (2, True))
    done = compile_to(path, "-e", "entry:a { @n = count() }", "true")
    expect("a command", (done.returncode, "nothing is started" in done.stderr), (2, True))
    done = compile_to(path, "-e", "entry:a { @n = count( }")
    expect("a mistake", done.returncode, 2)
    done = compile_to("no/such", "-e", "entry:a { @n = count() }")
    expect("no such folder", (done.returncode, "No such file" in done.stderr), (2, True))
    expect("what is left", os.path.exists(path), False)


checks.run_in_a_folder(check_image, check_refused, takes_away="*.image")

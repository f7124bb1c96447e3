#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of real runtimes of Android: where their interpreters keep the bytecode's pc, and how their assembly is left.

usage: libart_test.py QUTC

Files: Debian's package android-libart, the corpus ($QUT_SHARED, else ../shared beside the tree), and those that
$QUT_LIBARTS names, separated by colons (of other architectures and versions: `apt-get download android-libart:i386`,
unpacked). Every row is compared with independent readers. What is known of a build, by its build-id, must be found
again; a build that is not known is measured by what all have in common.
"""
import collections
import glob
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SHARED = os.environ.get("QUT_SHARED", os.path.join(ROOT, "../shared"))

# build-id: rows by the register that holds the bytecode's pc, and by the register that the CFA is loaded from
KNOWN = {
    # Debian's, Android 11: mterp and the switch interpreter; on x86_64 nterp too
    "d3ba281c20e725780467fb41f50e669082ccac64": ("x86_64", {"r12": 68, "rbx": 2}, {"r15": 13, "r9": 12}),
    "2de21a0d4ca9b5446222c70a4e814a342758d2e2": ("aarch64", {"x20": 12, "x19": 2}, {}),
    "e383dc2a23c443c345f83ebd57c2274d8cdc6324": ("arm", {"r4": 2}, {"sp": 1}),
    "491f2fcaee14ef3298d27660ca093f5c89485663": ("x86", {"esi": 6, "ebx": 5}, {"esp": 1}),
    # Debian's, Android 14: nterp and the switch interpreter
    "61497c95b23887e92d3e2e8206345c91fb28d21d": ("x86_64", {"r12": 51, "rbx": 2}, {"r15": 12, "r9": 12}),
    "152e5eef3e17820cab5bf418ffbb7742e0023bcf": ("aarch64", {"x22": 53, "x19": 2}, {"x25": 12, "x27": 12}),
    "0f3e554b08310fb3f3193b291b4e734c01292ca3": ("arm", {"r11": 41, "r4": 1}, {"r6": 12, "r10": 12, "sp": 1}),
    "ee10954b85c4faa3d7a627d8c414a43968c81eb5": ("x86", {"esi": 28, "ebx": 5}, {"ebp": 6, "esp": 1}),
    # Android's own: 12 (nterp), 9 (mterp), 8 and its debugging form (mterp, without marks: by its symbol)
    "82c0556f4b66528e4a608c100a63b712": ("aarch64", {"x22": 53, "x19": 2}, {"x25": 12, "x27": 12}),
    "09ab5d96bdd64792fcaea7e23356de7f": ("arm", {"r4": 1}, {"sp": 1}),
    "978560557cc73f6aeba3244b2d5f9c08": ("arm", {"r4": 1}, {}),
    "771a9e27c65ec744430708bcab00fc7b": ("arm", {"r4": 1}, {}),
}

# What holds for every build since 9.
DEX_REGISTERS = {
    "x86_64": {"rbx", "r12"},
    "aarch64": {"x19", "x20", "x22"},
    "x86": {"ebx", "esi"},
    "arm": {"r4", "r11"},
}
# What the generic JNI trampoline's frame hangs on while native code runs, and the stubs that call compiled code.
JNI_REGISTER = {"x86_64": "rbp", "aarch64": "x28", "x86": "ebp", "arm": "r10"}
STUB_REGISTER = {"x86_64": "rbp", "aarch64": "x29", "x86": "ebp", "arm": "r11"}

passed = failed = skipped = 0


def check(good, name, what=""):
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
        print(f"FAIL {name}: {what}")


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout


def find_files(scratch):
    """Each file once, packed ones unpacked."""
    names = glob.glob("/usr/lib/*/android/libart.so.0") + os.environ.get("QUT_LIBARTS", "").split(":")
    packed = glob.glob(os.path.join(SHARED, "corpus/art11/common/libart_*.gz"))
    packed += glob.glob(os.path.join(SHARED, "corpus/snapshots/**/libart*.so*.gz"), recursive=True)
    for number, name in enumerate(sorted(packed)):
        if "libarttest" in name:
            continue
        # What its unwind information leaves out is looked for in a file of this name.
        names.append(os.path.join(scratch, str(number), "libartd.so" if "libartd" in name else "libart.so"))
        os.mkdir(os.path.dirname(names[-1]))
        with gzip.open(name) as source, open(names[-1], "wb") as out:
            out.write(source.read())
    return [name for name in names if name]


def symbols(path):
    """Code by name, without the Thumb bit."""
    found = {}
    for line in run("readelf", "-sW", path).splitlines():
        words = line.split()
        if len(words) == 8 and words[3] == "FUNC" and words[6] != "UND":
            found[words[7]] = (int(words[1], 16) & ~1, int(words[2], 0))
    return found


def parts(rows, place):
    start, size = place
    return [rule for low, high, rule in rows if low < start + size and high > start]


def check_symbols(path, arch, rows, dex, loaded):
    known = symbols(path)
    stub = "art_quick_invoke_stub_internal" if arch == "arm" else "art_quick_invoke_stub"
    wanted = {
        "art_quick_generic_jni_trampoline": f"cfa={JNI_REGISTER[arch]}+",
        stub: f"cfa={STUB_REGISTER[arch]}+",
        "art_quick_instrumentation_exit": "refused: INSTRUMENTED",
    }
    if dex:
        wanted.update(ExecuteMterpImpl=" dex-pc=", ExecuteSwitchImplAsm=" dex-pc=")
    if set(loaded) - {"sp", "esp"}:  # nterp is there, not only a function of its name
        wanted.update(ExecuteNterpImpl=" dex-pc=")
    for name, text in wanted.items():
        if name in known:
            rules = parts(rows, known[name])
            check(any(text in rule for rule in rules), f"{os.path.basename(path)} {name}", f"no {text}: {rules[:9]}")


def check_file(qutc, path):
    name = os.path.basename(path)
    (verdict,) = json.loads(run(qutc, "verify", "--json", path))
    good = verdict["rows"] > 0 and verdict["exact"] + verdict["refused"] == verdict["rows"]
    check(good and verdict["wrong"] == 0 and verdict["disputed"] == 0, f"{name} against readers", verdict)
    (facts,) = json.loads(run(qutc, "stat", "--json", path))
    arch = facts["arch"]
    rows = []
    for line in run(qutc, "dump", path).splitlines():
        found = re.match(r"0x([0-9a-f]+)-0x([0-9a-f]+) (.*)", line)
        if found:
            rows.append((int(found[1], 16), int(found[2], 16), found[3]))
    dex = collections.Counter(mark for _, _, rule in rows for mark in re.findall(r" dex-pc=(\w+)", rule))
    loaded = collections.Counter(base for _, _, rule in rows for base in re.findall(r"^cfa=\*\((\w+)", rule))
    if facts["identity"] in KNOWN:
        check((arch, dex, loaded) == KNOWN[facts["identity"]], f"{name} as known", (arch, dict(dex), dict(loaded)))
    else:
        print(f"{name} ({facts['identity']}, {arch}) is not known: dex pc {dict(dex)}, cfa loaded from {dict(loaded)}")
        check(dex and set(dex) <= DEX_REGISTERS[arch], f"{name} dex pc", dict(dex))
        check(any(rule.startswith(f"cfa={JNI_REGISTER[arch]}+") for _, _, rule in rows), f"{name} generic JNI")
    check_symbols(path, arch, rows, dex, loaded)


def main():
    global skipped
    with tempfile.TemporaryDirectory() as scratch:
        files = find_files(scratch)
        for path in files:
            check_file(sys.argv[1], path)
    if not files:
        skipped += 1
        print("SKIP: neither android-libart nor the corpus is here")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0 if files else 77


sys.exit(main())

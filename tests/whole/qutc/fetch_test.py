#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables by build-id: qutc compile --layout makes the folder, a server here serves it, well or not, qutc fetch takes from it.
usage: fetch_test.py QUTC"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'support'))
from table_server import Server  # pylint: disable=wrong-import-position

QUTC = os.path.abspath(sys.argv[1])
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
LIBM = "/lib/x86_64-linux-gnu/libm.so.6"
failed = passed = 0


def check(what, good, text=""):
    global failed, passed
    print(f"{'ok' if good else 'FAIL'}   {what}{'' if good else ': ' + str(text)[:1500]}")
    failed += not good
    passed += bool(good)


def qutc(*arguments, cache="cache"):
    return subprocess.run([QUTC, *arguments], capture_output=True, text=True, env={**os.environ, "QUT_CACHE": cache})


def keys(name):
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", f"{name}.key"], check=True)
    subprocess.run(["openssl", "pkey", "-in", f"{name}.key", "-pubout", "-out", f"{name}.pub"], check=True)


def fetch(server, *arguments, cache, key="ours.pub"):
    return qutc("fetch", "--url", server.url, *(["--key", key] if key else ["--unsigned"]), *arguments, cache=cache)


def tables(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith(".qut")) if os.path.isdir(folder) else []


def layout():
    made = qutc("compile", "--layout", "root", "--sign", "ours.key", LIBC, LIBM)
    check("layout: made and signed", made.returncode == 0 and "indexes: 2 written and signed, with 2 tables" in made.stdout or
          "indexes: 1 written and signed, with 2 tables" in made.stdout, made.stdout + made.stderr)
    found = [os.path.join(folder, name) for folder, _, names in os.walk("root") for name in names]
    packed = [path for path in found if path.endswith(".qut.zst")]
    check("layout: a file for each", len(packed) == 2 and not any(path.endswith((".line", ".tmp")) for path in found), found)
    for path in packed:
        index = os.path.join(os.path.dirname(path), "index")
        with open(index, encoding="ascii") as file:
            head, *lines = file.read().splitlines()
        shard = os.path.dirname(path)[len("root/"):]
        check("layout: an index says whose it is", head == f"qut-index 1 {shard}", head)
        line = next(line.split() for line in lines if line.startswith(os.path.basename(path)[:-len(".qut.zst")] + " "))
        with open(path, "rb") as file:
            body = file.read()
        check("layout: bytes and SHA-256 of the table", line[1:3] == [hashlib.sha256(body).hexdigest(), str(len(body))], line)
        sources = {hashlib.sha256(open(name, "rb").read()).hexdigest(): os.path.getsize(name) for name in (LIBC, LIBM)}
        check("layout: of the file it was made of", sources.get(line[4]) == int(line[5]), line)
        verified = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "ours.pub", "-rawin", "-in", index,
                                   "-sigfile", f"{index}.sig"], capture_output=True, text=True)
        check("layout: openssl finds the signature good", verified.returncode == 0, verified.stdout + verified.stderr)
    again = qutc("compile", "--layout", "root", "--sign", "ours.key", LIBC, LIBM)
    check("layout: again nothing", "indexes: 0 written" in again.stdout and again.stdout.count("up to date") >= 2, again.stdout)
    both = qutc("compile", "--layout", "root", "-o", "x", LIBC)
    check("layout: or -o", both.returncode == 2 and "not both" in both.stderr, both.stderr)
    bad = qutc("compile", "--layout", "root", "--sign", "ours.pub", "--force", LIBC)
    check("layout: a public key does not sign", bad.returncode == 2 and "no private key" in bad.stderr, bad.stderr)
    halves = [name for _, _, names in os.walk("root") for name in names if name.endswith((".new", ".tmp"))]
    check("layout: nor leaves it halves", not halves, halves)
    late = qutc("compile", "--layout", "root", "--sign", "ours.key", LIBC)
    check("layout: what waited is indexed later", "indexes: 1 written and signed" in late.stdout, late.stdout + late.stderr)
    # As after a crash of the system: a table that has no bytes, and half a line.
    libc = next(path for path in packed if os.path.getsize(path) == max(map(os.path.getsize, packed)))
    for what, line in (("no bytes", b"00 11"), ("half a line", None)):
        with open(libc, "wb"), open(f"{libc}.line", "wb") as file:
            file.write(line or b"")
        qutc("compile", "--layout", "root", "--sign", "ours.key", LIBC, LIBM)
        check(f"layout: {what}: the line goes", not os.path.exists(f"{libc}.line"))
        qutc("compile", "--layout", "root", "--sign", "ours.key", "--force", LIBC, LIBM)
        check(f"layout: {what}: made again", os.path.getsize(libc) > 1000)


def good():
    server = Server("root")
    first = fetch(server, LIBC, LIBM, "--json", cache="c1")
    answers = json.loads(first.stdout or "[]")
    check("good: both fetched", first.returncode == 0 and [a["status"] for a in answers] == ["fetched"] * 2, first.stdout + first.stderr)
    qutc("compile", LIBC, LIBM, cache="c0")
    same = tables("c1") == tables("c0") and all(
        open(f"c0/{name}", "rb").read() == open(f"c1/{name}", "rb").read() for name in tables("c0"))
    check("good: the tables are those that are made here", same and len(tables("c0")) == 2, (tables("c0"), tables("c1")))
    asked = len(server.asked)
    check("good: again nothing is asked", fetch(server, LIBC, LIBM, cache="c1").returncode == 0 and len(server.asked) == asked,
          server.asked)
    for name in tables("c1"):
        os.unlink(f"c1/{name}")
    fetch(server, LIBC, cache="c1")
    check("good: its index is remembered", len(server.asked) == asked + 1 and server.asked[-1].endswith(".qut.zst"), server.asked)
    qutc("compile", "--layout", "root", "--sign", "ours.key", "--force", "--small", LIBC)
    for name in tables("c1"):
        os.unlink(f"c1/{name}")
    anew = fetch(server, LIBC, cache="c1")
    check("good: what is remembered is older than the table: it is asked for anew", anew.returncode == 0 and
          "fetched" in anew.stdout, anew.stdout + anew.stderr)
    server.stop()


def missing():
    for status in (404, 403):
        server = Server("root", lambda path, body, status=status: status)
        one = fetch(server, LIBC, cache=f"m{status}")
        check(f"missing: {status} is a miss", one.returncode != 0 and "no server has it" in one.stdout, one.stdout + one.stderr)
        asked = len(server.asked)
        two = fetch(server, LIBC, cache=f"m{status}")
        check(f"missing: {status} is remembered", "no server has it" in two.stdout and len(server.asked) == asked, server.asked)
        forced = fetch(server, LIBC, "--force", cache=f"m{status}")
        check(f"missing: {status} but not with --force", "no server has it" in forced.stdout and len(server.asked) > asked,
              server.asked)
        whole = Server("root")
        both = qutc("fetch", "--url", server.url, "--url", whole.url, "--key", "ours.pub", LIBC, cache=f"m{status}b")
        check(f"missing: {status}, the next server has it", both.returncode == 0 and f"fetched from {whole.url}" in both.stdout,
              both.stdout + both.stderr)
        server.stop()
        whole.stop()


def changed_at(place):
    def change(path, body):
        if body and path.endswith(".qut.zst"):
            at = int(place * (len(body) - 1))
            return body[:at] + bytes([body[at] ^ 1]) + body[at + 1:]
        return body
    return change


def only(suffix, answer):
    return lambda path, body: answer if path.endswith(suffix) else body


def hostile():
    def other_table(path, body):
        if not path.endswith(".qut.zst"):
            return body
        others = [os.path.join(folder, name) for folder, _, names in os.walk("root") for name in names
                  if name.endswith(".qut.zst") and name not in path]
        with open(others[0], "rb") as file:
            return file.read()

    def other_index(path, body):
        return body.replace(b" qut/v1/x86_64/", b" qut/v1/aarch64/", 1) if path.endswith("/index") else body

    def other_source(path, body):
        return re.sub(rb"( [0-9a-f]{64} )(\d+)(\n)", rb"\g<1>17\3", body) if path.endswith("/index") else body

    cases = (
        ("a changed byte, first", changed_at(0), "ours.pub", "not those that the index names"),
        ("a changed byte, within", changed_at(0.5), "ours.pub", "not those that the index names"),
        ("a changed byte, last", changed_at(1), "ours.pub", "not those that the index names"),
        ("another table", other_table, "ours.pub", "not those that the index names|more than"),
        ("a table cut off", only(".qut.zst", "cut"), "ours.pub", "(?i)transfer|closed|partial"),
        ("no table, though named", only(".qut.zst", 404), "ours.pub", "it is not there"),
        ("an index of other tables", other_index, None, "no index of"),
        ("a changed index", other_source, "ours.pub", "signature is not of the key"),
        ("another file of this identity", other_source, None, "another file of this identity"),
        ("an index of somebody else", None, "theirs.pub", "signature is not of the key"),
        ("no signature", only("index.sig", 404), "ours.pub", "not signed"),
        ("half a signature", only("index.sig", b"x" * 32), "ours.pub", "not signed"),
        ("no text", only("/index", b"\0" * 1000), None, "no index of"),
        ("status 500", only("/index", 500), "ours.pub", "status 500"),
        ("an endless index", only("index.sig", "endless"), "ours.pub", "more than"),
        ("an endless table", only(".qut.zst", "endless"), "ours.pub", "more than"),
        ("a slow server", only("/index", "slow"), "ours.pub", "(?i)time"),
        ("a way to a local file", only("/index", "elsewhere"), "ours.pub", "(?i)protocol"),
    )
    for number, (name, change, key, why) in enumerate(cases):
        server = Server("root", change)
        cache = f"h{number}"
        answer = fetch(server, LIBC, "--timeout", "1", cache=cache, key=key)
        check(f"hostile: {name}", answer.returncode == 2 and re.search(why, answer.stderr) and not tables(cache),
              answer.stdout + answer.stderr)
        whole = Server("root")
        both = qutc("fetch", "--url", server.url, "--url", whole.url, "--unsigned" if not key else "--key",
                    *(["ours.pub"] if key else []), "--timeout", "1", LIBC, cache=cache)
        check(f"hostile: {name}, the next server has it", both.returncode == 0 and len(tables(cache)) == 1, both.stdout + both.stderr)
        server.stop()
        whole.stop()
    # As large as the library, with its build-id, and one byte of it is another.
    shutil.copyfile(LIBC, "libc.so.6")
    with open("libc.so.6", "r+b") as file:
        file.seek(os.path.getsize(LIBC) // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    server = Server("root")
    wrong = fetch(server, "libc.so.6", cache="w")
    check("hostile: a file of the same size and build-id", wrong.returncode == 2 and "other bytes" in wrong.stderr and not tables("w"),
          wrong.stdout + wrong.stderr)
    check("hostile: ... and then the right one", fetch(server, LIBC, cache="w").returncode == 0 and len(tables("w")) == 1)
    server.stop()
    for what in ("/index", "index.sig", ".qut.zst"): # it would hold a request for a minute
        server = Server("root", only(what, "slow"))
        began = time.monotonic()
        slow = fetch(server, LIBC, cache="s")
        took_s = time.monotonic() - began
        check(f"hostile: a slow {what} is waited for two seconds", slow.returncode == 2 and re.search("(?i)time", slow.stderr) and
              1.9 < took_s < 10 and not tables("s"), f"{took_s:.1f} s: {slow.stdout}{slow.stderr}")
        server.stop()
    nobody = qutc("fetch", "--url", "http://127.0.0.1:9", "--unsigned", LIBC, cache="n")
    check("hostile: nobody there", nobody.returncode == 2 and "connect" in nobody.stderr.lower(), nobody.stderr)


def usage():
    for what, arguments, why in (
            ("no server", ["--unsigned"], "--url URL is missing"),
            ("nobody to believe", ["--url", "http://x"], "--key KEY is missing"),
            ("both", ["--url", "http://x", "--key", "k", "--unsigned"], "not both"),
            ("no time", ["--url", "http://x", "--unsigned", "--timeout", "0"], "not an argument for --timeout"),
            ("a file", ["--url", "file:///etc/passwd", "--unsigned"], "none of http or https"),
            ("a password", ["--url", "http://a:b@127.0.0.1:9", "--unsigned"], "~/.netrc"),
            ("no key there", ["--url", "http://127.0.0.1:9", "--key", "absent.pub"], "")):
        answer = qutc("fetch", *arguments, LIBC, cache="u")
        check(f"usage: {what}", answer.returncode == 2 and why in answer.stderr and "b@" not in answer.stdout, answer.stderr)


def main():
    if "not in this build" in qutc("fetch", "--help").stdout or not shutil.which("openssl"):
        print("SKIP: no libcurl, or no openssl")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        keys("ours")
        keys("theirs")
        layout()
        good()
        missing()
        hostile()
        usage()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

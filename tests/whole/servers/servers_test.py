#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program with libqut's compiler inside takes tables from servers where the files at hand give none, if and only if it
names some; what they give is proven, what they lack is asked for once, who is slow is left alone.
usage: servers_test.py QUTC WALKER LIBRARY"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'support'))
from table_server import Server  # pylint: disable=wrong-import-position

QUTC, WALKER, LIBRARY = map(os.path.abspath, sys.argv[1:4])
failed = []


def check(what, good, text=''):
    if not good:
        failed.append(what)
        print(f'FAIL {what}: {str(text)[:1500]}')


class Walk:
    """What the walker says of copies of a library."""

    def __init__(self, kind, library, *urls, key='ours.pub', cache='-', timeout_ms=2000, count=1):
        copies = [f'./copy{i}.so' for i in range(count)]
        for copy in copies:
            shutil.copy(library, copy)
        done = subprocess.run([WALKER, kind, key, cache, str(timeout_ms), str(count), *copies, *urls], capture_output=True, text=True,
                              check=False, timeout=120, env={**os.environ, 'LC_ALL': 'C'})
        self.text = done.stdout + done.stderr
        lines = done.stdout.splitlines()
        check('the walker ends well', done.returncode == (1 if done.stdout.startswith('refused: ') else 0), self.text)
        first = lines[0].split() if lines and lines[0].startswith('tables: ') else None
        self.took_ms, self.walks_ms = (int(first[1]), int(first[-2])) if first else (None, None)
        self.ends = [line.split(': ')[1] for line in lines if line.startswith('./copy')]
        self.reasons = [line.split(': ', 2)[2] for line in lines if line.startswith('./copy')]
        self.is_whole = self.ends == ['whole'] * count
        self.is_cut = self.ends == ['cut'] * count


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, 'QUT_CACHE': 'layout-cache'}).stdout


def build_id(path):
    return next(line.split()[-1] for line in run('readelf', '-n', path).splitlines() if 'Build ID' in line)


def make_files():
    """full.so has its unwind information, stripped.so has none; whoever fills `stripped` has its debug file."""
    shutil.copy(LIBRARY, 'full.so')
    run('objcopy', '--strip-debug', 'full.so', 'stripped.so')
    name = build_id('full.so')
    os.makedirs(f'debug/.build-id/{name[:2]}')
    run('objcopy', '--only-keep-debug', 'full.so', f'debug/.build-id/{name[:2]}/{name[2:]}.debug')
    for who in 'ours', 'theirs':
        run('openssl', 'genpkey', '-algorithm', 'ed25519', '-out', f'{who}.key')
        run('openssl', 'pkey', '-in', f'{who}.key', '-pubout', '-out', f'{who}.pub')
    run(QUTC, 'compile', '--layout', 'full', '--sign', 'ours.key', 'full.so')
    run(QUTC, 'compile', '--layout', 'stripped', '--sign', 'ours.key', '--debug-root', 'debug', 'stripped.so')


def gone():
    server = Server('full')
    bare = Walk('gone', 'full.so')
    check('no URL: the walk is cut, and nobody is asked', bare.is_cut and not server.asked, (bare.text, server.asked))
    got = Walk('gone', 'full.so', server.url)
    check('a URL: the walk is whole', got.is_whole, got.text)
    check('three requests, of this library alone', [path.split('/')[-1][-7:] for path in server.asked] == ['index', 'dex.sig', 'qut.zst'],
          server.asked)
    empty = Server('nothing')
    check('the next server has it', Walk('gone', 'full.so', empty.url, server.url).is_whole and empty.asked)
    empty.stop()
    kept = Walk('gone', 'full.so', server.url, cache='cache')
    server.asked.clear()
    again = Walk('gone', 'full.so', server.url, cache='cache')
    check('kept: no table of it comes twice', kept.is_whole and again.is_whole and
          not any(path.endswith('.zst') for path in server.asked) or len(server.asked) <= 1, (again.text, server.asked))
    check('who says so believes a server', Walk('gone', 'full.so', server.url, key='-').is_whole)
    server.stop()
    dead = Walk('gone', 'full.so', server.url)
    check('nobody there is said', dead.is_cut and 'onnect' in dead.reasons[0], dead.text)


def misses():
    for status in 403, 404:
        server = Server('full', lambda path, body, status=status: status)
        got = Walk('gone', 'full.so', server.url, count=3)
        check(f'{status}: a miss, said each time', got.is_cut and all('no server has its table' in why for why in got.reasons), got.text)
        check(f'{status}: asked once', len(server.asked) == 1, server.asked)
        server.stop()


def at_hand():
    server = Server('stripped')
    full = Walk('here', 'full.so', server.url)
    check('a table that can be made of the file is', full.is_whole and not server.asked, (full.text, server.asked))
    bare = Walk('here', 'stripped.so')
    check('the file has no unwind information: cut', bare.is_cut and not server.asked, bare.text)
    got = Walk('here', 'stripped.so', server.url)
    check('the file has no unwind information: the server is asked', got.is_whole and server.asked, (got.text, server.asked))
    with open('stripped.so', 'rb') as file:
        image = file.read()
    for name, other, why in (('longer.so', image + b'0', 'bytes, not'), ('other.so', image.replace(b'.comment', b'.changed'), 'other bytes')):
        with open(name, 'wb') as file:
            file.write(other)
        refused = Walk('here', name, server.url)
        check(f'{name}: the table is of another file: refused, and said', refused.is_cut and why in refused.reasons[0], refused.text)
    server.stop()


def changed(path, body):
    return body[:-9] + bytes([body[-9] ^ 1]) + body[-8:] if body and path.endswith('.qut.zst') else body


def hostile():
    for name, change, key, why in (('a changed byte', changed, 'ours.pub', 'not those that the index'),
                                   ('another key', None, 'theirs.pub', 'signature'), ('an error', lambda path, body: 500, 'ours.pub', 'status 500')):
        server = Server('full', change)
        got = Walk('gone', 'full.so', server.url, key=key)
        check(f'{name}: refused, and said', got.is_cut and why in got.reasons[0], got.text)
        server.stop()
    server = Server('full', lambda path, body: 'slow')
    got = Walk('gone', 'full.so', server.url, timeout_ms=500, count=4)
    check('slow: said', got.is_cut and sum('left alone' in why for why in got.reasons) == 3, got.text)
    check('slow: asked once', len(server.asked) == 1, server.asked)
    check('slow: bounded', got.took_ms is not None and 400 < got.took_ms < 10000, got.text)
    check('slow: no walk waits for it', got.walks_ms is not None and got.walks_ms < 400, got.text)
    server.stop()
    server = Server('full')
    for url, why in ('ftp://127.0.0.1/', 'none of http'), (server.url.replace('//', '//user@'), '~/.netrc'):
        bad = Walk('gone', 'full.so', server.url, url)
        check(f'{url}: refused', bad.text.startswith(f'refused: {url}: ') and why in bad.text and not server.asked, bad.text)
    server.stop()


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        without = Walk('gone', LIBRARY, 'http://127.0.0.1:9')
        if 'neither libcurl nor libcrypto' in without.text:
            check('a build without libcurl refuses', without.text.startswith('refused: http://127.0.0.1:9: '), without.text)
            print('SKIP: this libqutc-servers has no libcurl')
            return 1 if failed else 77
        make_files()
        gone()
        misses()
        at_hand()
        hostile()
    print(f'tables_from_servers: {"FAILED" if failed else "ok"}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())

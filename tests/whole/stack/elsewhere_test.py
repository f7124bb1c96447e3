#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks of a core file whose program is not here: its table comes from a server of tables, its file from debuginfod, if
and only if that was said; what is at hand comes first; what servers give is proven.
usage: elsewhere_test.py QUT QUTC SUBJECT"""
import glob
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'support'))
from table_server import Server  # pylint: disable=wrong-import-position

QUT, QUTC, SUBJECT = map(os.path.abspath, sys.argv[1:4])
failed = []


def check(what, good, text=''):
    if not good:
        failed.append(what)
        print(f'FAIL {what}: {str(text)[:1500]}')


def frames(text):
    return [line for line in text.splitlines() if line.startswith('  #')]


def places(text):
    return [line.split(' (')[0] for line in frames(text)]


def stack(*arguments, urls=None):
    environment = {**os.environ, 'QUT_CACHE': os.path.abspath('unused'), 'HOME': os.getcwd()}
    environment.pop('DEBUGINFOD_URLS', None)
    if urls:
        environment['DEBUGINFOD_URLS'] = urls
        environment['DEBUGINFOD_CACHE_PATH'] = tempfile.mkdtemp(dir='.')
        environment['DEBUGINFOD_TIMEOUT'] = '10'
    return subprocess.run([QUT, 'stack', '--verbose', *arguments], capture_output=True, text=True, check=False, env=environment)


def make_core():
    """The stacks of a process, and its core, from which its program is then away. None: no core file lands here."""
    with open('/proc/sys/kernel/core_pattern', encoding='ascii') as file:
        pattern = file.read()
    if pattern[0] in '|/':
        return None
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard == 0:
        return None
    os.mkdir('there')
    shutil.copy(SUBJECT, 'there/subject')
    with subprocess.Popen(['there/subject', 'threads', '2'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))) as process:
        process.stdout.readline()
        for _ in range(100):
            with open(f'/proc/{process.pid}/stat', encoding='ascii') as file:
                if file.read().rsplit(')', 1)[1].split()[0] == 'S':
                    break
            time.sleep(0.02)
        time.sleep(0.2)
        alive = stack('-p', str(process.pid), '--no-cache')
        process.send_signal(signal.SIGABRT)
        process.wait()
    cores = glob.glob('core*')
    os.rename('there', 'away')
    return (alive.stdout, cores[0]) if cores else None


def serve_tables():
    subprocess.run(['openssl', 'genpkey', '-algorithm', 'ed25519', '-out', 'ours.key'], check=True)
    subprocess.run(['openssl', 'pkey', '-in', 'ours.key', '-pubout', '-out', 'ours.pub'], check=True)
    subprocess.run(['openssl', 'genpkey', '-algorithm', 'ed25519', '-out', 'theirs.key'], check=True)
    subprocess.run(['openssl', 'pkey', '-in', 'theirs.key', '-pubout', '-out', 'theirs.pub'], check=True)
    return subprocess.run([QUTC, 'compile', '--layout', 'root', '--sign', 'ours.key', 'away/subject'], capture_output=True, text=True,
                          check=False, env={**os.environ, 'QUT_CACHE': 'layout-cache'})


def tables(alive, core):
    server = Server('root')
    signed = ('--tables-url', server.url, '--tables-key', 'ours.pub')
    bare = stack('--core', core, '--no-cache')
    check('without servers the stack is cut', bare.returncode == 0 and places(bare.stdout) != places(alive) and not server.asked,
          bare.stdout)
    got = stack('--core', core, '--cache', 'cache', *signed)
    check('table: the stack is whole', places(got.stdout) == places(alive) and 'from servers: 1 tables, 0 files' in got.stderr,
          (got.stdout, got.stderr, alive))
    asked = len(server.asked)
    again = stack('--core', core, '--cache', 'cache', *signed)
    check('table: kept, as it is signed', places(again.stdout) == places(alive) and len(server.asked) == asked and
          'from servers: 0 tables' in again.stderr, (server.asked, again.stderr))
    for _ in range(2):
        asked = len(server.asked)
        unsigned = stack('--core', core, '--cache', 'cache2', '--tables-url', server.url, '--tables-unsigned')
        check('table: nobody signed it: not kept', places(unsigned.stdout) == places(alive) and len(server.asked) > asked, unsigned.stdout)
    os.rename('away', 'there')
    asked = len(server.asked)
    here = stack('--core', core, '--no-cache', *signed)
    check('table: what is at hand comes first', frames(here.stdout) == frames(alive) and len(server.asked) == asked, here.stdout)
    os.rename('there', 'away')
    server.stop()
    gone = stack('--core', core, '--no-cache', '--tables-url', 'http://127.0.0.1:9', '--tables-key', 'ours.pub')
    check('table: nobody there is said', gone.returncode == 0 and 'onnect' in gone.stdout, gone.stdout)


def misses(core):
    for status in 403, 404:
        server = Server('root', lambda path, body, status=status: status)
        arguments = ('--core', core, '--cache', f'miss{status}', '--tables-url', server.url, '--tables-key', 'ours.pub')
        one = stack(*arguments)
        asked = len(server.asked)
        two = stack(*arguments)
        check(f'{status}: a miss, said', 'no server has its table' in one.stdout and 'no server has its table' in two.stdout, one.stdout)
        check(f'{status}: remembered', 0 < asked == len(server.asked), server.asked)
        server.stop()


def changed(path, body):
    return body[:-9] + bytes([body[-9] ^ 1]) + body[-8:] if body and path.endswith('.qut.zst') else body


def hostile(alive, core):
    for name, change, key, why in (('a changed byte', changed, 'ours.pub', 'not those that the index'), ('another key', None, 'theirs.pub', 'signature'),
                                   ('a slow one', lambda path, body: 'slow', 'ours.pub', 'ime'), ('an error', lambda path, body: 500, 'ours.pub', 'status 500')):
        server = Server('root', change)
        begin = time.monotonic()
        got = stack('--core', core, '--cache', f'hostile {name}', '--tables-url', server.url, '--tables-key', key)
        check(f'hostile: {name}: refused, and said', places(got.stdout) != places(alive) and why in got.stdout, got.stdout)
        check(f'hostile: {name}: soon', time.monotonic() - begin < 30)
        server.stop()


def wait_for(port):
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(('127.0.0.1', port)) == 0:
                return
        time.sleep(0.05)


def debuginfod(alive, core):
    if not shutil.which('debuginfod'):
        print('SKIP: no debuginfod')
        return
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = probe.getsockname()[1]
    with open('debuginfod.log', 'wb') as log:
        server = subprocess.Popen(['debuginfod', '-F', '-d', 'debuginfod.db', '-p', str(port), 'away'], stdout=log, stderr=log)
    try:
        wait_for(port)
        url = f'http://127.0.0.1:{port}'
        silent = stack('--core', core, '--no-cache', urls=url)
        check('debuginfod: asked only where that was said', places(silent.stdout) != places(alive), silent.stdout)
        for _ in range(60):  # it reads its files first
            got = stack('--core', core, '--cache', 'cache3', '--debuginfod', urls=url)
            if frames(got.stdout) == frames(alive):
                break
            if 'not installed' in got.stdout:
                print('SKIP: no libdebuginfod')
                return
            time.sleep(0.5)
        check('debuginfod: the stack is whole, with names', frames(got.stdout) == frames(alive) and 'tables, 1 files for tables' in got.stderr,
              (got.stdout, got.stderr, alive))
        shutil.copytree('away', 'there')
        subprocess.run(['strip', 'there/subject'], check=True)
        stripped = stack('--core', core, '--no-cache')
        named = stack('--core', core, '--no-cache', '--debuginfod', urls=url)
        check('debuginfod: a stripped file gets its names', frames(stripped.stdout) != frames(named.stdout) == frames(alive),
              (stripped.stdout, named.stdout, named.stderr))
        check('debuginfod: and its table is of the file at hand', 'tables, 0 files for tables' in named.stderr, named.stderr)
        shutil.rmtree('there')
        later = stack('--core', core, '--cache', 'cache3')
        check('debuginfod: its build-id alone speaks for it: no table is kept', places(later.stdout) == places(silent.stdout), later.stdout)
    finally:
        server.kill()
        server.wait()
    with open(QUTC, 'rb') as file:
        other = file.read()
    wrong = Server('root', lambda path, body: other if path.endswith('/executable') else 404)
    got = stack('--core', core, '--no-cache', '--debuginfod', urls=wrong.url)
    check('debuginfod: a wrong file is refused, and said', places(got.stdout) != places(alive) and 'build-id is another one' in got.stdout and
          any(path.endswith('/executable') for path in wrong.asked), (got.stdout, wrong.asked))
    wrong.stop()


def recorded():
    """A program that has no file: who makes tables for its agent asks for the one, and the program itself never."""
    server = Server('root')
    become = "import os, sys; fd = os.memfd_create('x'); os.write(fd, open(sys.argv[1], 'rb').read()); os.execve(fd, ['x', 'threads', '2'], os.environ)"
    for arguments in ['--tables-url', server.url, '--tables-key', 'ours.pub'], []:
        server.asked.clear()
        process = subprocess.Popen([QUT, 'record', '--quiet', '--no-cache', *arguments, '-o', 'x.qtrace', '--', sys.executable, '-c', become, SUBJECT],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + (60 if arguments else 2)
        while time.monotonic() < until and process.poll() is None and not any(path.endswith('.zst') for path in server.asked):
            time.sleep(0.05)
        _, errors = process.communicate(timeout=60)
        if not arguments:
            check('record: nobody is asked unless that was said', not server.asked, server.asked)
        elif 'never answered' in errors or process.returncode == 2:
            print(f'SKIP: nothing can be recorded here: {errors[-200:]}')
        else:
            check('record: the table of a program without a file is asked for', any(path.endswith('.zst') for path in server.asked),
                  (server.asked, errors))
    server.stop()
    bad = subprocess.run([QUT, 'record', '--tables-url', 'http://x', '-o', 'y.qtrace', '--', 'true'], capture_output=True, text=True, check=False)
    check('record: a key is needed', bad.returncode == 2 and 'no proof' in bad.stderr, bad.stderr)
    bad = subprocess.run([QUT, 'record', '--tables-url', 'ftp://x', '--tables-unsigned', '-o', 'y.qtrace', '--', 'true'], capture_output=True,
                         text=True, check=False)
    check('record: a URL is one of http', bad.returncode == 2 and '--tables-url: ftp://x: it is none of http' in bad.stderr, bad.stderr)


def usage(core):
    for arguments, why in ((['--tables-url', 'http://x'], 'needs --tables-key'), (['--tables-key', 'ours.pub'], 'is for --tables-url'),
                           (['--tables-unsigned'], 'is for --tables-url'),
                           (['--tables-url', 'http://x', '--tables-key', 'k', '--tables-unsigned'], 'contradicts'),
                           (['--tables-url', 'ftp://x', '--tables-unsigned'], '--tables-url: ftp://x: it is none of http')):
        bad = stack('--core', core, *arguments)
        check(f'usage: {why}', bad.returncode == 2 and why in bad.stderr, bad.stderr)


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        made = make_core()
        if not made:
            print('SKIP: core files do not land here')
            return 77
        alive, core = made
        laid = serve_tables()
        if 'neither libcurl nor libcrypto' in laid.stderr:
            print('SKIP: this qutc has no libcurl')
            return 77
        check('layout: made', laid.returncode == 0, laid.stderr)
        tables(alive, core)
        misses(core)
        hostile(alive, core)
        debuginfod(alive, core)
        recorded()
        usage(core)
    print(f'elsewhere: {"FAILED" if failed else "ok"}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qut monitor --inject and --eject: programs that run, and know their own processor time, get the agent and lose it again; what is
sent is compared with that time, what they have mapped with what they had. Tools that are killed; what is refused.
usage: injected_test.py QUT AGENT SUBJECT STATIC_SUBJECT"""
import contextlib
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from monitor_parts import SEGMENTS, adds_up, read_balance, received, receiving, segments
from upload_parts import check, end

QUT, AGENT, SUBJECT, STATIC = map(os.path.abspath, sys.argv[1:5])
PERIOD_NS, WORK_NS, THREADS = 1000000, 300000000, 2
BLOCK_BYTES = 384 << 10  # what is mapped for an injection, and nobody knows yet if its tool is killed at once
MORE = f';p={PERIOD_NS}'
number = 0
PYTHON = r'''
import os, sys, time
def burn_for(ns):
    end = time.thread_time_ns() + ns
    while time.thread_time_ns() < end:
        sum(i * i for i in range(500))
for line in iter(sys.stdin.readline, ""):
    before = time.thread_time_ns()
    if line == "fork\n":
        child = os.fork()
        if child == 0:
            time.sleep(3600)
        print(child, flush=True)
        continue
    burn_for(int(line))
    print(time.thread_time_ns() - before, flush=True)
'''


class Program:
    def __init__(self, *command, **how):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
        self.pid = self.process.pid

    def says(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()
        return self.process.stdout.readline().decode()

    def ends(self, text):
        """status, output, complaints"""
        out, complaints = self.process.communicate(text.encode(), timeout=100)
        return self.process.returncode, out.decode(), complaints.decode()

    def kill(self):
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def programs(*started):
    try:
        yield started
    finally:
        for program in started:
            program.kill()


def waits(pid, threads=1):
    """Until that many threads have begun, and all wait for their input."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        states = []
        for tid in os.listdir(f'/proc/{pid}/task'):
            with open(f'/proc/{pid}/task/{tid}/stat', encoding='ascii', errors='replace') as file:
                states.append(file.read().rpartition(')')[2].split()[0])
        if len(states) == threads and set(states) == {'S'}:
            return
        time.sleep(0.01)
    raise TimeoutError(pid)


def held(first_ms=200, second_ms=100, threads=THREADS):
    program = Program(SUBJECT, 'held', str(first_ms), str(second_ms), str(threads))
    waits(program.pid, threads)
    return program


def python():
    program = Program(sys.executable, '-c', PYTHON)
    check('python: begins', program.says('1000000\n').strip().isdigit())
    return program


def name_of(pid):
    with open(f'/proc/{pid}/comm', encoding='ascii') as file:
        return file.read().strip()


def has(pid):
    """What is mapped, but for how large its heap is; descriptors; threads."""
    with open(f'/proc/{pid}/maps', encoding='utf-8', errors='replace') as file:
        maps = [line.split() for line in file]
    maps = [(fields[0] if fields[-1] != '[heap]' else fields[0].split('-')[0], *fields[1:]) for fields in maps]
    return maps, sorted(os.listdir(f'/proc/{pid}/fd')), sorted(os.listdir(f'/proc/{pid}/task'))


def named(maps):
    return [line for line in maps if len(line) > 5]


def nameless_bytes(maps):
    return sum(int(end, 16) - int(begin, 16) for begin, end in (line[0].split('-') for line in maps if len(line) == 5))


def is_as_before(what, pid, before):
    maps, files, threads = has(pid)
    check(f'{what}: what is mapped', maps == before[0], (set(before[0]) - set(maps), set(maps) - set(before[0])))
    check(f'{what}: what is open and runs', (files, threads) == before[1:], (before[1:], files, threads))


def monitor(*arguments, before=(), qut=QUT, **how):
    return subprocess.run([*before, qut, 'monitor', *arguments], capture_output=True, text=True, check=False, **how)


def inject(*pids, where=SEGMENTS, more=MORE, **how):
    tables = os.path.abspath('tables')
    return monitor(*(word for pid in pids for word in ('--inject', str(pid))), f'{where}{more};c={tables}', **how)


def eject(pid, *where, **how):
    return monitor('--eject', str(pid), *where, **how)


def has_agent(pid):
    with open(f'/proc/{pid}/maps', encoding='utf-8', errors='replace') as file:
        return 'libqut-agent' in file.read()


def fresh():
    global number
    number += 1
    return f'spool{number}'


def once(spool, *more):
    return monitor(SEGMENTS, '--as', 'otlp', '--spool', spool, '--once', '--quiet', *more)


def refused(what, result, *words):
    check(f'refused: {what}', result.returncode == 2 and all(word in result.stderr for word in words) and
          'outside' not in result.stderr and not result.stdout, result)


def processor_time(receiver):
    """Threads that were there are sampled from the moment on; the first tick of each counts for nothing."""
    with programs(held()) as (program,):
        said = inject(program.pid)
        check('subject: goes in', said.returncode == 0 and 'one thread stood still for' in said.stderr and 'no tables' not in said.stderr, said)
        check('subject: has a file at once', len(segments()) == 1 and segments()[0].startswith(f'{program.pid}-'), segments())
        status, out, complaints = program.ends('x' * THREADS)
        check('subject: is none the wiser', status == 0 and not complaints and len(out.split()) == 2, (status, out, complaints))
        known = int(out.split()[1])
        spool = fresh()
        balance = read_balance(once(spool, '--to', receiver.url).stdout)
        got = received(receiver.log())
        check('subject: its processor time', 0.9 * WORK_NS * THREADS <= got <= known, (got, known))
        check('subject: all is in windows', balance['told'] and balance['told'] == balance['in_windows'] + balance['left_out'], balance)
        once(spool)
        check('subject: its file is gone', not segments(), segments())


def in_and_out(receiver):
    """Twice into the same process: each time its time is seen, but for what a first and a last tick miss and the agent takes itself,
    and all is as it was afterwards."""
    with programs(held(), python()) as (idle, busy):
        before = has(idle.pid)
        for turn in range(2):
            receiver.clear()
            spool = fresh()
            said = inject(idle.pid, busy.pid, more=';p=5000000')
            check(f'turn {turn}: both go in', said.returncode == 0 and len(segments()) == 2, said)
            known = int(busy.says(f'{WORK_NS}\n'))
            window = once(spool, '--to', receiver.url, '--names')
            got = received(receiver.log())
            check(f'turn {turn}: the processor time of Python', 0.8 * WORK_NS <= got <= 1.05 * known, (got, known, window))
            names = ' '.join(name for entry in receiver.log() for name in entry.get('names', []))
            check(f'turn {turn}: stacks go to its functions', not names or 'burn_for' in names, names)
            out = [eject(idle.pid, SEGMENTS), eject(busy.pid)]
            check(f'turn {turn}: both come out', all(result.returncode == 0 and not result.stderr for result in out), out)
            waits(idle.pid, THREADS)
            is_as_before(f'turn {turn}', idle.pid, before)
            check(f'turn {turn}: none has an agent', not has_agent(idle.pid) and not has_agent(busy.pid))
            last = read_balance(once(spool).stdout)
            check(f'turn {turn}: closed segments are read to their end', (last['processes'], last['ended']) == (0, 2) and adds_up(last) and
                  not segments(), (last, segments()))
        status, out, complaints = idle.ends('x' * THREADS)
        check('turns: the program ends as ever', (status, complaints, len(out.split())) == (0, '', 2), (status, out, complaints))


def beside_windows(receiver):
    """--inject of the monitor that then takes the windows."""
    receiver.clear()
    with programs(Program(SUBJECT, 'forever', '20', '20', '1')) as (program,):
        result = monitor(SEGMENTS + MORE, '--inject', str(program.pid), '--as', 'otlp', '--spool', fresh(), '--to', receiver.url, '--duration', '2',
                         '--quiet')
        check('beside windows: it is in them', read_balance(result.stdout)['in_windows'] > 100 and received(receiver.log()) > 0, result)
        check('beside windows: it stays in', has_agent(program.pid))
    once(fresh())


def listed():
    with programs(held(), python()) as (one, other):
        inject(one.pid)
        for where in ([SEGMENTS], []):
            said = monitor('--list', *where)
            rows = {int(line.split()[0]): line for line in said.stdout.splitlines()[:-1]}
            check('listed: as injected', 'injected  ' in rows.get(one.pid, '') and os.path.abspath(SEGMENTS) in rows[one.pid] and other.pid not in rows, said)
            check('listed: counted', '; injected 1' in said.stdout.splitlines()[-1], said)
        os.mkdir('empty')
        check('listed: of its folder only', str(one.pid) not in monitor('--list', 'empty').stdout)
        refused('another DIR', eject(one.pid, 'empty'), 'another folder')
        eject(one.pid)
        check('listed: no more', str(one.pid) not in monitor('--list', SEGMENTS).stdout)
    once(fresh())


def recorders():
    """qut record leaves such an agent in; such a one leaves that of a recording in. A child of fork has one that does nothing."""
    with programs(held(), held(), python()) as (ours, theirs, forks):
        inject(ours.pid)
        outside = subprocess.run([QUT, 'record', '-q', '-p', str(ours.pid), '--duration', '0.2', '-o', 'outside.qtrace'], capture_output=True, text=True,
                                 check=False)
        check('recorders: one from outside leaves it in', has_agent(ours.pid), outside)
        beside = subprocess.run([QUT, 'record', '-p', str(ours.pid), '--inject', '--duration', '0.2', '-o', 'beside.qtrace'], capture_output=True, text=True,
                                check=False)
        check('recorders: one from inside does not begin', beside.returncode == 2 and 'or of qut monitor' in beside.stderr and has_agent(ours.pid), beside)
        recorder = subprocess.Popen([QUT, 'record', '-q', '-p', str(theirs.pid), '--inject', '-o', 'theirs.qtrace'], stderr=subprocess.DEVNULL)
        limit = time.monotonic() + 60
        while 'cannot' not in (said := eject(theirs.pid).stderr) and 'goes on' not in said and time.monotonic() < limit:
            time.sleep(0.05)
        refused('of a recording', eject(theirs.pid), 'of a recording that goes on, by process')
        refused('beside a recording', inject(theirs.pid), 'loaded there already')
        recorder.send_signal(signal.SIGINT)
        check('recorders: it ends as ever', recorder.wait() in (0, 1) and not has_agent(theirs.pid))
        inject(forks.pid)
        child = int(forks.says('fork\n'))
        try:
            check('fork: a child has what its parent has', has_agent(child))
            said = inject(child)
            check('fork: a child can be injected', said.returncode == 0 and any(name.startswith(f'{child}-') for name in segments()), (said, segments()))
            check('fork: and leave', eject(child).returncode == 0 and not has_agent(child) and has_agent(forks.pid))
        finally:
            os.kill(child, signal.SIGKILL)
    once(fresh())


def killed():
    """kill -9 of the tool, at instants that nobody chose, on the way in and out: the program goes on, and can be injected again."""
    draw = random.Random(11)
    with programs(Program(SUBJECT, 'forever', '20', '20', '2'), held()) as (busy, idle):
        before = has(idle.pid)
        for turn in range(12):
            for pid in busy.pid, idle.pid:
                command = ['--eject', str(pid)] if turn % 3 == 2 else ['--inject', str(pid), SEGMENTS + MORE + ';c=' + os.path.abspath('tables')]
                tool = subprocess.Popen([QUT, 'monitor', *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(draw.random() * 0.06)
                tool.kill()
                tool.wait()
        check('killed: both live', busy.process.poll() is None and idle.process.poll() is None, (busy.process.poll(), idle.process.poll()))
        for pid in busy.pid, idle.pid:
            limit = time.monotonic() + 60
            while not ((said := inject(pid)).returncode == 0 or 'already' in said.stderr) and time.monotonic() < limit:
                time.sleep(0.2)
            check('killed: can be injected', said.returncode == 0 or 'it has the agent already, and a segment' in said.stderr, said)
            out = eject(pid)
            check('killed: comes out', out.returncode == 0 and not has_agent(pid), out)
        waits(idle.pid, THREADS)
        now = has(idle.pid)
        check('killed: what is open and runs', now[1:] == before[1:], (before[1:], now[1:]))
        check('killed: which files are mapped', named(now[0]) == named(before[0]), (before[0], now[0]))
        more = nameless_bytes(now[0]) - nameless_bytes(before[0])
        check('killed: nothing is left but what was mapped a moment before', more % BLOCK_BYTES == 0 and more <= 4 * BLOCK_BYTES, more)
        status, out, complaints = idle.ends('x' * THREADS)
        check('killed: the program ends as ever', (status, complaints, len(out.split())) == (0, '', 2), (status, out, complaints))
    last = once(spool := fresh())
    last = once(spool)
    check('killed: no segment is left', not segments(), (segments(), last))


def refusals():
    ended = subprocess.Popen(['true'])
    ended.wait()
    refused('no such process', inject(ended.pid), 'there is no such process')
    refused('no such process to eject', eject(ended.pid), 'there is no such process')
    environment = {**os.environ, 'LD_PRELOAD': AGENT, 'QUT_AGENT': os.path.abspath(SEGMENTS)}
    with programs(held(), Program(STATIC, 'forever', '20', '20', '1'), Program('sleep', '600', env=environment)) as (program, static, preloaded):
        refused('a static program', inject(static.pid), 'a static program')
        limit = time.monotonic() + 60
        while not has_agent(preloaded.pid) and time.monotonic() < limit:
            time.sleep(0.02)
        refused('a preloaded one', inject(preloaded.pid), 'loaded there already')
        refused('a preloaded one to eject', eject(preloaded.pid), 'was preloaded')
        refused('none to eject', eject(program.pid), 'it has no agent')
        refused('a folder that is not there', inject(program.pid, where='nowhere'), 'nowhere')
        refused('a file', inject(program.pid, where=__file__), 'no folder')
        for more, word in ((';s=3', 'setting s'), (';p=fast', 'malformed'), (';c=tables;p', 'malformed')):
            refused(f'settings {more}', inject(program.pid, more=more), word)
        for arguments in ([], [SEGMENTS, 'other'], [SEGMENTS, '--list'], [SEGMENTS, '--eject', '1']):
            check(f'refused: arguments {arguments}', monitor('--inject', str(program.pid), *arguments).returncode == 2)
        check('refused: a number', monitor('--inject', '0', SEGMENTS).returncode == 2)
        with tempfile.TemporaryDirectory(dir='/var/tmp') as disk:
            on_disk = inject(program.pid, where=disk)
            if on_disk.returncode == 0:
                print('# /var/tmp is a memory file system: that another is refused was not tried')
                eject(program.pid)
            else:
                refused('a disk', on_disk, 'no memory file system')
        mixed = inject(ended.pid, program.pid)
        check('refused: the others go in', mixed.returncode == 2 and has_agent(program.pid), mixed)
        refused('twice', inject(program.pid), 'it has the agent already, and a segment')
        eject(program.pid)
        check('refused: nothing of it is left', not has_agent(program.pid))
        without_tables(program)
    once(fresh())


def without_tables(program):
    """A folder of tables that cannot be made is said, and no reason not to sample."""
    with open('no-folder', 'w', encoding='ascii'):
        pass
    said = monitor('--inject', str(program.pid), f'{SEGMENTS};c={os.path.abspath("no-folder")}/tables', '--quiet')
    check('no tables: said', said.returncode == 0 and 'no tables are made' in said.stderr, said)
    eject(program.pid)


def of_root_only():
    """Another user's programs, and other mounts."""
    if os.geteuid() != 0 or not shutil.which('setpriv') or not shutil.which('unshare'):
        print('# not root: other users and other mounts were not tried')
        return
    become = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
    with programs(held(), Program(*become, 'sleep', '600')) as (program, theirs):
        os.chmod('.', 0o711)
        os.mkdir('bin', 0o755)
        for path in QUT, AGENT:
            shutil.copy(path, 'bin')
        refused("another user's", monitor('--inject', str(program.pid), SEGMENTS, before=become, qut=os.path.abspath('bin/qut'),
                                          env={**os.environ, 'QUT_AGENT_PATH': os.path.abspath('bin/libqut-agent.so')}), "it is another user's")
        limit = time.monotonic() + 60
        while name_of(theirs.pid) != 'sleep' and time.monotonic() < limit:
            time.sleep(0.02)
        waits(theirs.pid)
        refused('a folder that is not for its user', inject(theirs.pid), 'Permission denied')
        check('refused: it is as it was', not has_agent(theirs.pid))
    script = 'mount -t tmpfs none "$0" 2>/dev/null || exit 9; echo; exec sleep 600'
    with programs(Program('unshare', '-m', 'sh', '-c', script, os.path.abspath(SEGMENTS))) as (apart,):
        select.select([apart.process.stdout], [], [], 60)
        if apart.process.stdout.readline():
            refused('other mounts', inject(apart.pid), 'has to see this folder by this name')
        else:
            print('# nothing may be mounted: other mounts were not tried')


def main():
    with receiving(once) as receiver:
        if not receiver:
            return 77
        with programs(held()) as (program,):
            if 'Permission denied' in (said := inject(program.pid)).stderr or 'not permitted' in said.stderr:
                print(f'SKIP: {said.stderr}')
                return 77
        once(fresh())
        for part in processor_time, in_and_out, beside_windows:
            part(receiver)
        for part in listed, recorders, killed, refusals, of_root_only:
            part()
    return end('injected')


if __name__ == '__main__':
    sys.exit(main())

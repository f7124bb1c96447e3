#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qut monitor over programs that were not made for us: the agent is preloaded, and records into the monitor's folder. What is
sent is compared with the processor time that the programs know they had, and with the counters of their segments.
usage: preloaded_test.py QUT AGENT SUBJECT"""
import contextlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from monitor_parts import SEGMENTS, adds_up, read_balance, received, receiving, segments
from upload_parts import check, end

QUT, AGENT, SUBJECT = map(os.path.abspath, sys.argv[1:4])
PERIOD_NS, WORK_NS = 1000000, 200000000
number = 0


def environment(where=SEGMENTS, more=f';p={PERIOD_NS}'):
    return {**os.environ, 'LD_PRELOAD': AGENT, 'QUT_AGENT': os.path.abspath(where) + more}


def run(*command, where=SEGMENTS, more=f';p={PERIOD_NS}', **how):
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment(where, more), **how)


def fresh():
    global number
    number += 1
    return f'spool{number}'


def once(spool, *more, form='otlp', where=SEGMENTS):
    return subprocess.run([QUT, 'monitor', where, '--as', form, '--spool', spool, '--once', '--quiet', *more],
                          capture_output=True, text=True, check=False)


def times(output):
    """Processor time by process; a process that became another program tells twice, and the second has all of it."""
    return {line.split()[0]: int(line.split()[1]) for line in output.splitlines()}


def stored_by(path):
    """By a segment's own counters."""
    said = subprocess.run([QUT, 'info', '--json', path], capture_output=True, text=True, check=False)
    counts = json.loads(said.stdout)
    return counts['stored'] + counts['merged']


def processor_time(receiver):
    for how, processes in (('plain', 1), ('fork', 2), ('exec', 2)):
        receiver.clear()
        spool, threads = fresh(), 2
        result = run(SUBJECT, how, '150', '50', str(threads))
        known = sum(times(result.stdout).values())
        check(f'{how}: the program is none the wiser', result.returncode == 0 and not result.stderr, result)
        stored = sum(stored_by(f'{SEGMENTS}/{name}') for name in segments())
        sent = once(spool, '--to', receiver.url, '--wait', '1')
        balance = read_balance(sent.stdout)
        check(f'{how}: told is what the segments have', stored and balance['told'] == stored and adds_up(balance), (balance, stored))
        check(f'{how}: all is in windows', sent.returncode == 0 and balance['in_windows'] + balance['left_out'] == stored, sent.stdout)
        got = received(receiver.log())
        # The first tick of each thread counts for nothing, and what it used behind its last one is not seen; what a program has
        # used before the agent began, which takes its time on a busy machine, is not, either: so the least is of its work.
        # Of a first run of equal ticks only the time that it lasted is known, and that the thread had used no less before: by its
        # clock, which an exec does not set back.
        most = known if how != 'exec' else 1.5 * known
        check(f'{how}: its processor time', 0.8 * WORK_NS * threads * processes <= got <= most, (got, known))
        once(spool)
        check(f'{how}: its files are gone', not segments(), segments())
        last = read_balance(once(spool).stdout)
        check(f'{how}: a segment for each program', (last['processes'], last['ended']) == (0, processes), last)


def shells():
    """Commands of a moment leave nothing; what a shell says is what it said before."""
    script = 'for i in 1 2 3 4 5 6 7 8; do true; /bin/true; (echo $i | cat); done; echo done >&2; exit 3'
    result = run('/bin/sh', '-c', script, more='')
    alone = subprocess.run(['/bin/sh', '-c', script], capture_output=True, text=True, check=False)
    check('shells: the same output and status', (result.stdout, result.stderr, result.returncode) ==
          (alone.stdout, alone.stderr, alone.returncode), (result, alone))
    check('shells: nothing is left of what had no tick', not segments(), segments())


def interpreters(receiver):
    receiver.clear()
    spool = fresh()
    code = 'import os, threading\nx = sum(i * i for i in range(2000000))\nprint(x, sorted(k for k in os.environ if k.startswith("QUT")))'
    result = run(sys.executable, '-c', code)
    check('python: runs', result.returncode == 0 and result.stdout.startswith('2666664666667000000') and not result.stderr, result)
    sent = once(spool, '--to', receiver.url, '--names')
    log = receiver.log()
    check('python: is a service', log and os.path.basename(os.path.realpath(sys.executable))[:7] in ' '.join(log[0].get('services', '')), (log, sent))
    once(spool)


def out_of_reach():
    """No folder, none that takes segments, a limit of files: the program runs on, and what can be said is said."""
    alone = subprocess.run([SUBJECT, 'plain', '30', '1', '2'], capture_output=True, text=True, check=False)
    check('out of reach: alone', alone.returncode == 0, alone)
    for where, more, how in (('nowhere', '', {}), (SEGMENTS, ';p=nonsense', {}),
                             (SEGMENTS, ';p=1000000', {'preexec_fn': lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))})):
        result = run(SUBJECT, 'plain', '30', '1', '2', where=where, more=more, **how)
        check(f'out of reach: {where}{more} runs', result.returncode == 0 and not result.stderr and len(times(result.stdout)) == 1, result)
    said = once(fresh())
    check('out of reach: a limit is said', '1 left alone (1 with a limit on the size of files)' in said.stdout or
          '1 left alone (1 in which the agent could not begin: File too large)' in said.stdout, said.stdout)
    check('out of reach: its note is gone', not segments(), segments())
    with tempfile.TemporaryDirectory(dir='/var/tmp') as disk:
        result = run(SUBJECT, 'plain', '30', '1', '1', where=disk)
        check('out of reach: a disk: runs', result.returncode == 0 and not result.stderr, result)
        left = os.listdir(disk)
        spool = fresh()
        said = once(spool, where=disk)
        again = once(spool, where=disk)
        if any(name.startswith('left-') for name in left):
            check('out of reach: a disk is said', '1 left alone (1 in which the agent could not begin: Wrong medium type)' in said.stdout,
                  (left, said.stdout))
            check('out of reach: and once', again.stdout == said.stdout and not os.listdir(disk), (again.stdout, os.listdir(disk)))
        else:
            print('# /var/tmp is a memory file system: that it is refused was not tried')


def thinned(receiver):
    """Of a rate that is halved twice a quarter of the ticks is stored, and stands for all of the time."""
    stored, got = {}, {}
    for halvings in (0, 2):
        receiver.clear()
        spool = fresh()
        with open(f'{SEGMENTS}/rate', 'w', encoding='ascii') as file:
            file.write(f'{halvings}\n')
        os.chmod(f'{SEGMENTS}/rate', 0o644)
        known = times(run(SUBJECT, 'plain', '400', '100', '1').stdout)
        balance = read_balance(once(spool, '--to', receiver.url).stdout)
        stored[halvings], got[halvings] = balance['told'], received(receiver.log()) / sum(known.values())
        once(spool)
    check('thinned: a quarter is stored', 0.15 * stored[0] <= stored[2] <= 0.35 * stored[0], stored)
    check('thinned: it stands for all of the time', 0.8 <= got[2] <= 1, got)


def budgets(receiver):
    """Far above a budget the rate halves, programs and receiver are told; far below it nothing is."""
    program = subprocess.Popen([SUBJECT, 'forever', '20', '20', '1'], env=environment())
    command = [QUT, 'monitor', SEGMENTS, '--as', 'otlp', '--to', receiver.url, '--quiet', '--window', '1']
    try:
        for name, options, least in (('bytes', ['--budget-mb-day', '0.1'], 1), ('processor time', ['--budget-cpu', '0.01'], 1),
                                     ('neither', ['--budget-mb-day', '100000', '--budget-cpu', '100'], 0)):
            receiver.clear()
            result = subprocess.run([*command, '--spool', fresh(), '--duration', '6', *options], capture_output=True, text=True, check=False)
            told = 0
            with contextlib.suppress(FileNotFoundError), open(f'{SEGMENTS}/rate', encoding='ascii') as file:
                told = int(file.read())
                os.unlink(f'{SEGMENTS}/rate')
            log = [entry for entry in receiver.log() if entry['accepted']]
            check(f'budgets: {name}: told', (told >= least) if least else told == 0, (told, result))
            check(f'budgets: {name}: said at the end', ('the rate is halved' in result.stdout) == bool(least), result.stdout)
            check(f'budgets: {name}: the receiver knows', log and log[0]['halvings'] == 0 and (log[-1]['halvings'] > 0) == bool(least),
                  [entry['halvings'] for entry in log])
    finally:
        program.kill()
        program.wait()
    spool = fresh()
    once(spool)
    once(spool)
    with open(f'{SEGMENTS}/rate', 'w', encoding='ascii') as file:
        file.write('3\n')
    once(spool)
    check('budgets: without one what was told is taken back', not segments(), segments())


def killed(receiver):
    """kill -9 of programs and of collectors, at instants that nobody chose."""
    receiver.clear()
    draw, spool = random.Random(5), fresh()
    command = [QUT, 'monitor', SEGMENTS, '--as', 'otlp', '--spool', spool, '--to', receiver.url, '--quiet', '--wait', '1', '--once']
    programs = [subprocess.Popen([SUBJECT, 'forever', '20', '20', '2'], env=environment(more=f';p={PERIOD_NS};b=1048576'))
                for _ in range(3)]
    limit = time.monotonic() + 60
    while len(segments()) < len(programs) and time.monotonic() < limit:
        time.sleep(0.01)
    try:
        for _ in range(8):
            collector = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(draw.random() * 0.15)
            collector.kill()
            collector.wait()
    finally:
        for program in programs:
            program.kill()
            program.wait()
    os.mkdir('copies')
    for name in segments():
        shutil.copy(f'{SEGMENTS}/{name}', 'copies')
    stored = sum(stored_by(f'copies/{name}') for name in os.listdir('copies'))
    for _ in range(3):
        last = subprocess.run([*command, '--patience', '60'], capture_output=True, text=True, check=False)
    balance = read_balance(last.stdout)
    check('killed: told is what was stored', balance['told'] == stored and adds_up(balance) and balance['in_windows'], (balance, stored))
    check('killed: no process is left', (balance['processes'], balance['ended'], balance['vanished']) == (0, len(programs), 0) and
          not segments(), (balance, segments()))
    check('killed: nothing waits', 'waiting 0 + dropped 0' in last.stdout, last.stdout)
    log = [entry for entry in receiver.log() if entry['accepted']]
    check('killed: no window reached the receiver twice', len({entry['id'] for entry in log}) <= balance['windows'], (len(log), balance))


def listed(where):
    """[(state, command)] of our folder; and the last line."""
    said = subprocess.run([QUT, 'monitor', '--list', where], capture_output=True, text=True, check=False)
    check('listed: status', said.returncode == 0, said)
    *rows, last = said.stdout.splitlines()
    return {int(row.split()[0]): (row[9:23].strip(), row[25:].split('  ')[0]) for row in rows}, last


def list_of_processes():
    os.mkdir('listed')
    none, last = listed('listed')
    check('listed: nobody', not none and last.startswith('preloaded 0: 0 sample, 0 have no segment yet, 0 have no agent'), last)
    loop = subprocess.Popen([sys.executable, '-c', 'while True: pass'], env=environment('listed'))
    idle = subprocess.Popen(['sleep', '600'], env=environment('listed', ';p=10000000000'))
    without = {**environment('listed')}
    del without['LD_PRELOAD']
    bare = subprocess.Popen(['sleep', '600'], env=without)
    elsewhere = subprocess.Popen(['sleep', '600'], env=environment('.'))
    try:
        limit, wanted = time.monotonic() + 60, {loop.pid: 'samples', idle.pid: 'no segment yet', bare.pid: 'no agent'}
        found = {}
        while {pid: state for pid, (state, _) in found.items()} != wanted and time.monotonic() < limit:
            time.sleep(0.05)
            found, last = listed('listed')
        check('listed: each as it is, and no others', {pid: state for pid, (state, _) in found.items()} == wanted, (found, wanted))
        check('listed: by name', found[idle.pid][1] == 'sleep' and last.startswith('preloaded 3: 1 sample, 1 have no segment yet, 1 have no agent'),
              (found, last))
    finally:
        for process in loop, idle, bare, elsewhere:
            process.kill()
            process.wait()


def main():
    with receiving(once) as receiver:
        if not receiver:
            return 77
        processor_time(receiver)
        shells()
        interpreters(receiver)
        out_of_reach()
        thinned(receiver)
        budgets(receiver)
        killed(receiver)
        list_of_processes()
    return end('preloaded')


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qut monitor over processes that count for themselves what they stored: windows, what is lost in them, processes that end in
every way, what it refuses. usage: monitor_test.py QUT SUBJECT"""
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

from monitor_parts import SEGMENTS, Subject, adds_up, read_balance, received, segments
from upload_parts import Receiver, check, end, folder

QUT, SUBJECT = map(os.path.abspath, sys.argv[1:3])
CPU_STEP_NS = 1024000
number = 0


def fresh():
    global number
    number += 1
    return f'spool{number}'


def monitor(*arguments, **how):
    return subprocess.run([QUT, 'monitor', *arguments], capture_output=True, text=True, check=False, **how)


def once(spool, *more, form='otlp', **how):
    return monitor(SEGMENTS, '--as', form, '--spool', spool, '--once', *more, **how)


def until_told(spool, least=1):
    """Windows until so many samples were told; returns the last one."""
    limit = time.monotonic() + 60
    while True:
        result = once(spool)
        balance = read_balance(result.stdout)
        if balance['told'] >= least:
            return result, balance
        assert time.monotonic() < limit, balance
        time.sleep(0.05)


def windows(receiver):
    subjects = [Subject(SUBJECT, how) for how in ('close', 'leave', 'fork')]
    spool = fresh()
    try:
        _, first = until_told(spool, 100)
        check('windows: it adds up while they run', adds_up(first) and first['in_windows'], first)
        _, second = until_told(spool, first['told'] + 100)
        check('windows: the second has more', second['windows'] > first['windows'] and adds_up(second), second)
        counts = [subject.end() for subject in subjects]
    finally:
        for subject in subjects:
            subject.kill()
    once(spool)
    check('windows: segments of ended processes are gone', not segments(), segments())
    last = once(spool, '--to', receiver.url, '--wait', '1', '--quiet')
    balance = read_balance(last.stdout)
    check('windows: told is what they stored', balance['told'] == sum(count[0] for count in counts), (balance, counts))
    check('windows: it adds up', adds_up(balance) and (balance['processes'], balance['ended']) == (0, 4), balance)
    check('windows: nothing was lost, status 0', last.returncode == 0 and balance['in_windows'] == balance['told'], last.stdout)
    log = receiver.log()
    check('windows: the receiver has them', received(log) == balance['told'] and all(entry['accepted'] for entry in log), (balance, log))
    check('windows: each its own id', len({entry['id'] for entry in log}) == len(log) == balance['windows'], log)
    check('windows: processes are services', os.path.basename(SUBJECT) in log[0]['services'], log[0])
    again = once(spool, '--to', receiver.url)
    check('windows: nothing new, nothing sent', len(receiver.log()) == len(log) and read_balance(again.stdout) == balance, again.stdout)


def pushes(receiver):
    receiver.clear()
    subjects = [Subject(SUBJECT) for _ in range(2)]
    counts = [subject.end() for subject in subjects]
    spool = fresh()
    sent = once(spool, '--to', receiver.url, '--service', 'shop', '--host', 'h1', form='pprof')
    balance = read_balance(sent.stdout)
    log = receiver.log()
    check('pushes: one for each process', len(log) == sum(1 for count in counts if count[0]) and balance['windows'] == 1, (log, sent.stdout))
    check('pushes: labelled', all(entry['labels']['service_name'] == 'shop' and entry['labels']['hostname'] == 'h1' for entry in log), log)


def cut_off():
    """What a collector leaves that is killed between two requests of a window, and before the first: by hand."""
    subjects = [Subject(SUBJECT) for _ in range(2)]
    for subject in subjects:
        subject.end()
    spool = fresh()
    before = read_balance(once(spool, form='pprof').stdout)
    with open(f'{spool}/monitor', encoding='ascii') as file:
        left = file.read()
    requests = [line.split() for line in left.splitlines() if line.startswith('request ')]
    check('cut off: two requests', len(requests) == 2, left)
    never = left
    for request in requests:
        never = never.replace(request[1], request[1][::-1])
    with open(f'{spool}/monitor.next', 'w', encoding='ascii') as file:
        file.write(never.replace('sum windows 1', 'sum windows 7'))
    none = read_balance(once(spool, form='pprof').stdout)
    check('cut off: none came to the spool, so it never was', (none['windows'], none['in_windows'], none['cut_off']) ==
          (1, before['in_windows'], 0) and adds_up(none) and not os.path.exists(f'{spool}/monitor.next'), none)
    with open(f'{spool}/monitor.next', 'w', encoding='ascii') as file:
        file.write(left.replace(requests[1][1], requests[1][1][::-1]))
    one = read_balance(once(spool, form='pprof').stdout)
    check('cut off: the other is said', (one['in_windows'], one['cut_off']) == (int(requests[0][2]), int(requests[1][2])) and
          adds_up(one) and not os.path.exists(f'{spool}/monitor.next'), one)


def processor_time(receiver):
    """A tick counts for what its thread used since the last one, whichever windows the two are in."""
    receiver.clear()
    subjects = [Subject(SUBJECT, kibibytes=4096, threads=threads, samples=samples, kind='cpu') for threads, samples in ((1, 1), (2, 50))]
    spool, told = fresh(), 0
    try:
        for _ in range(6):
            _, balance = until_told(spool, told + 1)
            told = balance['told']
        counts = [subject.end() for subject in subjects]
    finally:
        for subject in subjects:
            subject.kill()
    last = once(spool, '--to', receiver.url)
    balance, log = read_balance(last.stdout), receiver.log()
    stored = sum(count[0] for count in counts)
    check('processor time: in several windows', balance['windows'] > 3 and balance['in_windows'] == stored == balance['told'], balance)
    # Ticks at one place are stored as a run; one that two windows share is divided, which may round.
    off_ns = received(log) - (stored - 3) * CPU_STEP_NS
    check('processor time: all but that of the first tick of each thread', abs(off_ns) <= balance['windows'],
          (received(log) / CPU_STEP_NS, stored, off_ns))


def overwritten():
    subject = Subject(SUBJECT, kibibytes=192, samples=2000, pause_us=100)
    spool = fresh()
    limit = time.monotonic() + 60
    try:
        while True:
            result, balance = until_told(spool)
            if balance['overwritten'] or time.monotonic() > limit:
                break
        check('overwritten: said, and status 1', balance['overwritten'] and result.returncode == 1 and adds_up(balance), result.stdout)
        stored, lost = subject.end()
    finally:
        subject.kill()
    balance = read_balance(once(spool).stdout)
    check('overwritten: exact', (balance['told'], balance['lost']) == (stored, lost) and adds_up(balance), (balance, stored, lost))


def runs(receiver):
    receiver.clear()
    subject = Subject(SUBJECT)
    spool = fresh()
    process = subprocess.Popen([QUT, 'monitor', SEGMENTS, '--as', 'otlp', '--spool', spool, '--window', '1', '--to', receiver.url],
                               stdout=subprocess.PIPE, text=True)
    limit = time.monotonic() + 60
    try:
        while len(receiver.log()) < 2 and time.monotonic() < limit:
            time.sleep(0.05)
        busy = once(spool)
        check('runs: a spool is of one', busy.returncode == 2 and 'another process' in busy.stderr, busy.stderr)
        stored, _ = subject.end()
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    finally:
        subject.kill()
        process.kill()
    balance = read_balance(output)
    check('runs: ends by SIGTERM with a last window', process.returncode == 0 and balance['told'] == stored and
          received(receiver.log()) == stored, (process.returncode, output))
    ends = monitor(SEGMENTS, '--as', 'otlp', '--spool', spool, '--duration', '1')
    check('runs: ends by itself', ends.returncode == 0 and read_balance(ends.stdout)['ended'] == 1, ends.stdout)


def share(receiver):
    """Lots are drawn until some windows were taken and some were not."""
    receiver.clear()
    subject = Subject(SUBJECT, pause_us=20000)
    spool, balance = fresh(), {'in_windows': 0, 'left_out': 0}
    limit = time.monotonic() + 120
    try:
        while not (balance['in_windows'] and balance['left_out']) and time.monotonic() < limit:
            result = monitor(SEGMENTS, '--as', 'otlp', '--spool', spool, '--to', receiver.url, '--window', '1', '--duration', '2', '--window-share', '50')
            balance = read_balance(result.stdout)
            check('share: ends well', result.returncode == 0 and '50 % of windows are taken' in result.stdout, result)
        stored, _ = subject.end()
    finally:
        subject.kill()
    last = read_balance(once(spool).stdout)
    check('share: nothing is forgotten', last['told'] == stored and adds_up(last), (last, stored))
    check('share: some are taken, some left out', balance['in_windows'] and balance['left_out'] and adds_up(balance), balance)
    check('share: the receiver has what was taken, and knows', received(receiver.log()) == balance['in_windows'] and
          all(entry['share'] == 50 for entry in receiver.log()), (balance, receiver.log()))


def rings(receiver):
    """A signal: what each process keeps, with times, as a trace of its own, which goes on its own way."""
    receiver.clear()
    subjects = [Subject(SUBJECT) for _ in range(2)]
    spool = fresh()
    process = subprocess.Popen([QUT, 'monitor', SEGMENTS, '--as', 'otlp', '--spool', spool, '--window', '60', '--rings', 'rings'],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    names = []
    limit = time.monotonic() + 60
    try:
        # Once it blocks the signal: before, that would end it.
        while not os.path.exists('rings/account') and time.monotonic() < limit:
            time.sleep(0.05)
        while len(names) < 2 and time.monotonic() < limit:
            process.send_signal(signal.SIGUSR1)
            time.sleep(0.2)
            names = [name for name in os.listdir('rings') if name.endswith('.file')]
        counts = [subject.end() for subject in subjects]
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        for subject in subjects:
            subject.kill()
    check('rings: said', process.returncode == 0 and re.search(r'^rings: taken \d+ = sent 0 \+ waiting \d+ \+ dropped 0$', output, re.MULTILINE) and
          'traces taken' in errors, (process.returncode, output, errors))
    told = []
    for name in names:
        info = json.loads(subprocess.run([QUT, 'info', '--json', f'rings/{name}'], capture_output=True, text=True, check=False).stdout)
        told.append(info)
        check('rings: a trace, with samples and times', info['stored'] + info['merged'] > 0 and info['end_ns'] > info['start_ns'], info)
    pids = {process.process.pid for process in subjects}
    check('rings: of each process', {info['pid'] for info in told} == pids, (pids, [info['pid'] for info in told]))
    check('rings: no more than it stored', all(info['stored'] + info['merged'] <= max(count[0] for count in counts) for info in told), counts)
    balance = read_balance(output)
    check('rings: windows are what they were', balance['told'] == sum(count[0] for count in counts) and adds_up(balance), (balance, counts))
    before = {name: os.path.getsize(f'rings/{name}') for name in os.listdir('rings') if name.endswith('.file')}
    sent = subprocess.run([QUT, 'upload', '--as', 'file', '--spool', 'rings', '--to', receiver.url + '/bucket/{id}', '--quiet', '--wait', '1'],
                          capture_output=True, text=True, check=False)
    check('rings: and they are sent as files', sent.returncode == 0 and sorted(entry['unpacked'] for entry in receiver.log()) == sorted(before.values()),
          (sent.stdout, sent.stderr, before))
    once(spool)
    for arguments, word in (('--once', '--rings'), ('--spool', 'own')):
        bad = monitor(SEGMENTS, '--as', 'otlp', '--spool', 's', '--rings', 'r' if arguments == '--once' else 's', *(['--once'] if arguments == '--once' else []))
        check(f'rings: refused with {arguments}', bad.returncode == 2 and word in bad.stderr, bad.stderr)


def others():
    """What lies beside segments, and segments that others took or damaged."""
    spool = fresh()
    os.mkdir(f'{SEGMENTS}/folder')
    os.symlink('/etc/passwd', f'{SEGMENTS}/link')
    os.mkfifo(f'{SEGMENTS}/pipe')
    with open(f'{SEGMENTS}/text', 'w', encoding='ascii') as file:
        file.write('no segment\n')
    subject = Subject(SUBJECT, 'leave')
    until_told(spool, 100)
    stored, _ = subject.end()
    shutil.copy(subject.path, 'copy')
    with open('copy', 'rb') as file:
        head = file.read(8)
    with open(f'{SEGMENTS}/cut', 'wb') as file:
        file.write(head)
    shutil.copy('copy', f'{SEGMENTS}/copy')
    result = once(spool)
    balance = read_balance(result.stdout)
    check('others: a copy is no second one', balance['told'] == stored and adds_up(balance), (balance, stored))
    check('others: what is no segment stays', {'folder', 'link', 'pipe', 'text', 'cut'} <= set(segments()), segments())
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f'{SEGMENTS}/copy')
    for name in ('link', 'pipe', 'text', 'cut'):
        os.unlink(f'{SEGMENTS}/{name}')
    os.rmdir(f'{SEGMENTS}/folder')
    subject = Subject(SUBJECT)
    until_told(spool, stored + 100)
    os.unlink(subject.path)
    gone = read_balance(once(spool).stdout)
    subject.end()
    check('others: one that vanished is said', gone['vanished'] == 1 and adds_up(gone), gone)


def full():
    """No room for what is remembered: what is new waits in the segments."""
    spool = fresh()
    subject = Subject(SUBJECT)
    _, before = until_told(spool, 100)
    failed = once(spool, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    check('full: said', failed.returncode == 2, (failed.returncode, failed.stdout, failed.stderr))
    stored, _ = subject.end()
    once(spool)
    balance = read_balance(once(spool).stdout)
    check('full: nothing is lost, nothing twice', balance['told'] == balance['in_windows'] == stored, (balance, stored, before))
    with open(f'{spool}/monitor', 'a', encoding='ascii') as file:
        file.write('nonsense\n')
    with open(f'{spool}/monitor', 'r+', encoding='ascii') as file:
        file.write('x')
    spoiled = once(spool)
    check('full: what was spoiled is not guessed', spoiled.returncode == 2 and 'cannot be read' in spoiled.stderr, spoiled.stderr)


def refusals():
    for arguments, word in (((SEGMENTS, '--as', 'otlp'), '--spool'), (('--as', 'otlp', '--spool', 's'), 'DIR'),
                            ((SEGMENTS, '--spool', 's'), '--as'), ((SEGMENTS, '--as', 'file', '--spool', 's'), '--as'),
                            ((SEGMENTS, '--as', 'otlp', '--spool', 's', '--once', '--duration', '1'), '--once'),
                            ((SEGMENTS, '--as', 'otlp', '--spool', 's', '--once', '--window-share', '5'), '--once'),
                            ((SEGMENTS, '--as', 'otlp', '--spool', 's', '--window-share', '0'), 'percent'),
                            ((SEGMENTS, '--as', 'otlp', '--spool', 's', '--dry-run'), 'dry-run')):
        result = monitor(*arguments)
        check(f'refused: {arguments}', result.returncode == 2 and word in result.stderr, (result.returncode, result.stderr))
    nowhere = monitor('nowhere', '--as', 'otlp', '--spool', fresh(), '--once')
    check('refused: no such folder is said, status 1', nowhere.returncode == 1 and 'nowhere' in nowhere.stderr, (nowhere.returncode, nowhere.stderr))


def main():
    with folder() as work:
        os.chdir(work)
        os.mkdir(SEGMENTS)
        receiver = Receiver('receiver')
        try:
            if 'without libcurl' in monitor(SEGMENTS, '--as', 'otlp', '--spool', 'probe', '--once', '--to', receiver.url).stderr:
                print('SKIP: this qut was built without libcurl')
                return 77
            windows(receiver)
            pushes(receiver)
            cut_off()
            processor_time(receiver)
            overwritten()
            runs(receiver)
            share(receiver)
            rings(receiver)
            others()
            full()
            refusals()
        finally:
            receiver.kill()
    return end('monitor')


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qut monitor --processes: segments that are memory without a name, of processes that see other mounts, close their trace, end
without that, are killed, fork. All that they stored is in windows, though nothing of a segment is left when its process is gone.
It runs among processes of its own, since it would find those of others. usage: monitor_memory_test.py QUT SUBJECT"""
import os
import re
import signal
import subprocess
import sys
import time

from monitor_parts import Subject, adds_up, read_balance
from upload_parts import check, end, folder

QUT, SUBJECT = map(os.path.abspath, sys.argv[1:3])
APART = ['unshare', '--mount', '--pid', '--fork', '--mount-proc']


def remembered(spool):
    """Of each segment that is there how many samples were told; and the sums."""
    try:
        with open(f'{spool}/monitor', encoding='ascii') as file:
            text = file.read()
    except FileNotFoundError:
        return [], {}
    return ([int(told) for told in re.findall(r'^segment [0-9a-f]+ (\d+)', text, re.MULTILINE)],
            {name: int(value) for name, value in re.findall(r'^sum (\S+) (\d+)', text, re.MULTILINE)})


def until(what, is_so):
    limit = time.monotonic() + 90
    while not is_so():
        if time.monotonic() > limit:
            check(what, False, 'it did not happen')
            return
        time.sleep(0.05)


def start(spool):
    return subprocess.Popen([QUT, 'monitor', '--processes', '--as', 'otlp', '--spool', spool, '--window', '1'],
                            stdout=subprocess.PIPE, text=True)


def all_ends():
    """Each way to end; then a last window."""
    subjects = [Subject(SUBJECT, how, in_memory=True) for how in ('close', 'leave', 'fork')]
    subjects.append(Subject(SUBJECT, 'leave', in_memory=True, within=['unshare', '--mount']))
    process = start('spool')
    try:
        # The child of a fork has its own.
        until('ends: all are found', lambda: len(remembered('spool')[0]) == 5 and sum(map(bool, remembered('spool')[0])) >= 4)
        counts = [subject.end() for subject in subjects]
        until('ends: all are seen to end', lambda: remembered('spool')[1].get('ended') == 5)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        for subject in subjects:
            subject.kill()
    balance = read_balance(output)
    check('ends: told is what they stored', balance['told'] == balance['in_windows'] == sum(count[0] for count in counts), (balance, counts))
    check('ends: it adds up, nothing vanished, status 0', adds_up(balance) and process.returncode == 0 and
          (balance['processes'], balance['ended'], balance['vanished']) == (0, 5, 0), (process.returncode, output))


def killed():
    """What a process had stored when it was killed is there: the monitor has its memory open."""
    subject = Subject(SUBJECT, in_memory=True)
    process = start('killed')
    try:
        until('killed: it is found', lambda: any(remembered('killed')[0]))
        subject.kill()
        until('killed: its end is seen', lambda: remembered('killed')[1].get('ended') == 1)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        subject.kill()
    balance = read_balance(output)
    check('killed: read to its end', adds_up(balance) and balance['told'] == balance['in_windows'] > 0 and not balance['vanished'], output)


def again():
    """A monitor that comes back finds where the one before was; what ended meanwhile vanished, and is said."""
    subjects = [Subject(SUBJECT, in_memory=True) for _ in range(2)]
    once = [QUT, 'monitor', '--processes', '--as', 'otlp', '--spool', 'again', '--once']
    try:
        until('again: they are found', lambda: read_balance(subprocess.run(once, capture_output=True, text=True, check=False).stdout)['told'] > 100)
        before = read_balance(subprocess.run(once, capture_output=True, text=True, check=False).stdout)
        second = read_balance(subprocess.run(once, capture_output=True, text=True, check=False).stdout)
        check('again: goes on', second['told'] >= before['told'] and second['processes'] == 2 and adds_up(second), (before, second))
        counts = [subject.end() for subject in subjects]
        last = subprocess.run(once, capture_output=True, text=True, check=False)
    finally:
        for subject in subjects:
            subject.kill()
    balance = read_balance(last.stdout)
    check('again: who ended while nobody looked vanished, status 1', last.returncode == 1 and balance['vanished'] == 2 and adds_up(balance) and
          second['told'] <= balance['told'] <= sum(count[0] for count in counts), (last.stdout, counts))


def main():
    if len(sys.argv) == 3:
        can = subprocess.run([*APART, 'true'], capture_output=True, text=True, check=False)
        if can.returncode != 0:
            print(f'SKIP: no processes of our own: {can.stderr.strip()}')
            return 77
        return subprocess.run([*APART, sys.executable, *sys.argv, 'inside'], check=False).returncode
    with folder() as work:
        os.chdir(work)
        all_ends()
        killed()
        again()
    return end('monitor_memory')


if __name__ == '__main__':
    sys.exit(main())

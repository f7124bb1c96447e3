#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rounds of qut monitor in which it is killed at an instant that nobody chose, over processes that come, fork and go: what they
stored is, to the last sample, in windows or said to be lost; and no window reaches a receiver twice.
usage: monitor_killed_test.py QUT SUBJECT [ROUNDS [SEED]]"""
import os
import random
import subprocess
import sys
import time

from monitor_parts import SEGMENTS, Subject, adds_up, read_balance, received, segments
from upload_parts import Receiver, check, end, folder

QUT, SUBJECT = map(os.path.abspath, sys.argv[1:3])
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 12
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else 1
ENDS = ('close', 'leave', 'fork')


def command(url, form):
    return [QUT, 'monitor', SEGMENTS, '--as', form, '--spool', 'spool', '--to', url, '--quiet', '--wait', '1', '--once']


def play(draw, receiver, form, rounds):
    os.mkdir(SEGMENTS)
    receiver.clear()
    run = [QUT, 'monitor', SEGMENTS, '--as', form, '--spool', f'spool-{form}', '--to', receiver.url, '--quiet', '--wait', '1', '--once']
    subjects, stored, lost, begun = [], 0, 0, 0
    begin = time.monotonic()
    subprocess.run(run, capture_output=True, check=True)
    longest = time.monotonic() - begin
    try:
        for _ in range(rounds):
            while len(subjects) < 4:
                # Small ones overwrite some of theirs between two windows.
                how = draw.choice(ENDS)
                begun += 2 if how == 'fork' else 1
                subjects.append(Subject(SUBJECT, how, kibibytes=draw.choice((192, 1024)), samples=draw.choice((1, 20, 200))))
            process = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(draw.random() * longest * draw.choice((1, 1, 3)))
            process.kill()
            process.wait()
            if draw.random() < 0.4:
                counts = subjects.pop(draw.randrange(len(subjects))).end()
                stored, lost = stored + counts[0], lost + counts[1]
        while subjects:
            counts = subjects.pop().end()
            stored, lost = stored + counts[0], lost + counts[1]
    finally:
        for subject in subjects:
            subject.kill()
    # What they left is read to its end, then removed; that it is gone the next window sees.
    for _ in range(3):
        last = subprocess.run([*run, '--patience', '60'], capture_output=True, text=True, check=False)
    balance, got = read_balance(last.stdout), received(receiver.log())
    check(f'{form}: all that was stored was told', (balance['told'], balance['lost']) == (stored, lost), (balance, stored, lost))
    check(f'{form}: it adds up', adds_up(balance), balance)
    check(f'{form}: no process is left', (balance['processes'], balance['ended'], balance['vanished']) == (0, begun, 0) and
          not segments(), (balance, begun, segments()))
    check(f'{form}: there was something', 0 < balance['in_windows'], balance)
    check(f'{form}: the receiver has the windows, each once', got == balance['in_windows'], (got, balance, last.stdout))
    check(f'{form}: nothing waits', 'waiting 0 + dropped 0' in last.stdout, last.stdout)
    os.rmdir(SEGMENTS)
    print(f'{form}, {rounds} rounds: {balance}')


def main():
    draw = random.Random(SEED)
    with folder() as work:
        os.chdir(work)
        receiver = Receiver('receiver')
        try:
            probe = subprocess.run([QUT, 'monitor', work, '--as', 'otlp', '--spool', 'probe', '--to', receiver.url, '--once'],
                                   capture_output=True, text=True, check=False)
            if 'without libcurl' in probe.stderr:
                print('SKIP: this qut was built without libcurl')
                return 77
            for form in ('otlp', 'pprof'):
                play(draw, receiver, form, ROUNDS)
        finally:
            receiver.kill()
    return end('monitor_killed')


if __name__ == '__main__':
    sys.exit(main())

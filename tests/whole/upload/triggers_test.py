#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rings of qut monitor that a process asks for: by a mark, or by work that is slow; and none for anything else.
usage: triggers_test.py QUT SUBJECT"""
import json
import os
import re
import signal
import subprocess
import sys
import time

from monitor_parts import SEGMENTS, Subject
from upload_parts import check, end, folder

QUT, SUBJECT = map(os.path.abspath, sys.argv[1:3])
LOOKS_S = 2


class Monitor:
    number = 0

    def __init__(self, *triggers, window=3600, where=(SEGMENTS,)):
        Monitor.number += 1
        self.rings = f'rings{Monitor.number}'
        self.process = subprocess.Popen([QUT, 'monitor', *where, '--as', 'otlp', '--spool', f'spool{Monitor.number}', '--window', str(window),
                                         '--rings', self.rings, *triggers], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + 60
        while not os.path.exists(f'{self.rings}/account') and time.monotonic() < until:
            time.sleep(0.05)

    def files(self):
        return [name for name in os.listdir(self.rings) if name.endswith('.file')]

    def wait(self, count, seconds=60):
        until = time.monotonic() + seconds
        while len(self.files()) < count and time.monotonic() < until:
            time.sleep(0.1)
        return len(self.files())

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        output, errors = self.process.communicate(timeout=60)
        match = re.search(r'^triggers (\d+), too soon after another (\d+)$', output, re.MULTILINE)
        return (tuple(map(int, match.groups())) if match else None, errors, output)


def say(subject, letters):
    subject.process.stdin.write(letters)
    subject.process.stdin.flush()


def marks():
    subject = Subject(SUBJECT, pause_us=20000)
    other = Subject(SUBJECT, pause_us=20000)
    try:
        while not os.path.exists(subject.path) or not os.path.exists(other.path):
            time.sleep(0.02)
        say(subject, 'm')
        time.sleep(0.3)
        monitor = Monitor('--ring-mark', 'something', '--ring-slow', 'work=700')
        say(subject, 'obe')
        time.sleep(2 * LOOKS_S + 1)
        check('marks: none for one from before, another, quick work', not monitor.files(), monitor.files())
        say(subject, 'm')
        check('marks: a ring of each process', monitor.wait(2) == 2, monitor.files())
        with_mark = [json.loads(subprocess.run([QUT, 'info', '--json', f'{monitor.rings}/{name}'], capture_output=True, text=True,
                                               check=False).stdout) for name in monitor.files()]
        check('marks: of both', {info['pid'] for info in with_mark} == {subject.process.pid, other.process.pid}, with_mark)
        say(other, 'm')
        say(subject, 'b')
        time.sleep(2 * LOOKS_S + 1)
        check('marks: once in a window', len(monitor.files()) == 2, monitor.files())
        counts, errors, output = monitor.end()
        check('marks: all are counted, each once', counts == (3, 2), (counts, output, errors))
        check('marks: whose it was', f'something: in process {subject.process.pid}' in errors, errors)
    finally:
        for each in subject, other:
            each.kill()
            os.unlink(each.path)


def slow():
    subject = Subject(SUBJECT, pause_us=20000)
    try:
        while not os.path.exists(subject.path):
            time.sleep(0.02)
        monitor = Monitor('--ring-slow', 'work=600', window=1)
        say(subject, 'b')
        check('slow: before it ends', monitor.wait(1) == 1, monitor.files())
        time.sleep(LOOKS_S + 1)
        say(subject, 'e')
        time.sleep(LOOKS_S)
        check('slow: told of once', len(monitor.files()) == 1, monitor.files())
        say(subject, 'b')
        time.sleep(0.8)
        say(subject, 'e')
        check('slow: in the next window again', monitor.wait(2) == 2, monitor.files())
        counts, errors, output = monitor.end()
        check('slow: counted', counts == (2, 0), (counts, output, errors))
        check('slow: how long it took', re.search(rf'work: took \S+ m?s in process {subject.process.pid}', errors), errors)
    finally:
        subject.kill()


def refusals():
    for arguments, why in ((['--ring-mark', 'a'], 'needs --rings'), (['--ring-slow', 'a=5'], 'needs --rings'),
                           (['--rings', 'r', '--ring-slow', 'a'], 'NAME=MS'), (['--rings', 'r', '--ring-slow', '=5'], 'NAME=MS'),
                           (['--rings', 'r', '--ring-slow', 'a=0'], 'NAME=MS'), (['--rings', 'r', '--ring-mark', ''], "a mark's name")):
        bad = subprocess.run([QUT, 'monitor', SEGMENTS, '--as', 'otlp', '--spool', 's', *arguments], capture_output=True, text=True, check=False)
        check(f'refused: {arguments}', bad.returncode == 2 and why in bad.stderr, bad.stderr)


def main():
    with folder() as work:
        os.chdir(work)
        os.mkdir(SEGMENTS)
        marks()
        slow()
        refusals()
    return end('monitor_triggers')


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What qut monitor takes itself, over many processes that store 19 samples a second each: its processor time as a share of one
core, the most memory that it had, bytes of a window. Fails above ROUGH times the share that is aimed at, and above the memory. Wants a quiet
machine, and minutes.
usage: monitor_cost.py QUT SUBJECT [PROCESSES [WINDOWS [SECONDS]]]"""
import os
import resource
import subprocess
import sys

from monitor_parts import SEGMENTS, Subject, read_balance
from upload_parts import check, end, folder

QUT, SUBJECT = map(os.path.abspath, sys.argv[1:3])
PROCESSES, WINDOWS, SECONDS = (int(word) for word in (sys.argv[3:] + ['200', '3', '60'][len(sys.argv) - 3:]))
SHARE_MOST, BYTES_MOST, ROUGH = 0.005, 64 << 20, 2


def main():
    with folder() as work:
        os.chdir(work)
        os.mkdir(SEGMENTS)
        subjects = []
        try:
            for _ in range(PROCESSES):
                subjects.append(Subject(SUBJECT, kibibytes=2048, threads=1, samples=1, pause_us=1000000 // 19, kind='cpu'))
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            result = subprocess.run([QUT, 'monitor', SEGMENTS, '--as', 'otlp', '--spool', 'spool', '--window', str(SECONDS),
                                     '--duration', str(SECONDS * WINDOWS)], capture_output=True, text=True, check=False)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        finally:
            for subject in subjects:
                subject.kill()
        balance = read_balance(result.stdout)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        share, memory = used / (SECONDS * WINDOWS), after.ru_maxrss * 1024
        sizes = [os.path.getsize(f'spool/{name}') for name in os.listdir('spool') if name.endswith('.otlp')]
        print(f'{PROCESSES} processes, {balance["windows"]} windows of {SECONDS} s: {100 * share:.2f} % of a core, {memory >> 20} MB; '
              f'{balance["told"]} samples, {sum(sizes) / max(len(sizes), 1):.0f} bytes a window; {result.stdout.splitlines()[1]}')
        check('its share of a core', share <= ROUGH * SHARE_MOST, share)
        check('its memory', memory <= BYTES_MOST, memory)
        check('nothing is lost', balance['overwritten'] + balance['lost'] == 0 and balance['told'] > 0, balance)
    return end('monitor_cost')


if __name__ == '__main__':
    sys.exit(main())

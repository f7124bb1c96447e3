#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of a program, one function of which takes four times as long, recorded and compared: what changed is told, sums
are those that go tool pprof gets from the same recordings, and a recording does not differ from itself.

    diff_test.py QUT PLAIN SLOWER
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

QUT, PLAIN, SLOWER = (os.path.abspath(path) for path in sys.argv[1:4])
ROUNDS = '1500'
failures = 0


def expect(what, is_good, why=''):
    global failures
    if not is_good:
        failures += 1
        print(f'FAILED: {what}: {why!r:.600}')


def run(*arguments, status=0):
    done = subprocess.run([QUT, *arguments], capture_output=True, text=True, check=False)
    expect(' '.join(arguments), done.returncode == status, (done.returncode, done.stdout[-300:], done.stderr[-300:]))
    return done.stdout


def diff(*arguments, status=0):
    text = run('diff', '--quiet', '--json', *arguments, status=status)
    return json.loads(text) if text.startswith('{') else None


def row(told, name):
    return next((one for one in told['functions'] if one['function'] == name), {})


def pprof_sums():
    """By function what go tool pprof says of the difference: self and total, in nanoseconds."""
    for name in 'a1', 'b1':
        run('export', '-f', 'pprof', '--kind', 'cpu', '--quiet', '-o', f'{name}.pb.gz', f'{name}.qtrace')
    top = subprocess.run(['go', 'tool', 'pprof', '-top', '-unit=ns', '-sample_index=cpu', '-nodefraction=0', '-nodecount=100000',
                          '-symbolize=none', '-diff_base=a1.pb.gz', 'b1.pb.gz'],
                         capture_output=True, text=True, check=False)
    expect('go tool pprof', top.returncode == 0, top.stderr)
    line = re.compile(r'^\s*(-?[0-9.]+)(?:ns)?\s+\S+\s+\S+\s+(-?[0-9.]+)(?:ns)?\s+\S+\s+(.*?)(?: \(inline\))?$', re.MULTILINE)
    return {name: (float(self), float(total)) for self, total, name in line.findall(top.stdout)}


def judged_by_pprof(told):
    if not shutil.which('go') or subprocess.run(['go', 'tool', 'pprof', '-h'], capture_output=True, check=False).returncode not in (0, 2):
        print('SKIP: go tool pprof, which would add the sums up')
        return
    sums = pprof_sums()
    own = told['a'][0]['own'] + told['b'][0]['own']  # what qut took itself is in no share of ours
    for name in 'first', 'second', 'third', 'outer', 'main':
        one = row(told, name)
        mine = [one[key][1] - one[key][0] for key in ('self_sum', 'total_sum')]
        for what, ours, theirs in zip(('self', 'total'), mine, sums.get(name, (0, 0))):
            expect(f'{name}: {what} as pprof has it', abs(ours - theirs) <= own + 1 + abs(ours) * 1e-6, (ours, theirs, own))


def changes():
    told = diff('a1.qtrace', 'b1.qtrace')
    for key in 'self', 'total':
        expect(f'first has more {key}', row(told, 'first')[key]['verdict'] == 'more', row(told, 'first'))
    expect('outer has no self time', row(told, 'outer')['self_sum'][0] * 20 < row(told, 'outer')['total_sum'][0], row(told, 'outer'))
    expect('second has no more of all', row(told, 'second')['self']['verdict'] != 'more', row(told, 'second'))
    expect('main has all', row(told, 'main')['total']['verdict'] == 'cannot tell', row(told, 'main'))
    expect('sums are those of the recordings', told['sum'] == [told['a'][0]['sum'], told['b'][0]['sum']], told['sum'])
    for key in 0, 1:
        all_self = sum(one['self_sum'][key] for one in told['functions'])
        expect('self times are all', all_self == told['sum'][key], (all_self, told['sum']))
    judged_by_pprof(told)
    diff('--check', 'a1.qtrace', 'b1.qtrace', status=1)
    by_amount = diff('--by', 'amount', 'a1.qtrace', 'b1.qtrace')
    expect('first took longer', row(by_amount, 'first')['self']['verdict'] == 'more', row(by_amount, 'first'))
    expect('second did what it did', row(by_amount, 'second')['self']['chance'] > 1e-6, row(by_amount, 'second'))
    text = run('diff', '--quiet', 'a1.qtrace', 'b1.qtrace')
    expect('text tells it', re.search(r'\+[0-9.]+\*.* first$', text, re.MULTILINE), text)


def no_changes():
    told = diff('--check', 'a1.qtrace', 'a1.qtrace')
    for one in told['functions']:
        expect('the same recording', one['self']['verdict'] == one['total']['verdict'] == 'cannot tell' and one['self']['change'] == 0, one)


def several():
    told = diff('a1.qtrace', 'a2.qtrace', '--', 'b1.qtrace', 'b1.qtrace')
    same = diff('--base', 'a1.qtrace', 'b1.qtrace', '--base', 'a2.qtrace', 'b1.qtrace')
    expect('both forms say the same', told == same)
    expect('two a side', [len(told[side]) for side in 'ab'] == [2, 2], told['a'])


def mistakes():
    for arguments in [], ['a1.qtrace'], ['a1.qtrace', 'b1.qtrace', 'a2.qtrace'], ['a1.qtrace', '--'], ['--', 'a1.qtrace'], \
            ['none', 'a1.qtrace'], ['--by', 'name', 'a1.qtrace', 'b1.qtrace'], ['--kind', 'alloc', 'a1.qtrace', 'b1.qtrace']:
        run('diff', *arguments, status=2)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for file, program in ('a1', PLAIN), ('a2', PLAIN), ('b1', SLOWER):
        run('record', '--quiet', '-o', f'{file}.qtrace', '--', program, ROUNDS)
    changes()
    no_changes()
    several()
    mistakes()
print('diff:', 'FAILED' if failures else 'passed')
sys.exit(failures != 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of several runs, put together: each one's share of the whole is what it has alone, to the nanosecond; a file is
one mapping wherever it lay and was loaded; the clocks of the day say what was when; and what cannot be one is refused.

    together_test.py QUT PROGRAM CALLS     CALLS: makes a trace of exact calls
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import export_formats as formats  # noqa: E402

QUT, PROGRAM, CALLS = (os.path.abspath(path) for path in sys.argv[1:4])
OPERANDS = {'one': 'one.qtrace', 'two': 'two.qtrace', 'web1,shop,7': 'many.qtrace,host=web1,service=shop,version=7'}
FILES = [operand.split(',')[0] for operand in OPERANDS.values()]
failures = 0


def expect(what, is_good, why=''):
    global failures
    if not is_good:
        failures += 1
        print(f'FAILED: {what}: {why!r:.600}')


def run(*arguments, status=0, says=''):
    done = subprocess.run([QUT, *arguments], capture_output=True, text=True, check=False)
    expect(' '.join(arguments), done.returncode == status, (done.returncode, done.stdout[-300:], done.stderr[-300:]))
    expect(f'{" ".join(arguments)}: says why', re.search(says, done.stderr), done.stderr)
    return done.stdout


def export(name, *operands, options=()):
    path = f'out.{name}'
    run('export', *operands, '-f', name, '-o', path, '--quiet', *options)
    return path


def record(name, *command):
    run('record', '--quiet', '-o', f'{name}.qtrace', '--', *command)


def stacks(*operands, options=()):
    return collections.Counter({frames: weight
                                for frames, weight in formats.read_collapsed(export('collapsed', *operands, options=options))})


# Alone, a trace of one process has no process in its stacks.
PROGRAMS = {'one.qtrace': os.path.basename(PROGRAM), 'two.qtrace': 'another'}


def check_sums(options=()):
    whole = stacks(*OPERANDS.values(), options=options)
    for label, file in zip(OPERANDS, FILES):
        alone = stacks(file, options=options)
        if file in PROGRAMS:
            alone = collections.Counter({(PROGRAMS[file], *frames): weight for frames, weight in alone.items()})
        suffix = '@' + label
        ours = collections.Counter({(frames[0].removesuffix(suffix), *frames[1:]): weight
                                    for frames, weight in whole.items() if frames[0].endswith(suffix)})
        expect(f'{label} {options}: there is something', sum(alone.values()) > 0)
        expect(f'{label} {options}: has in the whole what it has alone', ours == alone, (ours - alone, alone - ours))
    expect('and there is nothing else', all(frames[0].endswith(tuple('@' + label for label in OPERANDS)) for frames in whole),
           list(whole)[:3])


def check_files():
    alone = [formats.read_pprof(export('pprof', file)) for file in FILES]
    whole = formats.read_pprof(export('pprof', *OPERANDS.values()))
    build_id = next(one['build_id'] for one in alone[0]['mappings'].values() if one['file'] == PROGRAM)
    expect('the program has a build-id', build_id)
    of_copy = [one['file'] for one in alone[1]['mappings'].values() if one['build_id'] == build_id]
    expect('its copy has the same', len(of_copy) == 1 and of_copy[0] != PROGRAM, of_copy)
    expect('both are one file', sum(one['build_id'] == build_id for one in whole['mappings'].values()) == 1, whole['mappings'])
    places = [(whole['mappings'][one['mapping']]['build_id'], one['address']) for one in whole['locations'].values() if one['mapping']]
    expect('a place is one place', len(places) == len(set(places)), len(places) - len(set(places)))
    for index, (name, _) in enumerate(whole['types']):
        sums = [sum(sample['values'][index] for sample in profile['samples']) for profile in [whole, *alone]]
        expect(f'pprof: {name} add up', sums[0] == sum(sums[1:]), sums)


def info(file):
    return json.loads(run('info', '--json', file))


def first_events(*operands):
    """By process: when its first slice begins, in ns since the beginning of the trace."""
    with open(export('chrome', *operands), encoding='utf-8') as file:
        events = [event for event in json.load(file)['traceEvents'] if event['ph'] == 'B']
    first = {}
    for event in events:
        first[event['pid']] = min(round(event['ts'] * 1000), first.get(event['pid'], 1 << 62))
    return first


def check_clocks():
    began = {file: info(file)['realtime_ns'] for file in FILES}
    whole = first_events(*OPERANDS.values())
    for file in FILES:
        for pid, time_ns in first_events(file).items():
            wanted = time_ns + began[file] - min(began.values())
            expect(f'{file}: what was when', abs(whole[pid] - wanted) <= 1, (pid, whole[pid], wanted))


def counts_of(page, key='data-count'):
    found = collections.defaultdict(list)
    with open(page, encoding='utf-8') as file:
        for name, value in re.findall(rf'{key}="([a-z-]+)">([0-9,]+)<', file.read()):
            found[name].append(int(value.replace(',', '')))
    return found


def check_page():
    run('report', '--quiet', *OPERANDS.values(), '-o', 'whole.html')
    whole, table = counts_of('whole.html'), counts_of('whole.html', 'data-recording')
    alone = []
    for file in FILES:
        run('report', '--quiet', file, '-o', 'alone.html')
        alone.append(counts_of('alone.html'))
    expect('the page counts something', whole['present'][0] > 0, whole)
    for name in 'hits', 'stored', 'merged', 'present':
        expect(f'page: {name} add up', whole[name][0] == sum(one[name][0] for one in alone), (whole[name], alone))
    expect('its table has the account of each', table['hits'] == [one['hits'][0] for one in alone], table)
    expect('and so of samples', table['present'] == [one['present'][0] for one in alone], table)
    with open('whole.html', encoding='utf-8') as file:
        text = file.read()
    for part in '<h1 id="command">3 recordings</h1>', '<td>web1</td><td>shop</td><td>7</td><td>many.qtrace</td>':
        expect(f'page: {part}', part in text)
    with open('alone.html', encoding='utf-8') as file:
        expect('one alone has no such table', 'id="recordings"' not in file.read())
    run('report', '--quiet', 'one.qtrace,host=web3', '-o', 'labelled.html')
    with open('labelled.html', encoding='utf-8') as file:
        expect('a label alone', '<td>web3</td>' in file.read())
    run('report', '--quiet', 'one.qtrace,host=web3')
    expect('stands beside its trace', os.path.exists('one.html'))


def check_mistakes():
    for command in (('report', '-o', 'x.html'), ('export', '-f', 'collapsed', '-o', 'x'), ('export', '-f', 'otlp', '-o', 'x'), ('query', 'hottest')):
        for operand in 'one.qtrace,hosst=a', 'one.qtrace,hosst=a,service=b':
            run(*command, operand, status=2, says='"hosst=a" is no label: those are host=, service= and version=')
    run('report', 'one.qtrace,host=a,b', '-o', 'x.html', status=2, says='No such file')
    shutil.copy('one.qtrace', 'one.qtrace,hosst=a')
    run('report', '--quiet', 'one.qtrace,hosst=a', '-o', 'x.html')
    os.unlink('one.qtrace,hosst=a')
    run('report', 'one.qtrace', 'two.qtrace', status=2, says='report: needs -o OUT')
    run('export', '-f', 'collapsed', 'one.qtrace', 'two.qtrace', status=2, says='export: needs -o OUT')
    run('report', 'one.qtrace', 'two.qtrace', '-o', 'two.qtrace', status=2, says='two.qtrace: is one of the traces')
    shutil.copy('one.qtrace', 'copy.qtrace')
    run('report', 'one.qtrace', 'two.qtrace', 'copy.qtrace', '-o', 'no.html', status=2, says='copy.qtrace: .*same recording as one.qtrace')
    run('report', 'one.qtrace', 'absent.qtrace', '-o', 'no.html', status=2, says='absent.qtrace: .*No such file')
    run('report', 'one.qtrace', PROGRAM, '-o', 'no.html', status=2, says='^qut: ')
    for name in 'parquet', 'otlp':
        run('export', '-f', name, 'one.qtrace', 'two.qtrace', '-o', 'no.html', status=2, says='two.qtrace: one argument too many')
    with open('two.qtrace', 'rb') as whole, open('cut.qtrace', 'wb') as cut:
        cut.write(whole.read()[:-200])
    run('report', 'one.qtrace', 'cut.qtrace', '-o', 'cut.html', status=1, says='qut: cut.qtrace: ')
    expect('no page where there is none to make', not os.path.exists('no.html'))


def replayed(*operands):
    path = 'out.replay'
    run('export', *operands, '-f', 'replay', '-o', path, '--quiet')
    with open(path, encoding='utf-8') as file:
        return re.split(r'^# process ', file.read(), flags=re.MULTILINE)[1:]


# Of recordings that do not know the date all begin at the same moment: each call is where it is alone.
def check_calls():
    subprocess.run([CALLS, 'calls.qtrace'], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([CALLS, 'more.qtrace', 'a1 b2 /b2 c2 >d2 /d2 | x1 y2 /y2 /x1 | /a1', '2'], check=True, stdout=subprocess.DEVNULL)
    alone = {name: replayed(f'{name}.qtrace')[0].split('\n', 1) for name in ('calls', 'more')}
    for operands in (('calls.qtrace', 'more.qtrace'), ('more.qtrace', 'calls.qtrace'), ('one.qtrace', 'more.qtrace', 'calls.qtrace')):
        named = [operand.split('.')[0] for operand in operands if not operand.startswith('one')]
        expect(f'calls of {operands}', replayed(*operands) == [f'{alone[name][0]} of {name}\n{alone[name][1]}' for name in named],
               replayed(*operands))
    run('report', '--quiet', 'one.qtrace', 'calls.qtrace', 'more.qtrace', '-o', 'calls.html')
    for name in 'chrome', 'perfetto':
        export(name, 'one.qtrace', 'calls.qtrace', 'more.qtrace')
    with open('out.chrome', encoding='utf-8') as file:
        whole = collections.Counter(event['name'] for event in json.load(file)['traceEvents'] if event.get('cat') == 'call' and event['ph'] == 'B')
    expect('calls in a timeline', (whole['x'], whole['c'], whole['a']) == (1, 4, 4), whole)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.mkdir('elsewhere')
    shutil.copy(PROGRAM, 'elsewhere/another')
    record('one', PROGRAM, '200')
    record('two', os.path.abspath('elsewhere/another'), '300')
    record('many', 'sh', '-c', f'{PROGRAM} 100 & {PROGRAM} 150; wait')
    check_sums()
    check_files()
    check_clocks()
    check_page()
    check_mistakes()
    check_calls()
print('together:', 'FAILED' if failures else 'passed')
sys.exit(failures != 0)

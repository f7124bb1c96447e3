#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One recording, in each format and of each kind: kinds are never mixed, the same selection has the same sum in every
format, the agent's frames are not the program's, and pprof's addresses lead to the functions in the file.

    selection_test.py QUT KINDS
"""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import export_formats as formats  # noqa: E402

QUT, KINDS = (os.path.abspath(path) for path in sys.argv[1:3])
AGENTS = ('blocked_leave', 'blocked_enter', 'agent_', 'told_free', 'qut_')
failures = 0


def expect(what, is_good, why=''):
    global failures
    if not is_good:
        failures += 1
        print(f'FAILED: {what}: {why!r:.600}')


def run(*arguments, status=0):
    result = subprocess.run([QUT, *arguments], capture_output=True, text=True, check=False)
    expect(' '.join(arguments), result.returncode == status, (result.returncode, result.stderr))
    return result


def export(name, *options):
    path = f'out.{name}'
    run('export', 'kinds.qtrace', '-f', name, '-o', path, '--quiet', *options)
    return path


def stacks_of(*options):
    return collections.Counter({tuple(stack): weight
                                for stack, weight in formats.read_collapsed(export('collapsed', *options))})


def sums_of(*options):
    """The sum of a selection in each format that has one."""
    pprof = formats.read_pprof(export('pprof', *options))
    index = [name for name, _ in pprof['types']].index(pprof['default'])
    return {'collapsed': sum(stacks_of(*options).values()),
            'pprof': sum(sample['values'][index] for sample in pprof['samples']),
            'speedscope': sum(weight for profile in formats.read_speedscope(export('speedscope', *options))['profiles']
                              for _, weight in profile['samples']),
            'perf-script': sum(sample['period'] for sample in formats.read_perf_script(export('perf-script', *options))),
            'callgrind': formats.read_callgrind(export('callgrind', *options))['sum'],
            'firefox': sum(weight for thread in formats.read_firefox(export('firefox', *options))['threads']
                           for weight in thread['weights'])}


def check_kinds():
    wanted = {'cpu': ('compute', [('samples', 'count'), ('cpu', 'nanoseconds')]),
              'lock': ('hold', [('contentions', 'count'), ('delay', 'nanoseconds')]),
              'io': ('poll', [('calls', 'count'), ('delay', 'nanoseconds')]),
              'alloc': ('allocate', [('alloc_objects', 'count'), ('alloc_space', 'bytes')])}
    for kind, (function, types) in wanted.items():
        stacks = stacks_of('--kind', kind)
        expect(f'{kind}: its function', any(function in stack for stack in stacks), stacks)
        expect(f'{kind}: no frame of the agent', not [stack for stack in stacks if any(
            frame.startswith(AGENTS) for frame in stack)], stacks)
        profile = formats.read_pprof(export('pprof', '--kind', kind))
        expect(f'{kind}: types', profile['types'] == types, profile['types'])
        for others in {'cpu': ('poll', 'usleep', 'pthread_join'), 'lock': ('compute', 'poll', 'malloc'),
                       'io': ('compute', 'pthread_mutex_lock', 'malloc'), 'alloc': ('compute', 'poll')}[kind]:
            # What processor time was spent in a call that waits belongs there.
            share = sum(weight for stack, weight in stacks.items() if others in stack[-1:]) / sum(stacks.values())
            expect(f'{kind}: mixed with {others}', share < (0.2 if kind == 'cpu' else 1e-9), stacks)
    main = stacks_of()
    expect('the main kind is cpu', main == stacks_of('--kind', 'cpu'), main)
    expect('cpu: the sum is that of info', sum(main.values()) == json.loads(run('info', '--json', '--top', '1', 'kinds.qtrace').stdout)['top_sum'])
    profile = formats.read_pprof(export('pprof'))
    expect('cpu: period', profile['period_type'] == ('cpu', 'nanoseconds') and profile['period'] > 0, profile['period'])
    lock = stacks_of('--kind', 'lock')
    expect('lock: stacks end in what was called', {stack[-1] for stack in lock} <= {'pthread_mutex_lock', 'pthread_join'},
           lock)


def check_sums():
    for options in ([], ['--kind', 'cpu'], ['--kind', 'lock'], ['--kind', 'io'], ['--kind', 'alloc'],
                    ['--kind', 'other'], ['--kind', 'io', '--thread', '[a-z]*'], ['--kind', 'io', '--show-agent'],
                    ['--kind', 'io', '--between', '100ms,0.2s'], ['--kind', 'cpu', '--weight', 'samples']):
        sums = sums_of(*options)
        expect(f'sums of {options}', len(set(sums.values())) == 1 and sums['pprof'] > 0, sums)


def check_selections():
    whole = sum(stacks_of('--kind', 'io').values())
    tids = {sample['tid'] for sample in formats.read_perf_script(export('perf-script', '--kind', 'io'))}
    by_thread = [sum(stacks_of('--kind', 'io', '--thread', str(tid)).values()) for tid in tids]
    expect('its threads are the whole', len(tids) == 3 and sum(by_thread) == whole, (by_thread, whole))
    parts = [sum(stacks_of('--kind', 'io', '--between', part).values()) for part in ('0,150ms', '0.15s,')]
    expect('two parts of the time are the whole', abs(sum(parts) - whole) < 1000 and min(parts) > 0, (parts, whole))
    pids = {sample['pid'] for sample in formats.read_perf_script(export('perf-script'))}
    pid = str(*pids)
    expect('a pid', stacks_of('--pid', f'{pid},1') == stacks_of())
    for what in (['--kind', 'wall'], ['--thread', 'nobody'], ['--pid', '1'], ['--between', '1000s,1001s']):
        said = run('export', 'kinds.qtrace', '-f', 'collapsed', '-o', 'never', *what, status=2).stderr
        expect(f'{what} fits nothing', 'nothing in it fits' in said and 'lock (' in said and f'pid {pid}' in said and
               all(f'thread {tid} of' in said for tid in tids) and not os.path.exists('never'), said)
    for what in (['--kind', 'gold'], ['--pid', 'x'], ['--pid', '1,'], ['--between', '2s,1s'], ['--between', '1s'],
                 ['--no-names']):
        run('export', 'kinds.qtrace', '-f', 'collapsed', '-o', 'never', *what, status=2)
    events = formats.read_chrome(export('chrome', '--kind', 'lock'))[1]
    names = {event['name'] for event, _ in events if event['ph'] == 'b'}
    expect('chrome of one kind', names <= {'lock', 'wait', 'lock (did not end)', 'wait (did not end)'} and names, names)
    events = formats.read_chrome(export('chrome'))[1]
    names = {event['name'] for event, _ in events if event['ph'] == 'b'}
    expect('chrome of all', {'lock', 'poll', 'sleep'} <= names, names)


def check_firefox():
    profile = formats.read_firefox(export('firefox'))
    markers = collections.Counter(name for thread in profile['threads'] for name, _, _ in thread['markers'])
    expect('firefox: waits are markers', {'lock', 'poll', 'sleep'} <= set(markers), markers)
    categories = {name: category for thread in profile['threads'] for name, category in thread['categories']}
    expect('firefox: categories', categories['compute'] == 'User' and categories['start_thread'] == 'Native', categories)


def check_addresses():
    profile = formats.read_pprof(export('pprof', '--no-inlines'))
    mappings = profile['mappings']
    own = [(hex(place['address']), place['lines'][-1][0]) for place in profile['locations'].values()
           if place['mapping'] and mappings[place['mapping']]['file'] == KINDS]
    own = [(address, name) for address, name in own if name in ('compute', 'allocate', 'hold', 'work', 'main')]
    expect('places of the program', len(own) >= 3, own)
    found = subprocess.run(['addr2line', '-f', '-e', KINDS, *(address for address, _ in own)], capture_output=True,
                           text=True, check=True).stdout.splitlines()[::2]
    expect('addr2line says the same', [name for _, name in own] == found, (own, found))
    mapping = next(mapping for mapping in mappings.values() if mapping['file'] == KINDS)
    headers = subprocess.run(['readelf', '-lW', KINDS], capture_output=True, text=True, check=True).stdout
    loads = [[int(word, 16) for word in line.split()[1:6]] for line in headers.splitlines() if ' LOAD ' in line]
    expect('the offset is the file\'s', any(mapping['start'] - mapping['offset'] == vaddr - offset and
                                           vaddr <= mapping['start'] < vaddr + size
                                           for offset, vaddr, _, size, _ in loads), (mapping, loads))
    expect('has_functions', mapping['has_functions'] == 1, mapping)
    bare = formats.read_pprof(export('pprof', '--no-names'))
    left = [name for place in bare['locations'].values() if place['mapping'] for name, _ in place['lines']]
    expect('--no-names: no name of what lies in a file', not left, left)
    expect('--no-names: has_functions', not any(one['has_functions'] for one in bare['mappings'].values()))


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run('record', '--sync', 'all', '-o', 'kinds.qtrace', '--', KINDS)
        check_kinds()
        check_sums()
        check_selections()
        check_firefox()
        if shutil.which('addr2line') and shutil.which('readelf'):
            check_addresses()
        else:
            print('SKIP of addresses: no binutils')
        os.chdir('/')
    print('FAILED' if failures else 'one recording, every selection: ok')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())

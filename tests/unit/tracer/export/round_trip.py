#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The golden trace in each format and back: the stacks, counts, times and losses that were put in come out again.

    round_trip.py GOLDEN_EXPORT [FORMAT...]
    round_trip.py GOLDEN_EXPORT --random COUNT     the same of traces without sense
    round_trip.py GOLDEN_EXPORT --chain MAKER QUT  through a segment, closed and left behind, and the files of both
"""
import collections
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../support'))
import export_formats as formats  # noqa: E402
from export_formats import clean  # noqa: E402
from otlp_format import read_otlp  # noqa: E402

START_NS = 1000 * 10**9
SAMPLES, TIME, CPU, BYTES, BLOCKED, ALLOCATIONS, FAULTS = range(7)
WAITS = 'lock', 'wait', 'read', 'write', 'poll', 'sleep'
LOSSES = '135 of 303 samples are missing'
failures = []


def expect(what, got, wanted):
    if got != wanted:
        failures.append(what)
        print(f'FAILED: {what}\n  got    {got!r:.2000}\n  wanted {wanted!r:.2000}')


def expect_same_counts(what, got, wanted):
    """Of two Counters: says what is in only one of them."""
    got, wanted = +got, +wanted
    for key in sorted(set(got) | set(wanted), key=str):
        if got[key] != wanted[key]:
            expect(f'{what}: {key!r:.300}', got[key], wanted[key])


def outermost_first(sample, taken=''):
    return tuple(clean(name, taken) for name in reversed(sample['stack']))


def too_far(samples):
    """Ten times what usually lies between two samples, and no less than 20 ms (slices.h)."""
    distances = []
    for before, sample in zip(samples, samples[1:]):
        distance = max(sample['first_ns'] - before['last_ns'], 0)
        if sample['count'] > 1:
            distance = min(distance, (sample['last_ns'] - sample['first_ns']) // (sample['count'] - 1))
        distances.append(distance)
    return max(10 * sorted(distances)[len(distances) // 2], 20000000) if distances else 20000000


def weights_of(truth, tid):
    """(sample, [count, time, cpu, bytes, blocked, allocations, faults]) of a thread, from the description in weights.h."""
    samples = truth.of(tid)
    far = too_far(samples)
    gaps = sorted(gap['from_ns'] for gap in truth.gaps if gap['tid'] == tid)

    def begin(sample, least):
        return max(sample['first_ns'] - sample.get('extra1', 0), least)

    weighed, last_ns, carried = [], 0, 0
    has_ticks = any(sample['kind'] in ('cpu', 'wall') for sample in samples)
    for index, sample in enumerate(samples):
        before = samples[index - 1] if index else None
        start = begin(sample, last_ns)
        last_ns = max(last_ns, sample['last_ns'])  # runs of one level lie inside of runs of another
        end = begin(samples[index + 1], last_ns) if index + 1 < len(samples) else last_ns
        if end - last_ns > far:
            end = last_ns
        end = min([gap for gap in gaps if last_ns <= gap < end], default=end)
        first_run = min(sample['last_ns'] - sample['first_ns'], sample['cpu_ns']) if sample['count'] > 1 else 0
        cpu = max(sample['cpu_ns'] - before['cpu_ns'], 0) if before else first_run
        if has_ticks:  # a tick stands for all since the tick before, other samples for nothing
            carried += cpu
            cpu, carried = (carried, 0) if sample['kind'] in ('cpu', 'wall') else (0, carried)
        weighed.append((sample, [sample['count'], max(end - start, 0), cpu]))
    # The metric of allocated bytes: (8192 << i) - 4096 at the i-th of the allocations, of which the first has nothing
    # to be compared with.
    allocations = [entry for entry in weighed if entry[0]['kind'] == 'allocate']
    for entry in weighed:
        at = allocations.index(entry) if entry in allocations else 0
        entry[1].append((8192 << at) - (8192 << at - 1) if at else 0)
        entry[1].append(entry[0].get('extra1', 0) if entry[0]['kind'] in WAITS else 0)
        entry[1].extend([1, 3] if at else [0, 0])  # one allocation, three faults since the sample before
    return weighed


def all_weights(truth):
    for tid, name in truth.threads.items():
        for sample, weights in weights_of(truth, tid):
            yield tid, name, sample, weights


def check_collapsed(run, truth):
    for weight in range(7):
        wanted = collections.Counter()
        for _, name, sample, weights in all_weights(truth):
            wanted[(clean(name, ';'),) + outermost_first(sample, ';')] += weights[weight]
        lines = formats.read_collapsed(run('collapsed', '--weight', str(weight)))
        expect('collapsed: each stack has one line', len({stack for stack, _ in lines}), len(lines))
        expect('collapsed: sorted', [stack for stack, _ in lines],
               sorted((stack for stack, _ in lines), key=lambda stack: [name.encode() for name in stack]))
        expect_same_counts(f'collapsed, weight {weight}', collections.Counter(dict(lines)), wanted)
    one = formats.read_collapsed(run('collapsed', '--thread', '4243'))
    expect('collapsed: one thread', {stack[0] for stack, _ in one}, {clean(truth.threads[4243], ';')})


def check_pprof(run, truth):
    profile = formats.read_pprof(run('pprof'))
    expect('pprof: types', profile['types'], [('samples', 'count'), ('time', 'nanoseconds'), ('cpu', 'nanoseconds'),
                                              ('bytes', 'bytes'), ('blocked', 'nanoseconds'),
                                              ('allocations', 'count'), ('faults', 'count')])
    expect('pprof: default type', profile['default'], 'samples')
    wanted, got = collections.Counter(), collections.Counter()
    for tid, name, sample, weights in all_weights(truth):
        for index, value in enumerate(weights):
            stack = tuple(name or '[no name]' for name in sample['stack']) or ('[no frames]',)
            wanted[name, tid, sample['kind'], stack, index] += value
    for sample in profile['samples']:
        for index, value in enumerate(sample['values']):
            key = (sample['labels']['thread'], sample['labels']['tid'], sample['labels']['kind'],
                   tuple(sample['stack']), index)
            expect('pprof: a stack, thread and kind only once', key in got, False)
            got[key] += value
    expect_same_counts('pprof', got, wanted)
    expect('pprof: losses', profile['comments'][0], LOSSES)
    expect('pprof: duration', profile['duration_ns'], 10**9)
    files = {mapping['file']: mapping for mapping in profile['mappings'].values()}
    expect('pprof: build-id', files['/opt/app/golden']['build_id'], ''.join(f'{0xb0 + i:02x}' for i in range(16)))
    inlined = [place['lines'] for place in profile['locations'].values() if len(place['lines']) > 1]
    expect('pprof: inlined functions are lines of one location', inlined,
           [[('inner', 5), ('middle', 9), ('outer', 44)]])
    expect('pprof: a constructor of C++', [function['system_name'] for function in profile['functions'].values()
                                           if function['name'].startswith('b::b(')], ['_ZN1bC2ERKSt6vector'])
    one = formats.read_pprof(run('pprof', '--thread', '4194303'))
    expect('pprof: one thread', {sample['labels']['tid'] for sample in one['samples']}, {4194303})
    expect('pprof: one thread: no unused location but the one without frames', len(set(one['locations']) - one['used']), 1)


def check_otlp(run, truth):
    def stacks_of(profile):
        got = collections.Counter()
        for sample in profile['samples']:
            labels = sample['attributes']
            got[labels['thread.name'], labels['thread.id'], labels.get('qut.kind'), tuple(sample['stack'])] += sample['value']
        return got

    def wanted_of(weight):
        wanted = collections.Counter()
        for tid, name, sample, weights in all_weights(truth):
            stack = tuple(name or '[no name]' for name in sample['stack']) or ('[no frames]',)
            wanted[name, tid, sample['kind'], stack] += weights[weight]
        return wanted

    for weight in range(7):
        profile, = read_otlp(run('otlp', '--weight', str(weight)))
        expect_same_counts(f'otlp, weight {weight}', stacks_of(profile), wanted_of(weight))
    profile, = read_otlp(run('otlp'))
    expect('otlp: type', profile['type'], ('samples', 'count'))
    expect('otlp: times', (profile['duration_ns'], profile['time_ns']), (10**9, formats.read_pprof(run('pprof'))['time_ns']))
    expect('otlp: losses', profile['attributes']['qut.losses'].splitlines()[0], LOSSES)
    expect('otlp: the same again', read_otlp(run('otlp')), [profile])
    places = [place for sample in profile['samples'] for place in sample['locations']]
    files = {place['mapping']['file']: place['mapping'] for place in places if place['mapping']}
    expect('otlp: build-id', files['/opt/app/golden']['attributes'],
           {'process.executable.build_id.gnu': ''.join(f'{0xb0 + i:02x}' for i in range(16))})
    expect('otlp: inlined functions are lines of one location',
           {tuple((function['name'], line) for function, line in place['lines']) for place in places if len(place['lines']) > 1},
           {(('inner', 5), ('middle', 9), ('outer', 44))})
    cpu, = read_otlp(run('otlp', '--kind', 'cpu'))
    expect('otlp: a kind', (cpu['type'], cpu['period_type']), (('cpu', 'nanoseconds'), ('cpu', 'nanoseconds')))
    expect('otlp: a kind needs no attribute', any('qut.kind' in sample['attributes'] for sample in cpu['samples']), False)
    two = read_otlp(run('otlp', '--processes', '3'))  # the third one has no samples
    expect('otlp: processes', [(one['resource']['process.pid'], one['resource']['service.name']) for one in two],
           [(7001, 'part0'), (7002, 'part1')])
    expect_same_counts('otlp, processes', sum(map(stacks_of, two), collections.Counter()), wanted_of(SAMPLES))
    bare = [place for sample in read_otlp(run('otlp', '--no-names'))[0]['samples'] for place in sample['locations']]
    expect('otlp: no names of what lies in files', any(place['lines'] for place in bare if place['mapping']), False)
    expect('otlp: none at all', [one['samples'] for one in read_otlp(run('otlp', '--thread', 'nobody'))], [[]])


def check_states(what, stack, truth, tid, taken=None, drop=(), late=0):
    """Each sample's stack was there when it was taken."""
    def wanted_of(sample):
        names = reversed(sample['stack'])
        return tuple((name or '[no name]') if taken is None else clean(name, taken).replace('</', '<|' if taken == '#' else '</') for name in names)

    for sample in truth.of(tid):
        for time in {sample['first_ns'], sample['last_ns']}:
            states = [tuple(name for name in state if not name.startswith(drop)) if drop else state
                      for state in stack.at(time, late)]
            expect(f'{what}: stack of {tid} at {time}', wanted_of(sample) in states, True)


def check_speedscope(run, truth):
    data = formats.read_speedscope(run('speedscope'))
    with_samples = [tid for tid in truth.threads if truth.of(tid)]
    expect('speedscope: profiles', [profile['name'] for profile in data['profiles']],
           ['main (4242)', f'{truth.threads[4243]} (4243), 42 samples are missing',
            'thread 4194303 (4194303), 90 samples are missing'])
    expect('speedscope: losses are in its name', data['name'], f'golden.qtrace ({LOSSES})')
    for tid, profile in zip(with_samples, data['profiles']):
        expect('speedscope: unit', (profile['type'], profile['unit']), ('evented', 'nanoseconds'))
        check_states('speedscope', profile['stack'], truth, tid)
        expect(f'speedscope: time of {tid} in slices, and as weights', profile['stack'].busy,
               sum(weights[TIME] for _, weights in weights_of(truth, tid)))
    # Three requests with the same stack: marks cut it.
    main = data['profiles'][0]['stack']
    for mark in truth.marks:
        if mark['kind'] in (1, 2):
            expect(f"speedscope: cut at {mark['time_ns']}", () in main.at(mark['time_ns']), True)
    expect('speedscope: long without a sample: nothing is known', main.at(700000000), [()])
    # In a gap there is nothing.
    for gap in truth.gaps:
        stack = data['profiles'][with_samples.index(gap['tid'])]['stack']
        expect('speedscope: a gap is empty', stack.at((gap['from_ns'] + gap['to_ns']) // 2), [()])
    for weight, unit in ((SAMPLES, 'none'), (CPU, 'nanoseconds'), (BYTES, 'bytes')):
        data = formats.read_speedscope(run('speedscope', '--weight', str(weight)))
        for tid, profile in zip(with_samples, data['profiles']):
            expect('speedscope: unit of weights', (profile['type'], profile['unit']), ('sampled', unit))
            expect(f'speedscope: samples of {tid}', profile['samples'],
                   [(tuple(name or '[no name]' for name in reversed(sample['stack'])), weights[weight])
                    for sample, weights in weights_of(truth, tid) if weights[weight]])


def check_nanoscope(run, truth):
    most = max(truth.threads, key=lambda tid: len(truth.of(tid)))
    check_states('nanoscope', formats.read_nanoscope(run('nanoscope')), truth, most, '#')
    check_states('nanoscope', formats.read_nanoscope(run('nanoscope', '--thread', '4243')), truth, 4243, '#')


def check_chrome(run, truth):
    threads, others, other_data = formats.read_chrome(run('chrome'))
    for tid in truth.threads:
        check_states('chrome', threads[tid], truth, tid, drop=('mark ',), late=100)
    expect('chrome: losses', other_data['losses'][0], LOSSES)
    names = {event['tid']: event['args']['name'] for event, _ in others if event['name'] == 'thread_name'}
    expect('chrome: thread names', names, truth.threads)

    def of(phase, **wanted):
        return [(event, stack) for event, stack in others
                if event['ph'] == phase and all(event.get(key) == value for key, value in wanted.items())]

    # Requests lie around the slices of their time.
    for mark in truth.marks:
        if mark['kind'] == 1:
            inside = threads[mark['tid']].at(mark['time_ns'] + 4000000)
            expect('chrome: request', [state[:2] for state in inside], [('mark ' + mark['name'], '_start')])
    counters = [(event['time'], event['args']['value']) for event, _ in of('C', name='queue')]
    expect('chrome: counter', counters, [(mark['time_ns'], mark['id']) for mark in truth.marks if mark['kind'] == 3])
    faults = [event['args']['value'] for event, _ in of('C') if 'fault' in event['name']]
    expect('chrome: metric', faults, [100, 103, 106, 109, 112])
    (release, holder), = of('s')
    (acquire, waiter), = of('f')
    expect('chrome: flow', (release['id'], release['tid'], release['time'], acquire['id'], acquire['tid'],
                            acquire['time'], acquire['bp']),
           ('0xf10f', 4242, 130000000, '0xf10f', 4243, 131000000, 'e'))
    expect('chrome: flow: from the release to the wait', (holder[-1], waiter[-1]),
           ('pthread_mutex_unlock', 'pthread_mutex_lock'))
    blocked = [(event['tid'], event['time'], event['name']) for event, _ in of('b', cat='blocked')]
    expect('chrome: blocked', sorted(blocked), [(4242, 150000000, 'poll'), (4243, 101000000, 'lock')])
    gaps = [(event['tid'], event['time'], event['name'].split()[0]) for event, _ in of('b', cat='gap')]
    expect('chrome: gaps', gaps, [(gap['tid'], gap['from_ns'], str(gap['lost'])) for gap in truth.gaps])
    instants = [event for event, _ in of('i', cat='sample')]
    events = [sample for sample in truth.samples if sample['kind'] not in ('cpu', 'wall')]
    expect('chrome: samples that are events', collections.Counter((event['tid'], event['time'], event['name'])
                                                                  for event in instants),
           collections.Counter((sample['tid'], sample['first_ns'], sample['kind']) for sample in events))
    expect('chrome: result of a call', [event['args']['result'] for event in instants if event['name'] == 'poll'], [-2])


def check_perf_script(run, truth):
    got, wanted = collections.Counter(), collections.Counter()
    samples = formats.read_perf_script(run('perf-script'))
    expect('perf script: inlined functions', {place for sample in samples for place in sample['places'][:3]
                                              if place[0] in ('inner', 'middle', 'outer')},
           {('inner', 'inlined'), ('middle', 'inlined'), ('outer', '/opt/app/golden')})
    for sample in samples:
        expect('perf script: pid', sample['pid'], 4242)
        got[sample['name'], sample['tid'], sample['event'], sample['time_ns'] - START_NS, tuple(sample['stack'])] += 1
    for sample in truth.samples:
        steps = sample['count'] - 1
        for index in range(sample['count']):
            time = sample['first_ns'] + ((sample['last_ns'] - sample['first_ns']) * index // steps if steps else 0)
            time -= time % 1000
            stack = tuple(clean(name) for name in sample['stack']) or ('[no frames]',)
            wanted[clean(truth.threads[sample['tid']]).replace(' ', '_'), sample['tid'], sample['kind'].replace(' ', '_'), time, stack] += 1
    expect_same_counts('perf script', got, wanted)


def check_callgrind(run, truth):
    own, calls = collections.Counter(), collections.Counter()
    for sample in truth.samples:
        names = [clean(name) for name in sample['stack']] or ['[no frames]']
        own[names[0]] += sample['count']
        for edge in {(caller, called) for called, caller in zip(names, names[1:]) if called != caller}:
            calls[edge] += sample['count']
    read = formats.read_callgrind(run('callgrind'))
    expect_same_counts('callgrind: own', collections.Counter(read['self']), own)
    expect_same_counts('callgrind: calls', collections.Counter(read['calls']), calls)


def check_firefox(run, truth):
    got, wanted = collections.Counter(), collections.Counter()
    profile = formats.read_firefox(run('firefox'))
    for thread in profile['threads']:
        for stack, weight in zip(thread['stacks'], thread['weights']):
            got[thread['name'], thread['tid'], stack] += weight
    for sample in truth.samples:
        wanted[truth.threads[sample['tid']], sample['tid'], tuple(reversed(sample['stack'])) or ('[no frames]',)] += sample['count']
    expect_same_counts('firefox', got, wanted)
    expect('firefox: waits', sorted((name, start) for thread in profile['threads'] for name, start, _ in thread['markers']),
           [('lock', 101.0), ('poll', 150.0)])
    losses = [entry['value'] for entry in profile['meta']['extra'][0]['entries'] if entry['label'] == 'Missing']
    expect('firefox: losses', losses[0], LOSSES)


def check_random(run, truth):
    """Traces without sense, of two threads with one number: all samples are there, and slices are nested."""
    collapsed, profile, from_profile = collections.Counter(), collections.Counter(), collections.Counter()
    for sample in truth.samples:
        collapsed[(clean(truth.threads[sample['tid']], ';'),) + outermost_first(sample, ';')] += sample['count']
        profile[sample['tid'], sample['kind'], tuple(sample['stack']) or ('[no frames]',)] += sample['count']
    expect_same_counts('random, collapsed', collections.Counter(dict(formats.read_collapsed(run('collapsed')))), collapsed)
    for sample in formats.read_pprof(run('pprof'))['samples']:
        from_profile[sample['labels']['tid'], sample['labels']['kind'], tuple(sample['stack'])] += sample['values'][0]
    expect_same_counts('random, pprof', from_profile, profile)
    from_request = collections.Counter()
    for sample in read_otlp(run('otlp'))[0]['samples']:
        from_request[sample['attributes']['thread.id'], sample['attributes']['qut.kind'], tuple(sample['stack'])] += sample['value']
    expect_same_counts('random, otlp', from_request, profile)
    expect('random, perf script', len(formats.read_perf_script(run('perf-script'))),
           sum(sample['count'] for sample in truth.samples))
    formats.read_speedscope(run('speedscope'))
    formats.read_nanoscope(run('nanoscope'))


CHECKS = {'collapsed': check_collapsed, 'pprof': check_pprof, 'otlp': check_otlp, 'speedscope': check_speedscope,
          'nanoscope': check_nanoscope, 'chrome': check_chrome, 'perf-script': check_perf_script, 'callgrind': check_callgrind,
          'firefox': check_firefox}


def check_file(run, truth):
    """A trace that was read: stacks, counts, weights and times are those of the records, whatever they are."""
    check_random(run, truth)
    for weight in SAMPLES, TIME, CPU:  # bytes: in a segment each sample has metrics
        wanted = collections.Counter()
        for _, name, sample, weights in all_weights(truth):
            wanted[(clean(name, ';'),) + outermost_first(sample, ';')] += weights[weight]
        expect_same_counts(f'of a file, weight {weight}',
                           collections.Counter(dict(formats.read_collapsed(run('collapsed', '--weight', str(weight))))),
                           wanted)
    with_samples = [tid for tid in truth.threads if truth.of(tid)]
    for tid in with_samples:
        stacks = {'speedscope': formats.read_speedscope(run('speedscope')),
                  'chrome': formats.read_chrome(run('chrome'))}
        check_states('speedscope of a file',
                     stacks['speedscope']['profiles'][with_samples.index(tid)]['stack'], truth, tid)
        check_states('chrome of a file', stacks['chrome'][0][tid], truth, tid, drop=('mark ',), late=1000)
    most = max(truth.threads, key=lambda tid: len(truth.of(tid)))
    check_states('nanoscope of a file', formats.read_nanoscope(run('nanoscope')), truth, most, '#')


def check_chain(run, maker, qut, folder):
    """Put in by the real writer, collected, read: in each format as it was put in."""
    for how in 'close', 'leave':
        segment = f'/dev/shm/qut-round-trip.{os.getpid()}.{how}'
        collected = os.path.join(folder, how + '.qtrace')
        try:
            subprocess.run([maker, segment, how], check=True)
            subprocess.run([qut, 'collect', '--quiet', segment, '-o', collected], check=True)
            for file in segment, collected:
                truth = formats.Truth(run('truth', '--file', file))
                expect('samples of the golden trace', sum(sample['count'] for sample in truth.samples), 167)
                check_file(lambda format_name, *more: run(format_name, '--file', file, *more), truth)
                if failures:
                    print(f'of {file}')
                    return
        finally:
            if os.path.exists(segment):
                os.unlink(segment)


def main():
    program, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:] or list(CHECKS)
    with tempfile.TemporaryDirectory() as folder:
        def run(format_name, *arguments):
            path = os.path.join(folder, 'out')
            subprocess.run([program, format_name, path, *arguments], check=True)
            expect(f'{format_name}: nothing is left beside it', {name for name in os.listdir(folder) if name.startswith('out')}, {'out'})
            return path

        truth_path = os.path.join(folder, 'truth')
        if wanted[0] == '--random':
            for seed in range(1, int(wanted[1]) + 1):
                more = ['--random', str(seed)]
                subprocess.run([program, 'truth', truth_path, *more], check=True)
                check_random(lambda format_name, *arguments: run(format_name, *arguments, *more),
                             formats.Truth(truth_path))
                if failures:
                    print(f'with --random {seed}')
                    return 1
            print(f'{wanted[1]} random traces: ok')
            return 0
        if wanted[0] == '--chain':
            check_chain(run, *(os.path.abspath(path) for path in wanted[1:3]), folder)
            print('through segments and files: ' + ('FAILED' if failures else 'ok'))
            return 1 if failures else 0
        subprocess.run([program, 'truth', truth_path], check=True)
        truth = formats.Truth(truth_path)
        for name in wanted:
            before = len(failures)
            CHECKS[name](run, truth)
            print(f"{name}: {'ok' if len(failures) == before else 'FAILED'}")
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())

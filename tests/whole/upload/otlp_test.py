#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What qut upload, qut export and qut monitor write as OTLP, decoded by protobuf's own reader: no unknown field, tables without
orphans, hardly longer than protobuf writes the same. usage: otlp_test.py QUT GOLDEN_MAKER GOLDEN_EXPORT SUBJECT"""
import gzip
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import otlp_judge  # noqa: E402
from monitor_parts import SEGMENTS, Subject, read_balance  # noqa: E402
from otlp_format import read_otlp_bytes  # noqa: E402
from upload_parts import Receiver, check, end, folder, make_trace  # noqa: E402

QUT, GOLDEN_MAKER, GOLDEN_EXPORT, SUBJECT = map(os.path.abspath, sys.argv[1:5])
LONGER_MOST = 1.02
OFFICIAL = os.environ.get('QUT_OTLP_PROTO')


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


def is_in_order(request):
    """Stacks by their frames, the outermost first; locations of a file by their addresses; of a thread the largest sample first. What
    resembles its neighbours packs. Halves have the order in which they need things."""
    tables = request.dictionary
    stacks = [list(reversed(stack.location_indices)) for stack in tables.stack_table[1:]]
    places = [(place.mapping_index, place.address) for place in tables.location_table[1:] if place.mapping_index]
    samples = [(tuple(sample.attribute_indices), -sample.values[0]) for profile in otlp_judge.profiles_of(request) for sample in profile.samples]
    return stacks == sorted(stacks) and places == sorted(places) and all(
        after >= before for before, after in zip(samples, samples[1:]) if after[0] == before[0])


class Judge:
    def __init__(self, request_type):
        self.request_type, self.seen, self.worst = request_type, 0, 0

    def look(self, what, path):
        """The request in a file, or None where it is not right."""
        with open(path, 'rb') as file:
            data = gzip.decompress(file.read())
        try:
            request = otlp_judge.judge(self.request_type, data)
            by_hand = read_otlp_bytes(data)
        except Exception as error:  # pylint: disable=broad-except
            check(what, False, f'{type(error).__name__}: {error}')
            return None
        here = [(profile.profile_id, profile.time_unix_nano, profile.duration_nano, len(profile.samples),
                 sum(value for sample in profile.samples for value in sample.values)) for profile in otlp_judge.profiles_of(request)]
        check(f'{what}: both readers read the same', here == [(profile['id'], profile['time_ns'], profile['duration_ns'], len(profile['samples']),
              sum(sample['value'] for sample in profile['samples'])) for profile in by_hand], here)
        check(f'{what}: tables and samples have their order', 'halves' in what or is_in_order(request))
        size = len(request.SerializeToString(deterministic=True))
        self.worst = max(self.worst, len(data) / size)
        check(f'{what}: at most {LONGER_MOST} times what protobuf writes', len(data) <= LONGER_MOST * size, (len(data), size))
        self.seen += 1
        return request


def definitions():
    """Ours, held against the official one where that is given; what the others are judged by."""
    ours = otlp_judge.compiled(otlp_judge.OURS)
    shutil.copytree(otlp_judge.OURS, 'changed')
    path = 'changed/opentelemetry/proto/profiles/v1development/profiles.proto'
    with open(path, encoding='ascii') as file:
        text = file.read()
    for old, new in (('stack_index = 1', 'stack_index = 9'), ('repeated int64 values', 'int64 values'), ('fixed64 time_', 'uint64 time_'),
                     ('  string schema_url = 3;\n}\n\nmessage Profile ', '}\n\nmessage Profile ')):
        with open(path, 'w', encoding='ascii') as file:
            file.write(text.replace(old, new))
        check(f'a definition with {new!r} is another one', len(otlp_judge.differences(ours, otlp_judge.compiled('changed'))) == 1)
    if not OFFICIAL:
        return ours
    official = otlp_judge.compiled(OFFICIAL)
    differences = otlp_judge.differences(ours, official)
    check('our definition is the official one', not differences, '\n'.join(differences))
    return official


def sees_what_is_wrong(request_type, good):
    """Each of these in a request that is right has to be seen: else the judge sees nothing."""
    def sample(request):
        return otlp_judge.profiles_of(request)[0].samples[0]

    def unknown(request):
        sample(request).MergeFromString(b'\x98\x06\x01')  # field 99

    def twice(request):
        otlp_judge.profiles_of(request)[0].samples.add().CopyFrom(sample(request))

    wrong = {
        'a field that nobody knows': unknown,
        'a sample twice': twice,
        'a stack that is none': lambda request: setattr(sample(request), 'stack_index', 1 << 20),
        'an orphan': lambda request: request.dictionary.string_table.append('nobody asks for it'),
        'an entry twice': lambda request: request.dictionary.location_table.append(request.dictionary.location_table[1]),
        'something as entry 0': lambda request: setattr(request.dictionary.mapping_table[0], 'file_offset', 1),
        'an id that is none': lambda request: setattr(otlp_judge.profiles_of(request)[0], 'profile_id', bytes(16)),
        'nothing in a list': lambda request: sample(request).attribute_indices.append(0),
        'an attribute twice': lambda request: sample(request).attribute_indices.append(sample(request).attribute_indices[0]),
        'a sample of nothing': lambda request: sample(request).ClearField('values'),
    }
    for what, spoil in wrong.items():
        request = request_type()
        request.CopyFrom(good)
        spoil(request)
        try:
            otlp_judge.judge(request_type, request.SerializeToString())
            check(f'the judge sees {what}', False)
        except AssertionError:
            pass


def waiting(spool):
    return sorted(os.path.join(spool, name) for name in os.listdir(spool) if name.endswith('.otlp'))


def exports(judge):
    """Samples in all of their variety: the golden trace in each choice, traces without sense, a large one."""
    small = None
    for number, words in enumerate(('', '--no-names', '--kind cpu', '--thread nobody', '--processes 3', '--damage', '--weight 3',
                                    *(f'--random {seed}' for seed in range(12)), '--large 20000 8 20')):
        path = f'golden{number}.gz'
        made = run(GOLDEN_EXPORT, 'otlp', path, *words.split())
        check(f'golden {words}: made', made.returncode == 0, made.stderr)
        request = judge.look(f'golden {words}', path)
        small = small or request
    check('a large one is large', os.path.getsize(path) > 100 << 10, os.path.getsize(path))
    export = run(QUT, 'export', 'golden.qtrace,service=shop,version=2.1,host=web1', '-f', 'otlp', '-o', 'export.gz')
    request = export.returncode == 0 and judge.look('export', 'export.gz')
    check('export: labels', request and {pair.key: pair.value.string_value for pair in request.resource_profiles[0].resource.attributes}.items() >=
          {'service.name': 'shop', 'service.version': '2.1', 'host.name': 'web1'}.items(), export.stderr)
    return small


def uploads(judge):
    """As they wait in the spool: whole, of a part of the time each, and of what was too large, halves."""
    for what, words in (('whole', ()), ('without names', ('--no-names',)), ('parts of the time', ('--max-bytes', '2500'))):
        spool = what.replace(' ', '-')
        put = run(QUT, 'upload', 'golden.qtrace,service=shop', '--as', 'otlp', '--spool', spool, '--quiet', *words)
        paths = waiting(spool)
        check(f'upload, {what}: they wait', put.returncode == 0 and len(paths) >= (2 if 'parts' in what else 1), put)
        for path in paths:
            judge.look(f'upload, {what}', path)
    receiver = Receiver('receiver')
    try:
        receiver.script('413', '413', '413', *['503'] * 20)
        split = run(QUT, 'upload', 'golden.qtrace,service=shop', '--as', 'otlp', '--spool', 'halves', '--quiet', '--to', receiver.url, '--patience', '0')
    finally:
        receiver.kill()
    paths = waiting('halves')
    check('upload, halves: they wait', 'split in two: ' in split.stdout and len(paths) > 1, split)
    whole = waiting('whole')[0]
    total = 0
    for path in paths:
        request = judge.look('upload, halves', path)
        total += request_sum(request) if request else 0
    check('upload, halves: no sample is lost', total == request_sum(judge.look('upload, whole', whole)), total)


def times_by_thread(request):
    times = {}
    for profile in otlp_judge.profiles_of(request):
        for sample in profile.samples:
            times.setdefault(tuple(request.dictionary.attribute_table[index].value.SerializeToString() for index in sample.attribute_indices),
                             []).append(sample.values[0])
    return times


def grains(judge, exact):
    """What is sent has whole parts of a tick, a 128th or less, but for what is shorter and one sample of each thread: their sums are
    exact."""
    grain = 1 << ((otlp_judge.profiles_of(exact)[0].period // 128).bit_length() - 1)
    put = run(QUT, 'upload', 'python.qtrace', '--as', 'otlp', '--spool', 'grains', '--quiet')
    paths = waiting('grains')
    sent = judge.look('grains', paths[0]) if len(paths) == 1 else None
    check('grains: it waits', sent, put)
    sent, exact = times_by_thread(sent), times_by_thread(exact)
    check('grains: the sums of threads are exact', {thread: sum(times) for thread, times in sent.items()} ==
          {thread: sum(times) for thread, times in exact.items()}, (sent, exact))
    odd = [time for times in sent.values() for time in times if time % grain and time >= grain]
    check('grains: times are whole ones', len(odd) <= len(sent) and any(time % grain for times in exact.values() for time in times),
          (odd, len(sent)))


def functions_without_addresses(judge):
    """A function of Python is a number to the walk: that is no address, and all of its lines are one place."""
    code = '''
import time
def spin(until):
    done = 0
    while time.process_time() < until:
        done += 1
        done -= 1
        done *= 1
    return done
spin(0.4)'''
    recorded = run(QUT, 'record', '-q', '-o', 'python.qtrace', '--', sys.executable, '-c', code)
    run(QUT, 'export', 'python.qtrace', '-f', 'otlp', '-o', 'python.gz')
    request = recorded.returncode in (0, 1) and judge.look('python', 'python.gz')
    tables = request.dictionary if request else None
    places = [place for place in tables.location_table for line in place.lines
              if tables.string_table[tables.function_table[line.function_index].name_strindex] == 'spin'] if request else []
    check('python: a function is one place, without an address', [(place.address, place.mapping_index) for place in places] == [(0, 0)],
          (recorded, places))
    if request:
        grains(judge, request)


def request_sum(request):
    return sum(value for profile in otlp_judge.profiles_of(request) for sample in profile.samples for value in sample.values)


def windows(judge):
    """Of a host with several processes, one of which forks."""
    os.mkdir(SEGMENTS)
    subjects = [Subject(SUBJECT, how) for how in ('close', 'leave', 'fork')]
    good, seen = 0, set()
    try:
        until = time.monotonic() + 60
        while good < 2 and time.monotonic() < until:
            time.sleep(0.1)
            result = run(QUT, 'monitor', SEGMENTS, '--as', 'otlp', '--spool', 'host', '--once', '--names')
            check('monitor: it tells', read_balance(result.stdout)['told'] > 0, result)
            for path in set(waiting('host')) - seen:
                request = judge.look('monitor', path)
                good += request is not None and len(otlp_judge.profiles_of(request)) >= len(subjects)
                seen.add(path)
    finally:
        for subject in subjects:
            subject.kill()
    check('monitor: windows of several processes', good >= 2, (good, len(seen)))


def main():
    absent = otlp_judge.missing()
    if absent:
        print(f'SKIP: {absent} is not installed')
        return 77
    with folder() as work:
        os.chdir(work)
        definition = definitions()
        judge = Judge(otlp_judge.request_class(definition))
        make_trace(QUT, GOLDEN_MAKER)
        small = exports(judge)
        if small:
            sees_what_is_wrong(judge.request_type, small)
        functions_without_addresses(judge)
        uploads(judge)
        windows(judge)
        print(f'{judge.seen} requests by {"the official definition" if OFFICIAL else "our definition"}: at most {judge.worst:.4f} times as long as '
              'protobuf writes them')
    return end('otlp')


if __name__ == '__main__':
    sys.exit(main())

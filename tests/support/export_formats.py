# SPDX-License-Identifier: Apache-2.0
"""Readers of the formats, written from their descriptions and not from our writers; strict: what they do not know is
an error."""
import gzip
import json
import re
import struct


def clean(text, taken=''):
    """A name as formats made of lines have it."""
    text = text or '[no name]'
    text = ''.join(' ' if ord(c) < 0x20 or ord(c) == 0x7f else c for c in text)
    return text.replace(';', ':') if taken == ';' else text.replace('#', '.') if taken == '#' else text


class Truth:
    """What golden_export says is in the trace."""

    def __init__(self, path):
        self.threads, self.samples, self.marks, self.gaps = {}, [], [], []
        with open(path, encoding='utf-8') as file:
            for line in file:
                record = json.loads(line)
                what = record.pop('what')
                if what == 'thread':
                    self.threads[record['tid']] = record['name'] or f"thread {record['tid']}"
                else:
                    {'sample': self.samples, 'mark': self.marks, 'gap': self.gaps}[what].append(record)

    def of(self, tid):
        return [sample for sample in self.samples if sample['tid'] == tid]


def read_collapsed(path):
    """[(frames, outermost first, weight)], in the order of the lines."""
    lines = []
    with open(path, 'rb') as file:
        data = file.read().decode('utf-8', 'strict')
    assert not data or data.endswith('\n'), 'ends in the middle of a line'
    for line in data[:-1].split('\n') if data else []:
        stack, weight = re.fullmatch(r'(.+) ([1-9][0-9]*)', line).groups()
        frames = stack.split(';')
        assert all(frames), f'an empty frame: {line}'
        lines.append((tuple(frames), int(weight)))
    return lines


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            assert shift <= 70
            return value, at


def message(data):
    """{field: [values]}; numbers as int, the rest as bytes."""
    fields, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = struct.unpack_from('<Q', data, at)[0], at + 8
        else:
            assert tag & 7 == 2, f'wire type {tag & 7}'
            size, at = varint(data, at)
            value = data[at:at + size]
            assert len(value) == size, 'cut off'
            at += size
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def packed(values):
    numbers = []
    for value in values:
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            numbers.append(number)
    return numbers


def read_pprof(path):
    """The profile, with strings in the place of their numbers and stacks (innermost first) of functions' names."""
    with open(path, 'rb') as file:
        return read_pprof_bytes(gzip.decompress(file.read()))


def read_pprof_bytes(data):
    fields = message(data)
    assert set(fields) <= {1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14}, set(fields)
    strings = [text.decode('utf-8', 'strict') for text in fields[6]]
    assert strings[0] == ''

    def one(part, field, default=0):
        assert len(part.get(field, [])) <= 1
        return part.get(field, [default])[0]

    functions = {}
    for part in map(message, fields[5]):
        assert one(part, 1) not in functions and one(part, 1) > 0
        functions[one(part, 1)] = {'name': strings[one(part, 2)], 'system_name': strings[one(part, 3)],
                                   'file': strings[one(part, 4)]}
    mappings = {}
    for part in map(message, fields.get(3, [])):
        assert one(part, 1) not in mappings and one(part, 1) > 0
        mappings[one(part, 1)] = {'start': one(part, 2), 'limit': one(part, 3), 'offset': one(part, 4),
                                  'file': strings[one(part, 5)], 'build_id': strings[one(part, 6)],
                                  'has_functions': one(part, 7)}
    locations = {}
    for part in map(message, fields[4]):
        lines = [message(line) for line in part.get(4, [])]
        mapping, address = one(part, 2), one(part, 3)
        assert one(part, 1) not in locations and one(part, 1) > 0
        assert not mapping or mappings[mapping]['start'] <= address < mappings[mapping]['limit']
        locations[one(part, 1)] = {'mapping': mapping, 'address': address,
                                   'lines': [(functions[one(line, 1)]['name'], one(line, 2)) for line in lines]}
    types = [(strings[one(message(part), 1)], strings[one(message(part), 2)]) for part in fields[1]]
    samples = []
    for part in map(message, fields[2]):
        labels = {}
        for label in map(message, part[3]):
            labels[strings[one(label, 1)]] = strings[one(label, 2)] if 2 in label else one(label, 3)
        values = packed(part[2])
        assert len(values) == len(types)
        frames = [locations[number] for number in packed(part[1])]
        samples.append({'values': values, 'labels': labels,
                        'stack': [name for frame in frames for name, _ in frame['lines']],
                        'lines': [line for frame in frames for line in frame['lines']]})
    used = {number for part in map(message, fields[2]) for number in packed(part[1])}
    return {'types': types, 'samples': samples, 'mappings': mappings, 'locations': locations, 'functions': functions,
            'used': used, 'comments': [strings[number] for number in fields.get(13, [])],
            'period_type': tuple(strings[one(message(part), field)] for part in fields.get(11, [])
                                 for field in (1, 2)),
            'period': one(fields, 12), 'time_ns': one(fields, 9), 'duration_ns': one(fields, 10), 'default': strings[one(fields, 14)]}


class Stack:
    """Slices as events, replayed: the stacks that there were at each time, outermost first."""

    def __init__(self):
        self.now, self.open, self.states, self.entered = 0, [], {}, 0
        self.busy = 0  # time with any

    def go_to(self, time):
        assert time >= self.now, 'time goes back'
        self.busy += time - self.now if self.open else 0
        self.now = time
        self.states.setdefault(time, [tuple(self.open)])

    def keep(self):
        self.states[self.now].append(tuple(self.open))

    def enter(self, time, name):
        self.go_to(time)
        self.open.append(name)
        self.entered += 1
        self.keep()

    def leave(self, time, name=None):
        self.go_to(time)
        left = self.open.pop()
        assert name is None or name == left
        self.keep()

    def at(self, time, late=0):
        """All stacks that were there at a time, or up to `late` after it."""
        found = [state for at in range(time, time + late + 1) for state in self.states.get(at, [])]
        if found:
            return found
        before = [at for at in self.states if at < time]
        return [self.states[max(before)][-1]] if before else [()]


def read_speedscope(path):
    with open(path, encoding='utf-8') as file:
        data = json.load(file)
    assert data['$schema'] == 'https://www.speedscope.app/file-format-schema.json'
    frames = [frame['name'] for frame in data['shared']['frames']]
    profiles = []
    for profile in data['profiles']:
        kept = {'name': profile['name'], 'unit': profile['unit'], 'type': profile['type']}
        if profile['type'] == 'evented':
            stack = Stack()
            for event in profile['events']:
                name = frames[event['frame']]
                if event['type'] == 'O':
                    stack.enter(event['at'], name)
                else:
                    assert event['type'] == 'C'
                    stack.leave(event['at'], name)
            assert not stack.open and profile['startValue'] == 0 and profile['endValue'] == stack.now
            kept['stack'] = stack
        else:
            assert profile['type'] == 'sampled' and len(profile['samples']) == len(profile['weights'])
            assert sum(profile['weights']) == profile['endValue']
            kept['samples'] = [(tuple(frames[frame] for frame in sample), weight)
                               for sample, weight in zip(profile['samples'], profile['weights'])]
        profiles.append(kept)
    return {'name': data['name'], 'profiles': profiles, 'active': data['activeProfileIndex']}


def read_nanoscope(path):
    stack = Stack()
    with open(path, encoding='utf-8') as file:
        for line in file:
            time, entered = re.fullmatch(r'([0-9]+):(?:\+(.+)|POP)\n', line).groups()
            if entered is None:
                stack.leave(int(time))
            else:
                assert '#' not in entered
                stack.enter(int(time), entered)
    assert not stack.open
    return stack


def read_chrome(path):
    """Slices by thread, and all other events."""
    with open(path, encoding='utf-8') as file:
        data = json.load(file)
    threads, others, opened = {}, [], {}
    for event in data['traceEvents']:
        stack = threads.setdefault(event['tid'], Stack())
        time = round(event['ts'] * 1000)
        if event['ph'] == 'B':
            stack.enter(time, ('mark ' if event.get('cat') == 'mark' else '') + event['name'])
        elif event['ph'] == 'E':
            stack.leave(time, ('mark ' if stack.open[-1].startswith('mark ') else '') + event['name'])
        else:
            assert event['ph'] in 'MiCbestf', event
            if event['ph'] == 'b':
                opened[event['cat'], event['id']] = event
            elif event['ph'] == 'e':
                assert opened.pop((event['cat'], event['id']))['ts'] <= event['ts']
            others.append((dict(event, time=time), tuple(stack.open)))
    assert not opened and not any(stack.open for stack in threads.values())
    return threads, others, data['otherData']


def read_perf_script(path):
    """[{name, pid, tid, time_ns, period, event, stack (innermost first)}]"""
    samples = []
    with open(path, encoding='utf-8') as file:
        text = file.read()
    assert text.endswith('\n\n')
    for block in text[:-2].split('\n\n'):
        head, *lines = block.split('\n')
        name, pid, tid, seconds, fraction, period, event = re.fullmatch(
            r'(\S+) (\d+)/(\d+) (\d+)\.(\d{6}): +(\d+) sample: kind=(\S+)', head).groups()
        stack = [re.fullmatch(r'\t *([0-9a-f]+) (.+) \((\S+)\)', line).groups() for line in lines]
        assert stack
        samples.append({'name': name, 'pid': int(pid), 'tid': int(tid), 'period': int(period), 'event': event,
                        'time_ns': int(seconds) * 10**9 + int(fraction) * 1000, 'stack': [frame[1] for frame in stack],
                        'places': [(frame[1], frame[2]) for frame in stack]})
    return samples


def read_callgrind(path):
    """{'sum', 'self': {function: cost}, 'calls': {(caller, called): cost}}: what callgrind's manual allows, as far as we
    write it."""
    names, own, calls = {}, {}, {}
    with open(path, encoding='utf-8') as file:
        lines = file.read().split('\n')
    assert lines[0] == '# callgrind format' and lines[1] == 'version: 1' and lines[-1] == ''
    head = {}
    body = lines.index('')
    for line in lines[2:body]:
        key, value = line.split(': ', 1)
        head[key] = value
    assert head['positions'] == 'line' and re.fullmatch(r'[A-Za-z]\w*', head['events'])

    def function(text):
        number, name = re.fullmatch(r'\((\d+)\)(?: (.+))?', text).groups()
        assert (name is None) == (number in names), text
        return names.setdefault(number, name)

    caller = called = None
    is_call = False
    for line in lines[body:]:
        key, _, value = line.partition('=')
        if key == 'fn':
            caller = function(value)
        elif key == 'cfn':
            called = function(value)
        elif key == 'calls':
            assert re.fullmatch(r'[1-9]\d* 0', value)
            is_call = True
        elif key in ('ob', 'fl', 'cob', 'cfi'):
            assert value and not is_call
        elif line:
            cost = int(re.fullmatch(r'\d+ (\d+)', line).group(1))
            if is_call:
                calls[caller, called] = calls.get((caller, called), 0) + cost
            else:
                own[caller] = own.get(caller, 0) + cost
            is_call = False
    assert int(head['summary']) == sum(own.values()), (head, own)
    return {'sum': sum(own.values()), 'self': own, 'calls': calls}


def read_firefox(path):
    """Threads with samples by stack and their weights (of times: ns), waits, and categories of functions. Every table has
    its columns, all of its length, and every index points into its table."""
    with open(path, encoding='utf-8') as file:
        data = json.load(file)
    assert data['meta']['preprocessedProfileVersion'] == 46
    categories = [category['name'] for category in data['meta']['categories']]
    threads = []
    for thread in data['threads']:
        strings = thread['stringArray']
        for name in ('samples', 'markers', 'frameTable', 'stackTable', 'funcTable', 'resourceTable', 'nativeSymbols'):
            for key, column in thread[name].items():
                assert not isinstance(column, list) or len(column) == thread[name]['length'], (name, key)
        frames, stacks, functions = thread['frameTable'], thread['stackTable'], thread['funcTable']
        resources = thread['resourceTable']
        assert all(0 <= lib < len(data['libs']) for lib in resources['lib'])
        assert all(-1 <= resource < resources['length'] for resource in functions['resource'])
        names = [strings[name] for name in functions['name']]
        assert all(0 <= function < len(names) for function in frames['func'])
        full = []
        for prefix, frame in zip(stacks['prefix'], stacks['frame']):
            assert 0 <= frame < frames['length']
            full.append((full[prefix] if prefix is not None else ()) + (names[frames['func'][frame]],))
        samples = thread['samples']
        scale = 1000000 if samples['weightType'] == 'tracing-ms' else 1
        markers = thread['markers']
        assert all(start <= end for start, end in zip(markers['startTime'], markers['endTime']))
        assert samples['time'] == sorted(samples['time'])
        threads.append({'name': thread['name'], 'pid': int(thread['pid']), 'tid': thread['tid'],
                        'stacks': [full[stack] if stack is not None else () for stack in samples['stack']],
                        'weights': [round(weight * scale) for weight in samples['weight']],
                        'markers': [(strings[name], start, end) for name, start, end in
                                    zip(markers['name'], markers['startTime'], markers['endTime'])],
                        'categories': {(names[function], categories[category]) for function, category in
                                       zip(frames['func'], frames['category'])}})
    return {'meta': data['meta'], 'libs': data['libs'], 'threads': threads}

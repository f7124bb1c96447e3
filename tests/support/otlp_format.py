# SPDX-License-Identifier: Apache-2.0
"""A request of OTLP's profiles, read by the rules of opentelemetry-proto 1.11 and not by our writer: an unknown field, an
entry 0 that is not the one of nothing, an entry that is there twice or that nobody points to is an error."""
import gzip

from export_formats import message, packed

KNOWN = {'request': {1, 2}, 'resource_profiles': {1, 2, 3}, 'resource': {1, 2}, 'scope_profiles': {1, 2, 3}, 'scope': {1, 2, 3, 4},
         'profile': set(range(1, 12)), 'type': {1, 2}, 'sample': {1, 2, 3, 4, 5}, 'dictionary': set(range(1, 8)),
         'mapping': {1, 2, 3, 4, 5}, 'location': {1, 2, 3, 4}, 'line': {1, 2, 3}, 'function': {1, 2, 3, 4}, 'link': {1, 2},
         'stack': {1}, 'attribute': {1, 2, 3}, 'key_value': {1, 2}, 'any': {1, 2, 3, 4, 5, 6, 7}}
SINGLE = {'profile': {1, 3, 4, 5, 6, 7}, 'sample': {1, 3}, 'mapping': {1, 2, 3, 4}, 'location': {1, 2}, 'attribute': {1, 2, 3}}


def parse(what, data):
    fields = message(data)
    assert set(fields) <= KNOWN[what], (what, set(fields))
    for field in SINGLE.get(what, ()):
        assert len(fields.get(field, [])) <= 1, (what, field)
    return fields


def one(fields, field, default=0):
    return fields.get(field, [default])[0]


def any_value(data):
    fields = parse('any', data)
    assert len(fields) == 1, 'a value of one kind'
    return fields[1][0].decode('utf-8') if 1 in fields else fields[3][0]


class Tables:
    """The dictionary. Whatever is asked of it is used."""

    def __init__(self, data):
        fields = parse('dictionary', data)
        self.raw = {name: fields[number] for number, name in
                    ((1, 'mapping'), (2, 'location'), (3, 'function'), (4, 'link'), (5, 'string'), (6, 'attribute'), (7, 'stack'))}
        self.used = {name: {0} for name in self.raw}
        for name, entries in self.raw.items():
            assert len(set(entries)) == len(entries), f'{name}: an entry twice'
            if name != 'link':
                assert entries[0] == b'', f'{name}: entry 0 is that of nothing'
        link = parse('link', self.raw['link'][0])
        assert (one(link, 1), one(link, 2)) == (bytes(16), bytes(8)) and len(self.raw['link']) == 1

    def at(self, table, index):
        assert 0 <= index < len(self.raw[table]), f'{table}: {index} is none'
        self.used[table].add(index)
        return self.raw[table][index]

    def string(self, index):
        return self.at('string', index).decode('utf-8')

    def attributes(self, indices):
        found = {}
        for index in indices:
            assert index > 0
            fields = parse('attribute', self.at('attribute', index))
            key = self.string(one(fields, 1))
            assert key and key not in found
            found[key] = any_value(one(fields, 2))
        return found

    def function(self, index):
        assert index > 0
        fields = parse('function', self.at('function', index))
        return {'name': self.string(one(fields, 1)), 'system_name': self.string(one(fields, 2)), 'file': self.string(one(fields, 3))}

    def mapping(self, index):
        if not index:
            return None
        fields = parse('mapping', self.at('mapping', index))
        return {'start': one(fields, 1), 'limit': one(fields, 2), 'offset': one(fields, 3), 'file': self.string(one(fields, 4)),
                'attributes': self.attributes(packed(fields.get(5, [])))}

    def location(self, index):
        assert index > 0
        fields = parse('location', self.at('location', index))
        mapping, address = self.mapping(one(fields, 1)), one(fields, 2)
        assert not mapping or mapping['start'] <= address < mapping['limit']
        lines = [parse('line', line) for line in fields.get(3, [])]
        return {'mapping': mapping, 'address': address, 'attributes': self.attributes(packed(fields.get(4, []))),
                'lines': [(self.function(one(line, 1)), one(line, 2)) for line in lines]}

    def stack(self, index):
        assert index > 0
        return [self.location(location) for location in packed(parse('stack', self.at('stack', index)).get(1, []))]

    def orphans(self):
        return {name: sorted(set(range(len(entries))) - self.used[name]) for name, entries in self.raw.items()
                if set(range(len(entries))) - self.used[name]}


def read_type(tables, fields, field):
    if field not in fields:
        return None
    kind = parse('type', fields[field][0])
    return tables.string(one(kind, 1)), tables.string(one(kind, 2))


def read_profile(tables, data, resource):
    fields = parse('profile', data)
    samples, seen = [], set()
    for part in fields.get(2, []):
        sample = parse('sample', part)
        values, attributes = packed(sample.get(4, [])), packed(sample.get(2, []))
        assert len(values) == 1 and values[0] > 0 and 5 not in sample
        identity = one(sample, 1), tuple(sorted(attributes))
        assert identity not in seen, 'a sample twice'
        seen.add(identity)
        stack = tables.stack(one(sample, 1))
        samples.append({'value': values[0], 'attributes': tables.attributes(attributes), 'locations': stack,
                        'stack': [function['name'] for place in stack for function, _ in place['lines']]})
    return {'resource': resource, 'type': read_type(tables, fields, 1), 'samples': samples, 'time_ns': one(fields, 3),
            'duration_ns': one(fields, 4), 'period_type': read_type(tables, fields, 5), 'period': one(fields, 6), 'id': one(fields, 7),
            'attributes': tables.attributes(packed(fields.get(11, [])))}


def read_otlp(path):
    """[profile], one for each process."""
    with open(path, 'rb') as file:
        return read_otlp_bytes(gzip.decompress(file.read()))


def read_otlp_bytes(data):
    fields = parse('request', data)
    tables, profiles = Tables(fields[2][0]), []
    for part in fields[1]:
        resource_profiles = parse('resource_profiles', part)
        resource = {}
        for pair in parse('resource', one(resource_profiles, 1))[1]:
            pair = parse('key_value', pair)
            resource[pair[1][0].decode('utf-8')] = any_value(pair[2][0])
        for scope_profiles in resource_profiles[2]:
            scope_profiles = parse('scope_profiles', scope_profiles)
            assert parse('scope', scope_profiles[1][0])[1] == [b'qut']
            profiles += [read_profile(tables, profile, resource) for profile in scope_profiles[2]]
    assert not tables.orphans(), f'nobody points to {tables.orphans()}'
    assert all(len(profile['id']) == 16 and any(profile['id']) for profile in profiles)
    assert len({profile['id'] for profile in profiles}) == len(profiles)
    return profiles

# SPDX-License-Identifier: Apache-2.0
"""Requests of OTLP's profiles, judged through protobuf's own reader: protoc compiles a definition, python3-protobuf decodes by it.
What has to hold is found by the names of fields: X_index and X_indices point into X_table, X_strindex into string_table."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

DEBIANS_PYTHON = '/usr/bin/python3'
try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    HAS_PROTOBUF = True
except ImportError:
    # Debian's package is for Debian's interpreter, which need not be the first one in PATH.
    if os.path.realpath(sys.executable) != os.path.realpath(DEBIANS_PYTHON) and os.access(DEBIANS_PYTHON, os.X_OK):
        os.execv(DEBIANS_PYTHON, [DEBIANS_PYTHON, *sys.argv])
    HAS_PROTOBUF = False

OURS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'otlp_proto')
SERVICE = 'opentelemetry/proto/collector/profiles/v1development/profiles_service.proto'
REQUEST = 'opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest'
INDEX = re.compile(r'(?:.*_)?(str)index|(\w+)_(?:index|indices)')


def missing():
    """What cannot be had here; None: nothing."""
    return 'python3-protobuf' if not HAS_PROTOBUF else None if shutil.which('protoc') else 'protoc (protobuf-compiler)'


def compiled(folder):
    """The descriptors of the definition in a folder, with all that it imports."""
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(['protoc', '-I', folder, '--include_imports', '-o', f'{work}/set', SERVICE], check=True)
        with open(f'{work}/set', 'rb') as file:
            return descriptor_pb2.FileDescriptorSet.FromString(file.read())


def fields_of(descriptors):
    """{message.field: (number, type, label, of which message, in which oneof)}; unions of one field, which proto3 has for what
    may be told to be absent, are none."""
    found = {}

    def add(prefix, message):
        for field in message.field:
            union = message.oneof_decl[field.oneof_index].name if field.HasField('oneof_index') and not field.proto3_optional else ''
            found[f'{prefix}.{message.name}.{field.name}'] = field.number, field.type, field.label, field.type_name, union
        for nested in message.nested_type:
            add(f'{prefix}.{message.name}', nested)

    for file in descriptors.file:
        for message in file.message_type:
            add(file.package, message)
    return found


def differences(ours, theirs):
    """Of two definitions: a line for each field that is not the same. What only theirs has, of messages that ours has not, is not
    ours to know."""
    ours, theirs = fields_of(ours), fields_of(theirs)
    messages = {name.rpartition('.')[0] for name in ours}
    return [f'{name}: {ours.get(name)} here, {theirs.get(name)} there' for name in sorted({*ours, *theirs})
            if name.rpartition('.')[0] in messages and ours.get(name) != theirs.get(name)]


def request_class(descriptors):
    pool = descriptor_pool.DescriptorPool()
    for file in descriptors.file: # each behind what it imports
        pool.Add(file)
    descriptor = pool.FindMessageTypeByName(REQUEST)
    if hasattr(message_factory, 'GetMessageClass'):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


def unknown_fields(message):
    try:
        from google.protobuf.unknown_fields import UnknownFieldSet # pylint: disable=import-outside-toplevel
    except ImportError:
        return message.UnknownFields()
    return UnknownFieldSet(message)


def values_of(field, value):
    return value if field.label == field.LABEL_REPEATED else [value]


def every_message(message):
    """With all that is in it, itself first."""
    yield message
    for field, value in message.ListFields():
        if field.message_type:
            for inner in values_of(field, value):
                yield from every_message(inner)


def table_of(field):
    match = INDEX.fullmatch(field.name)
    return match and ('string' if match[1] else match[2]) + '_table'


def check_tables(request):
    dictionary = request.dictionary
    tables = {field.name: getattr(dictionary, field.name) for field in dictionary.DESCRIPTOR.fields}
    used = {name: {0} for name in tables}
    for message in every_message(request):
        for field, value in message.ListFields():
            name = table_of(field)
            if not name:
                continue
            for index in values_of(field, value):
                assert 0 <= index < len(tables[name]), f'{field.full_name}: {index} of {len(tables[name])}'
                assert index or field.label != field.LABEL_REPEATED, f'{field.full_name}: a list has nothing in it'
                used[name].add(index)
    for name, entries in tables.items():
        assert len(entries), f'{name}: entry 0 is missing'
        if name == 'string_table':
            texts = [entry.encode() for entry in entries]
        else:
            texts = [entry.SerializeToString(deterministic=True) for entry in entries]
        if name == 'link_table':
            assert (entries[0].trace_id, entries[0].span_id) == (bytes(16), bytes(8)), 'link_table: entry 0 points somewhere'
        else:
            assert not texts[0], f'{name}: entry 0 is not the one of nothing'
        assert len(set(texts)) == len(texts), f'{name}: an entry twice'
        orphans = set(range(len(entries))) - used[name]
        assert not orphans, f'{name}: nobody points to {sorted(orphans)[:9]}'
    for entry in tables['attribute_table'][1:]:
        assert entry.key_strindex and entry.value.WhichOneof('value'), 'an attribute without key or value'


def check_profile(dictionary, profile):
    assert len(profile.profile_id) == 16 and any(profile.profile_id), 'a profile without its id'
    identities, shapes = set(), set()
    for sample in profile.samples:
        values, times = len(sample.values), len(sample.timestamps_unix_nano)
        assert values or times, 'a sample of nothing'
        assert not values or not times or values == times, 'as many values as times'
        shapes.add((values > 0, times > 0))
        identities.add((sample.stack_index, frozenset(sample.attribute_indices), sample.link_index))
    assert len(shapes) <= 1, 'samples of different shapes'
    assert len(identities) == len(profile.samples), 'a sample twice'
    for message in every_message(profile):
        keys = [dictionary.attribute_table[index].key_strindex for index in getattr(message, 'attribute_indices', ())]
        assert len(set(keys)) == len(keys), f'{message.DESCRIPTOR.name}: an attribute twice'


def judge(request_type, data):
    """The request, of which all holds that has to."""
    request = request_type.FromString(data) # also: texts are UTF-8
    for message in every_message(request):
        assert not len(unknown_fields(message)), f'{message.DESCRIPTOR.full_name}: a field that the definition has not'
    check_tables(request)
    profiles = []
    for resource in request.resource_profiles:
        keys = [attribute.key for attribute in resource.resource.attributes]
        assert len(set(keys)) == len(keys) and 'service.name' in keys, keys
        for scope in resource.scope_profiles:
            assert scope.scope.name, 'a scope without a name'
            profiles += scope.profiles
    for profile in profiles:
        check_profile(request.dictionary, profile)
    assert len({profile.profile_id for profile in profiles}) == len(profiles), 'an id twice'
    return request


def profiles_of(request):
    return [profile for resource in request.resource_profiles for scope in resource.scope_profiles for profile in scope.profiles]

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qut upload against a strict receiver: every answer that there is, requests that are split, a spool that is full, a disk that
is full, what leaves this host. usage: upload_test.py QUT GOLDEN_MAKER"""
import os
import re
import resource
import shutil
import subprocess
import sys

from upload_parts import Receiver, check, end, folder, make_trace, read_account, record

QUT, GOLDEN_MAKER = map(os.path.abspath, sys.argv[1:3])
number = 0


def upload(*arguments, **how):
    return subprocess.run([QUT, 'upload', *arguments], capture_output=True, text=True, check=False, **how)


def fresh():
    global number
    number += 1
    return f'spool{number}'


def balance(result):
    return result.stdout.strip().splitlines()[-1] if result.stdout.strip() else result.stderr


def send(receiver, *operands, form='otlp', spool=None, more=(), path=''):
    return upload(*operands, '--as', form, '--spool', spool or fresh(), '--to', receiver.url + path, '--quiet', '--wait', '1',
                  *more)


def forms(receiver):
    spool = fresh()
    first = send(receiver, 'golden.qtrace,service=a', 'golden.qtrace,service=b,host=h,version=2', spool=spool)
    check('otlp: both sent', (first.returncode, balance(first)) == (0, 'taken 2 = sent 2 + waiting 0 + dropped 0'),
          first.stdout + first.stderr)
    log = receiver.log()
    check('otlp: strictly right, each once, oldest first', [entry.get('services') for entry in log] == [['a'], ['b']], log)
    again = send(receiver, 'golden.qtrace,service=a', spool=spool)
    check('otlp: what was sent is not sent again', again.returncode == 0 and len(receiver.log()) == 2, again.stdout)
    other = send(receiver, 'golden.qtrace,service=a')
    log = receiver.log()
    check('otlp: from elsewhere the same id and bytes', (log[0]['id'], log[0]['hash']) == (log[2]['id'], log[2]['hash']), other.stdout)
    receiver.clear()
    pprof = send(receiver, 'golden.qtrace,service=a,host=h', form='pprof')
    check('pprof: as Pyroscope has it', pprof.returncode == 0 and receiver.log()[0].get('labels') ==
          {'__name__': 'process_cpu', 'service_name': 'a', 'hostname': 'h'}, receiver.log())
    receiver.clear()
    spool = fresh()
    file = send(receiver, 'golden.qtrace', form='file', spool=spool, path='/bucket/one?X-Signature=secret')
    check('file: to one address', file.returncode == 0 and receiver.log()[0]['path'] == '/bucket/one?X-Signature=secret' and
          receiver.log()[0]['unpacked'] == os.path.getsize('golden.qtrace'), file.stdout + file.stderr)
    named = send(receiver, 'golden.qtrace', form='file', path='/bucket/{id}')
    check('file: to its own', receiver.log()[1]['path'] == f'/bucket/{receiver.log()[1]["id"]}', named.stderr)
    receiver.script('412')
    there = send(receiver, 'golden.qtrace', form='file', path='/bucket/{id}')
    check('file: is there already', balance(there) == 'taken 1 = sent 1 + waiting 0 + dropped 0', there.stdout)
    shutil.copy('golden.qtrace', 'other.qtrace')
    with open('other.qtrace', 'ab') as file:
        file.write(b'\0')
    with open('url', 'w', encoding='ascii') as file:
        file.write(receiver.url + '/bucket/one?X-Signature=secret\n')
    two = upload('golden.qtrace', 'other.qtrace', '--as', 'file', '--spool', fresh(), '--to', '@url', '--quiet')
    check('file: two to one address', two.returncode == 2 and 'waiting 2' in two.stdout and '{id}' in two.stderr, two.stderr)
    check('file: nothing secret is shown', 'secret' not in two.stdout + two.stderr)


# The answers to one request; how often it came, how it ended, the exit status.
SENT, WAITS = 'sent 1 + waiting 0 + dropped 0', 'sent 0 + waiting 1 + dropped 0'
ANSWERS = (
    ('429 502 503 504 ok', 5, SENT, 0),
    ('cut ok', 2, SENT, 0),
    ('shut shut ok', 1, SENT, 0),
    ('cut-after ok', 2, SENT, 0),
    ('half ok', 2, SENT, 0),
    ('endless ok', 2, SENT, 0),
    ('no-http ok', 2, SENT, 0),
    ('later=0 ok', 2, SENT, 0),
    ('later=soon ok', 2, SENT, 0),
    ('date=-5 ok', 2, SENT, 0),
    ('later=7200', 1, WAITS, 1),
    ('later=99999999999999999999', 1, WAITS, 1),
    ('date=7200', 1, WAITS, 1),
    ('away', 1, WAITS, 2),
    ('nonsense', 1, SENT, 0),
    ('partial=3', 1, f'{SENT}; profiles rejected: 3', 1),
    *((str(status), 1, f'sent 0 + waiting 0 + dropped 1 (status-{status} 1)', 1)
      for status in (400, 401, 403, 404, 408, 422, 500, 501)),
)


def answers(receiver):
    for words, times, expected, status in ANSWERS:
        receiver.clear()
        receiver.script(*words.split())
        result = send(receiver, 'golden.qtrace')
        check(f'answers: {words}', (result.returncode, balance(result), len(receiver.log())) == (status, f'taken 1 = {expected}', times),
              (result.returncode, result.stdout, result.stderr, receiver.log()))
        check(f'answers: {words}: always the same', len({(entry['id'], entry['hash']) for entry in receiver.log()}) == 1)
    receiver.clear()
    receiver.script('slow')
    slow = send(receiver, 'golden.qtrace', more=('--timeout', '1', '--patience', '0'))
    check('answers: slow', (slow.returncode, balance(slow)) == (1, f'taken 1 = {WAITS}'), slow.stdout + slow.stderr)


def later(receiver):
    receiver.clear()
    spool = fresh()
    nobody = upload('golden.qtrace,service=1', 'golden.qtrace,service=2', '--as', 'otlp', '--spool', spool, '--to', 'http://127.0.0.1:9',
                    '--wait', '1', '--patience', '0')
    check('later: nobody there', nobody.returncode == 1 and 'waiting 2' in nobody.stdout and 'it waits' in nobody.stderr, nobody.stderr)
    kept = upload('golden.qtrace,service=3', '--as', 'otlp', '--spool', spool, '--quiet')
    check('later: without --to', kept.returncode == 0 and 'waiting 3' in kept.stdout, kept.stdout)
    sent = send(receiver, 'golden.qtrace,service=4', spool=spool)
    check('later: the oldest first', [entry['services'] for entry in receiver.log()] == [['1'], ['2'], ['3'], ['4']], sent.stdout)


def split(receiver):
    receiver.clear()
    whole = send(receiver, 'golden.qtrace')
    parts = send(receiver, 'golden.qtrace', more=('--max-bytes', '2200'))
    log = receiver.log()
    check('split: several', len(log) > 2 and all(entry['unpacked'] <= 2200 for entry in log[1:]) and len({entry['id'] for entry in log}) ==
          len(log), (parts.stdout, log))
    check('split: they are the whole', sum(entry['sum'] for entry in log[1:]) == log[0]['sum'], (whole.stdout, log))
    small = send(receiver, 'golden.qtrace', more=('--max-bytes', '100'))
    check('split: too large for all that', re.search(r'sent 0 .* dropped (\d+) \(too-large \1\)', small.stdout), small.stdout)


def many_samples(receiver):
    receiver.clear()
    whole = send(receiver, 'golden.qtrace', form='pprof')
    for most in 7, 3:
        before = len(receiver.log())
        parts = send(receiver, 'golden.qtrace', form='pprof', more=('--max-samples', str(most)))
        log = receiver.log()
        check(f'many samples: {most} in each', parts.returncode == 0 and len(log) - before > 1 and all(entry['samples'] <= most for entry in log[before:]),
              (parts.stdout, log))
        check('many samples: parts are the whole', sum(entry['sum'] for entry in log[before:]) == log[0]['sum'], (whole.stdout, log))


def set_limit(receiver, size=None):
    path = f'{receiver.folder}/limit'
    if size is None:
        os.unlink(path)
    else:
        with open(path, 'w', encoding='ascii') as file:
            file.write(str(size))


def too_large(receiver, form, limit):
    """A receiver that takes less than it is sent: halves, until they are taken, and all of it arrives once."""
    receiver.clear()
    send(receiver, 'golden.qtrace', form=form)
    whole = receiver.log()[0]['sum']
    set_limit(receiver, limit)
    logs = []
    for spool in fresh(), fresh():
        receiver.clear()
        sent = send(receiver, 'golden.qtrace', form=form, spool=spool)
        log = receiver.log()
        accepted = [entry for entry in log if entry['accepted']]
        logs.append([(entry['id'], entry['hash'], entry['accepted']) for entry in log])
        count = len(accepted)
        check(f'too large, {form}: all is sent, in parts', sent.returncode == 0 and count > 2 and
              balance(sent) == f'taken {count} = sent {count} + waiting 0 + dropped 0; split in two: {count - 1}', (balance(sent), log))
        check(f'too large, {form}: parts are short', all(entry['unpacked'] <= limit for entry in accepted), accepted)
        check(f'too large, {form}: and are the whole', sum(entry['sum'] for entry in accepted) == whole, (whole, accepted))
        check(f'too large, {form}: each is another', len({entry['id'] for entry in log}) == len(log) == 2 * count - 1, log)
        again = send(receiver, 'golden.qtrace', form=form, spool=spool)
        check(f'too large, {form}: what was split is not sent again', balance(again) == balance(sent) and len(receiver.log()) == len(log),
              balance(again))
    check(f'too large, {form}: the same parts each time', logs[0] == logs[1], logs)
    receiver.clear()
    set_limit(receiver, 10)
    spool = fresh()
    none = send(receiver, 'golden.qtrace', form=form, spool=spool)
    match = re.match(r'taken (\d+) = sent 0 \+ waiting 0 \+ dropped (\d+) \(status-413 (\d+)\); split in two: (\d+)$', balance(none))
    counts = tuple(map(int, match.groups())) if match else (0,)
    check(f'too large, {form}: one sample is no two', none.returncode == 1 and counts[0] > 2 and counts == (counts[0],) * 3 + (counts[0] - 1,), balance(none))
    samples = [entry['sum'] for entry in receiver.log()]
    check(f'too large, {form}: each came alone in the end', sum(sorted(samples)[:counts[0]]) <= whole and len(samples) == 2 * counts[0] - 1, samples)
    if form == 'otlp':
        receiver.clear()
        file = send(receiver, 'golden.qtrace', form='file', path='/{id}')
        check('too large: a file is no two', file.returncode == 1 and 'dropped 1 (status-413 1)' in balance(file), balance(file))
    set_limit(receiver)
    split_by_hand(receiver, form, logs[0])


def too_large_otlp(receiver):
    too_large(receiver, 'otlp', 1900)


def too_large_push(receiver):
    too_large(receiver, 'pprof', 1500)


def split_by_hand(receiver, form, wanted):
    """What a process leaves that ended while it split."""
    receiver.clear()
    spool = fresh()
    upload('golden.qtrace', '--as', form, '--spool', spool, '--quiet')
    ids, _ = read_account(spool)
    whole = ids['taken'][0]
    path = f'{spool}/{whole}.{form}'
    with open(path, 'rb') as file:
        request = file.read()
    with open(f'{spool}/account', 'rb') as file:
        taken = file.read(128)

    def left(what, records, expected, body=request):
        for name in os.listdir(spool):
            if name.endswith(f'.{form}'):
                os.unlink(f'{spool}/{name}')
        with open(path, 'wb') as file:
            file.write(body)
        with open(f'{spool}/account', 'wb') as file:
            file.write(b''.join(records).ljust(8192, b'\0'))
        result = upload('--spool', spool)
        check(f'split: {what}', balance(result) == expected, result.stdout + result.stderr)
    begun = [taken, record('split', whole, '0', form, '-')]
    left('begun', begun, 'taken 2 = sent 0 + waiting 2 + dropped 0; split in two: 1')
    _, waiting = read_account(spool)
    check('split: its halves are those of any other time', set(waiting) == {entry[0] for entry in wanted[1:3]}, (waiting, wanted))
    half = waiting[0]
    left('half done', [*begun, record('taken', half, '9', form, '-'), record('sent', half, '0', form, '-')],
         'taken 2 = sent 1 + waiting 1 + dropped 0; split in two: 1')
    check('split: the whole is gone', not os.path.exists(path))
    left('its file was changed', begun, 'taken 1 = sent 0 + waiting 0 + dropped 1 (damaged 1); split in two: 1', request[:-9] + b'x' * 9)
    names = [f'{i:032x}' for i in range(5000)]
    left('a long account', [*begun, *(line for name in names for line in (record('taken', name, '9', form, '-'),
                                                                        record('sent', name, '0', form, '-')))],
         'taken 5002 = sent 5000 + waiting 2 + dropped 0; split in two: 1')
    size = os.path.getsize(f'{spool}/account')
    check('split: a short account says the same', 'taken 5002 = sent 5000 + waiting 2 + dropped 0; split in two: 1' in
          upload('--spool', spool).stdout and size < 300000, size)


def secrets(receiver):
    receiver.clear()
    for name, text in (('token', 'top-secret-1\n'), ('headers', 'X-Scope-OrgID: tenant-2\n')):
        with open(name, 'w', encoding='ascii') as file:
            file.write(text)
    sent = upload('golden.qtrace', '--as', 'otlp', '--spool', 'secret', '--to', receiver.url, '--token-file', 'token', '--headers', 'headers')
    entry = receiver.log()[0]
    check('secrets: they arrive', (entry['authorization'], entry['tenant']) == ('Bearer top-secret-1', 'tenant-2'), entry)
    files = b''.join(open(os.path.join('secret', name), 'rb').read() for name in os.listdir('secret'))
    check('secrets: and stand nowhere else', 'secret-1' not in sent.stdout + sent.stderr and b'secret-1' not in files)
    for what, arguments, why in (
            ('in the open', ['--to', 'http://192.0.2.1', '--token-file', 'token'], 'by https only'),
            ('no file', ['--to', receiver.url, '--token-file', 'absent'], 'cannot read absent'),
            ('an empty one', ['--to', receiver.url, '--token-file', os.devnull], 'no short text'),
            ('two in a line', ['--to', receiver.url, '--headers', 'token'], 'no "Name: value"'),
            ('a user in the URL', ['--to', 'http://a:hush@127.0.0.1:9'], '~/.netrc'),
            ('another scheme', ['--to', 'file:///etc/passwd'], 'none of http or https')):
        bad = upload('golden.qtrace', '--as', 'otlp', '--spool', fresh(), *arguments)
        check(f'secrets: {what}', bad.returncode == 2 and why in bad.stderr and 'waiting 1' in bad.stdout and 'hush' not in bad.stderr,
              (bad.returncode, bad.stdout, bad.stderr))


def certificates():
    if not shutil.which('openssl'):
        print('SKIP: certificates: no openssl')
        return
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'key.pem', '-out', 'certificate.pem', '-days',
                    '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'], check=True, capture_output=True)
    receiver = Receiver('secure', 'certificate.pem', 'key.pem')
    try:
        receiver.url = receiver.url.replace('http:', 'https:')
        spool = fresh()
        unknown = send(receiver, 'golden.qtrace', spool=spool)
        check('certificates: not trusted', unknown.returncode == 2 and 'waiting 1' in unknown.stdout and not receiver.log(), unknown.stderr)
        known = send(receiver, spool=spool, more=('--cacert', 'certificate.pem'))
        check('certificates: trusted', balance(known) == f'taken 1 = {SENT}', known.stdout + known.stderr)
    finally:
        receiver.kill()


def dry_run():
    listed = upload('golden.qtrace,service=shop', '--as', 'otlp', '--dry-run', '--quiet')
    check('dry run: fields, names, sizes', listed.returncode == 0 and all(
        word in listed.stdout for word in ('service.name', 'value: shop', 'string: /opt/app/golden', 'bytes before they are packed', 'nothing was sent')),
        listed.stdout)
    bare = upload('golden.qtrace', '--as', 'otlp', '--dry-run', '--no-names', '--quiet')
    check('dry run: names may stay here', 'string: golden+0x1300' in listed.stdout and 'golden+0x1300' not in bare.stdout, bare.stdout)
    check('dry run: of pprof', 'value: process_cpu' in upload('golden.qtrace', '--as', 'pprof', '--dry-run', '--quiet').stdout)


def agrees(spool, result):
    ids, waiting = read_account(spool)
    match = re.match(r'taken (\d+) = sent (\d+) \+ waiting (\d+) \+ dropped (\d+)', balance(result))
    counts = tuple(map(int, match.groups())) if match else ()
    return counts == (len(ids['taken']), len(ids['sent']), len(waiting), len(ids['dropped'])) and counts[0] == sum(counts[1:])


def full():
    services = [f'golden.qtrace,service={i}' for i in range(6)]
    spool = fresh()
    bounded = upload(*services, '--as', 'otlp', '--spool', spool, '--spool-bytes', '4k', '--quiet')
    check('full: the oldest go', bounded.returncode == 1 and re.search(r'waiting [1-5] .* \(spool-full [1-5]\)', bounded.stdout) and
          agrees(spool, bounded), bounded.stdout)
    size = sum(os.path.getsize(f'{spool}/{name}') for name in os.listdir(spool) if name.endswith('.otlp'))
    check('full: no more than it may be', size <= 4096, size)
    # No file may be longer than so many bytes: the account, a request, neither.
    for limit in (0, 1, 127, 128, 256, 600, 1000, 4096, 65536):
        spool = fresh()

        def set_limit(limit=limit):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        result = upload(*services[:2], '--as', 'otlp', '--spool', spool, '--quiet', preexec_fn=set_limit)
        check(f'full: files up to {limit}', agrees(spool, result), (result.returncode, result.stdout, result.stderr))
        afterwards = upload(*services[:2], '--as', 'otlp', '--spool', spool, '--quiet')
        check(f'full: files up to {limit}, then room', 'waiting 2' in afterwards.stdout and agrees(spool, afterwards), afterwards.stdout)


def left_behind(receiver):
    """What processes leave that end at any instant, made by hand."""
    receiver.clear()
    spool = fresh()
    upload('golden.qtrace,service=1', 'golden.qtrace,service=2', 'golden.qtrace,service=3', '--as', 'otlp', '--spool', spool, '--quiet')
    ids, _ = read_account(spool)
    with open(f'{spool}/account', 'rb') as file:
        account = file.read()

    def again(what, records, expected):
        with open(f'{spool}/account', 'wb') as file:
            file.write(b''.join(records).ljust(4096, b'\0'))
        result = upload('--spool', spool)
        check(f'left behind: {what}', expected in balance(result), result.stdout + result.stderr)
    taken = [account[at:at + 128] for at in (0, 128, 256)]
    again('a file that the account has not', taken[:2], 'taken 3 = sent 0 + waiting 3')
    again('half a record', [*taken[:2], taken[2][:50]], 'taken 3 = sent 0 + waiting 3')
    check('left behind: only the account is not believed to be one', upload('--spool', spool).returncode == 0)
    with open(f'{spool}/account', 'wb') as file:
        file.write((taken[0] + b'x' * 128 + taken[2]).ljust(4096, b'\0'))
    bad = upload('--spool', spool)
    check('left behind: a damaged account is refused', bad.returncode == 2 and 'malformed' in bad.stderr, bad.stderr)
    again('sent, and its file is there', [*taken, record('sent', ids['taken'][0], '0', 'otlp', '-')], 'taken 3 = sent 1 + waiting 2')
    check('left behind: that file goes', not os.path.exists(f'{spool}/{ids["taken"][0]}.otlp'))
    os.unlink(f'{spool}/{ids["taken"][1]}.otlp')
    with open(f'{spool}/{ids["taken"][2]}.otlp', 'ab') as file:
        file.write(b'more')
    with open(f'{spool}/{"0" * 32}.otlp.17-0.part', 'wb') as file:
        file.write(b'half')
    last = upload('--spool', spool)
    check('left behind: a file that is gone, one that was changed', 'sent 1 + waiting 0 + dropped 2' in last.stdout and 'gone 1' in last.stdout and
          'damaged 1' in last.stdout and not [name for name in os.listdir(spool) if name.endswith('.part')], last.stdout)
    # A long account becomes a short one, which says the same and knows the newest.
    names = [f'{i:032x}' for i in range(5000)]
    again('a long account', [line for name in names for line in (record('taken', name, '9', 'otlp', '-'), record('sent', name, '1', 'otlp', '-'))],
          'taken 5000 = sent 5000 + waiting 0 + dropped 0; profiles rejected: 5000')
    size = os.path.getsize(f'{spool}/account')
    again_short = upload('--spool', spool)
    check('left behind: it is shorter', size < 300000 and 'taken 5000 = sent 5000 + waiting 0 + dropped 0; profiles rejected: 5000' in
          again_short.stdout, (size, again_short.stdout))


def usage():
    for what, arguments, why in (
            ('no spool', ['golden.qtrace', '--as', 'otlp'], '--spool DIR'),
            ('no form', ['golden.qtrace', '--spool', 's'], '--as FORM'),
            ('no such form', ['golden.qtrace', '--as', 'jaeger'], 'otlp, pprof or file'),
            ('no number', ['golden.qtrace', '--as', 'pprof', '--spool', 's', '--max-samples', '0'], 'not an argument for --max-samples'),
            ('no size', ['golden.qtrace', '--as', 'otlp', '--spool', 's', '--max-bytes', '3T'], 'not an argument for --max-bytes'),
            ('no trace', ['/etc/passwd', '--as', 'otlp', '--spool', 's'], '/etc/passwd'),
            ('a kind of a file', ['golden.qtrace', '--as', 'file', '--spool', 's', '--kind', 'cpu'], 'as it is'),
            ('no URL in a file', ['--as', 'otlp', '--spool', 's', '--to', '@/dev/null'], 'first line is a URL')):
        bad = upload(*arguments)
        check(f'usage: {what}', bad.returncode == 2 and why in bad.stderr, bad.stderr)
    with open('golden.qtrace', 'rb') as whole, open('cut.qtrace', 'wb') as cut:
        cut.write(whole.read()[:-20])
    bad = upload('cut.qtrace', '--as', 'otlp', '--dry-run')
    check('usage: a trace that is cut', bad.returncode == 1 and 'not all of it is here' in bad.stderr and '1 requests' in bad.stdout,
          f'{bad.returncode} {bad.stderr}')
    held = fresh()
    os.mkdir(held)
    import fcntl  # pylint: disable=import-outside-toplevel
    with open(f'{held}/lock', 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        bad = upload('golden.qtrace', '--as', 'otlp', '--spool', held)
    check('usage: one process at a time', bad.returncode == 2 and 'another process' in bad.stderr, bad.stderr)


def main():
    with folder() as work:
        os.chdir(work)
        os.environ.pop('http_proxy', None)
        make_trace(QUT, GOLDEN_MAKER)
        dry_run()
        full()
        left_behind_only = upload('golden.qtrace', '--as', 'otlp', '--spool', fresh(), '--to', 'http://127.0.0.1:9', '--patience', '0')
        if 'without libcurl' in left_behind_only.stderr:
            print('SKIP: what sends: this qut was built without libcurl')
            return end('upload')
        receiver = Receiver('receiver')
        try:
            for part in (forms, answers, later, split, many_samples, too_large_otlp, too_large_push, secrets, left_behind):
                part(receiver)
        finally:
            receiver.kill()
        certificates()
        usage()
    return end('upload')


if __name__ == '__main__':
    sys.exit(main())

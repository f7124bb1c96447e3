#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server of S3's protocol that others wrote (s3rver) as the bucket: files are put by presigned URLs, tables are taken from it. It
accepts each signature, and does not know If-None-Match: what is signed is judged here, by what reaches it.
usage: bucket_test.py QUT QUTC GOLDEN_MAKER"""
import datetime
import hashlib
import hmac
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

from upload_parts import balance, check, end, folder, free_port, has_curl, key_pair, make_trace, run, until_listens

QUT, QUTC, GOLDEN_MAKER = map(os.path.abspath, sys.argv[1:4])
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../..')
CONSUMERS = os.environ.get('QUT_CONSUMERS') or os.path.join(ROOT, 'build/consumers')
SERVER = os.path.abspath(f'{CONSUMERS}-s3rver/node_modules/s3rver/bin/s3rver.js')
LIBM = '/lib/x86_64-linux-gnu/libm.so.6'
KEY_ID, SECRET = 'S3RVER', 'S3RVER'  # the one account that it has
SENT = 'taken 1 = sent 1 + waiting 0 + dropped 0'


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def signature(method, host, path, query, secret):
    """AWS's signature of version 4 of a URL, whose host alone is signed with it. The path is as it is sent, the query a dictionary
    without the signature."""
    def quote(text):
        return urllib.parse.quote(text, safe='-_.~')

    canonical = '\n'.join((method, path, '&'.join(f'{quote(name)}={quote(value)}' for name, value in sorted(query.items())),
                           f'host:{host}', '', 'host', 'UNSIGNED-PAYLOAD'))
    scope = query['X-Amz-Credential'].split('/', 1)[1]
    text = '\n'.join(('AWS4-HMAC-SHA256', query['X-Amz-Date'], scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = b'AWS4' + secret.encode()
    for part in scope.split('/'):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def presigned(method, url, path, when=None, seconds=3600, key_id=KEY_ID, secret=SECRET, region='us-east-1'):
    when = when or now()
    query = {'X-Amz-Algorithm': 'AWS4-HMAC-SHA256', 'X-Amz-Credential': f'{key_id}/{when:%Y%m%d}/{region}/s3/aws4_request',
             'X-Amz-Date': f'{when:%Y%m%dT%H%M%SZ}', 'X-Amz-Expires': str(seconds), 'X-Amz-SignedHeaders': 'host'}
    query['X-Amz-Signature'] = signature(method, url.split('//')[1], path, query, secret)
    return f'{url}{path}?{urllib.parse.urlencode(query)}'


def signs():
    """The example of AWS's own documentation of query parameters."""
    signed = presigned('GET', 'https://examplebucket.s3.amazonaws.com', '/test.txt', datetime.datetime(2013, 5, 24), 86400, 'AKIAIOSFODNN7EXAMPLE',
                       'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY')
    check('we sign as AWS does', signed.endswith('=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404'), signed)


def came_signed(path, url):
    """What reached the server is what was signed, to the letter."""
    with open('log', encoding='utf-8') as file:
        lines = [line for line in file if f'{path[-40:]}?X-Amz' in line]
    query = urllib.parse.parse_qs(re.search(r'\?(\S+)', lines[-1])[1]) if lines else {}
    query = {name: values[0] for name, values in query.items()}
    told = query.pop('X-Amz-Signature', None)
    return told and told == signature('PUT', url.split('//')[1], path, query, SECRET)


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=30) as response:
            return response.read()
    except urllib.error.HTTPError as error:
        return error.code


def upload(spool, target, *operands):
    with open('target', 'w', encoding='ascii') as file:
        file.write(target + '\n')  # who may write there is in it: an argument would be seen by all
    return run(QUT, 'upload', *operands, '--as', 'file', '--spool', spool, '--to', '@target', '--quiet')


def files(url):
    waits = run(QUT, 'upload', 'golden.qtrace', '--as', 'file', '--spool', 'put', '--quiet')
    ids = [name.removesuffix('.file') for name in os.listdir('put') if name.endswith('.file')]
    check('a file waits under its id', waits.returncode == 0 and len(ids) == 1 and len(ids[0]) == 32, (waits, ids))
    path = f'/bucket/hosts/web1/{ids[0]}'
    target = presigned('PUT', url, path)
    with open('golden.qtrace', 'rb') as file:
        wanted = file.read()
    check('it is not there before', get(url + path) == 404)
    put = upload('put', target)
    check('it is put by a presigned URL', (put.returncode, balance(put)) == (0, SENT), put)
    check('byte by byte', get(url + path) == wanted)
    check('what came is what was signed', came_signed(path, url))
    check('who may write there is not said', target[-64:] not in put.stdout + put.stderr, put)
    again = upload('again', target, 'golden.qtrace')
    check('again: the same bytes take its place', (again.returncode, balance(again), get(url + path)) == (0, SENT, wanted), again)
    by_id = upload('id', f'{url}/bucket/open/{{id}}', 'golden.qtrace')
    check('{id} is the key', (by_id.returncode, balance(by_id), get(f'{url}/bucket/open/{ids[0]}')) == (0, SENT, wanted), by_id)


def refusals(url):
    key = f'/bucket/{"0" * 32}'
    for what, target, status in (
            ('a bucket that is not there', presigned('PUT', url, f'/nobody-has-it/{"0" * 32}'), 404),
            ('a URL that has expired', presigned('PUT', url, key, now() - datetime.timedelta(hours=2)), 403),
            ('a key that nobody knows', presigned('PUT', url, key, key_id='SOMEBODY'), 403)):
        refused = upload(what.replace(' ', '-'), target, 'golden.qtrace')
        check(f'{what} is final', (refused.returncode, balance(refused)) == (1, f'taken 1 = sent 0 + waiting 0 + dropped 1 (status-{status} 1)'), refused)
    check('and nothing is there', get(url + key) == 404)


def tables(url):
    key_pair()
    made = run(QUTC, 'compile', '--layout', 'tables', '--sign', 'key', LIBM, cache='made')
    check('tables: laid out', made.returncode == 0, made)
    count = 0
    for parent, _, names in os.walk('tables'):
        for name in names:
            path = os.path.join(parent, name)
            with open(path, 'rb') as file:
                request = urllib.request.Request(presigned('PUT', url, '/bucket/' + urllib.parse.quote(path)), file.read(), method='PUT')
            with urllib.request.urlopen(request, timeout=30):
                count += 1
    check('tables: a table, an index, a signature', count >= 3, count)
    got = run(QUTC, 'fetch', '--url', f'{url}/bucket/tables', '--key', 'pub', LIBM, cache='got')
    check('tables: taken', got.returncode == 0 and 'fetched from' in got.stdout, got)
    for where in 'bucket/nowhere', 'nobody-has-it':
        cache = where.replace('/', '-')
        misses = [run(QUTC, 'fetch', '--url', f'{url}/{where}', '--key', 'pub', LIBM, cache=cache) for _ in range(2)]
        with open('log', encoding='utf-8') as file:
            asked = sum(f'{where[-6:]}/qut/v1/' in line for line in file)
        check(f'tables: {where} is a miss, remembered', all('no server has it' in miss.stdout for miss in misses) and asked == 1, (misses, asked))


def main():
    node = shutil.which('node')
    if not node or not os.path.exists(SERVER):
        print(f'SKIP: {"s3rver is not in " + CONSUMERS + "-s3rver (tests/support/consumers/setup s3rver fetches it)" if node else "node is not installed"}')
        return 77
    with folder() as work:
        os.chdir(work)
        if not has_curl(QUT):
            print('SKIP: this qut was built without libcurl')
            return 77
        make_trace(QUT, GOLDEN_MAKER)
        port = free_port()
        with open('log', 'wb') as log:
            process = subprocess.Popen([node, SERVER, '-d', 'buckets', '-a', '127.0.0.1', '-p', str(port), '--no-vhost-buckets', '--configure-bucket',
                                        'bucket'], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            check('the bucket is open', until_listens(process, port))
            signs()
            files(f'http://127.0.0.1:{port}')
            refusals(f'http://127.0.0.1:{port}')
            tables(f'http://127.0.0.1:{port}')
        finally:
            process.terminate()
            process.wait()
    return end('bucket')


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nginx as it is, in the place of buckets and of receivers' front: files are put there, what it finds too large becomes two, tables are
taken from there. usage: nginx_test.py QUT QUTC GOLDEN_MAKER"""
import os
import re
import shutil
import signal
import subprocess
import sys

from upload_parts import balance, check, end, folder, free_port, has_curl, key_pair, make_trace, run, until_listens

QUT, QUTC, GOLDEN_MAKER = map(os.path.abspath, sys.argv[1:4])
LIBM = '/lib/x86_64-linux-gnu/libm.so.6'
CONF = '''
daemon off; master_process off; pid {work}/pid; error_log {work}/error.log;
events {{ }}
http {{
    access_log {work}/access.log; root {work}/files;
    client_body_temp_path {work}/body; proxy_temp_path {work}/proxy; fastcgi_temp_path {work}/fastcgi;
    uwsgi_temp_path {work}/uwsgi; scgi_temp_path {work}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location /bucket/ {{ dav_methods PUT; create_full_put_path on; client_max_body_size 100m; }}
        location /small/ {{ dav_methods PUT; create_full_put_path on; client_max_body_size 1k; }}
        location /v1development/profiles {{ client_max_body_size 800; return 200; }}
        location /push.v1.PusherService/Push {{ client_max_body_size 700; return 200; }}
        location /closed/ {{ deny all; }}
    }}
}}
'''


def start(work):
    port = free_port()
    os.mkdir('files')
    with open('conf', 'w', encoding='ascii') as file:
        file.write(CONF.format(work=work, port=port))
    nginx = shutil.which('nginx') or '/usr/sbin/nginx'
    process = subprocess.Popen([nginx, '-e', f'{work}/error.log', '-c', f'{work}/conf'])
    until_listens(process, port)
    return process, f'http://127.0.0.1:{port}'


def files(url):
    put = run(QUT, 'upload', 'golden.qtrace', '--as', 'file', '--spool', 'put', '--to', f'{url}/bucket/{{id}}', '--quiet')
    names = os.listdir('files/bucket') if os.path.isdir('files/bucket') else []
    check('a file is put', put.returncode == 0 and balance(put) == 'taken 1 = sent 1 + waiting 0 + dropped 0' and len(names) == 1, (put, names))
    with open('golden.qtrace', 'rb') as wanted, open(f'files/bucket/{names[0]}', 'rb') as got:
        check('byte by byte', wanted.read() == got.read())
    large = run(QUT, 'upload', 'golden.qtrace', '--as', 'file', '--spool', 'small', '--to', f'{url}/small/{{id}}', '--quiet')
    check('a file that is too large is no two', large.returncode == 1 and 'dropped 1 (status-413 1)' in balance(large), large)
    refused = run(QUT, 'upload', 'golden.qtrace', '--as', 'file', '--spool', 'closed', '--to', f'{url}/closed/{{id}}', '--quiet')
    check('a closed bucket refuses for good', refused.returncode == 1 and re.search(r'dropped 1 \(status-40[35] 1\)', balance(refused)), refused)


def halves(url, form):
    sent = run(QUT, 'upload', 'golden.qtrace', '--as', form, '--spool', form, '--to', url, '--quiet', '--wait', '1')
    match = re.match(r'taken (\d+) = sent (\d+) \+ waiting 0 \+ dropped 0; split in two: (\d+)$', balance(sent))
    counts = tuple(map(int, match.groups())) if match else (0, 0, 0)
    check(f'{form}: what it finds too large becomes two', sent.returncode == 0 and counts[0] == counts[1] == counts[2] + 1 > 1, sent)
    with open('access.log', encoding='ascii') as file:
        statuses = [line.split('"')[2].split()[0] for line in file if ('v1development' if form == 'otlp' else 'Pusher') in line]
    check(f'{form}: each refusal was one split', (statuses.count('413'), statuses.count('200')) == (counts[2], counts[1]), statuses)


def tables(url):
    key_pair()
    made = run(QUTC, 'compile', '--layout', 'files/tables', '--sign', 'key', LIBM, cache='made')
    check('tables: laid out', made.returncode == 0, made)
    got = run(QUTC, 'fetch', '--url', f'{url}/tables', '--key', 'pub', LIBM, cache='got')
    check('tables: taken', got.returncode == 0 and 'fetched from' in got.stdout, got)
    for where in 'closed', 'nowhere':
        miss = run(QUTC, 'fetch', '--url', f'{url}/{where}', '--key', 'pub', LIBM, cache=where)
        again = run(QUTC, 'fetch', '--url', f'{url}/{where}', '--key', 'pub', LIBM, cache=where)
        with open('access.log', encoding='ascii') as file:
            asked = sum(f'GET /{where}/' in line for line in file)
        check(f'tables: {where} is a miss, remembered', 'no server has it' in miss.stdout and 'no server has it' in again.stdout and asked == 1,
              (miss, asked))


def main():
    if not (shutil.which('nginx') or os.path.exists('/usr/sbin/nginx')):
        print('SKIP: no nginx')
        return 77
    with folder() as work:
        os.chdir(work)
        make_trace(QUT, GOLDEN_MAKER)
        process, url = start(work)
        try:
            if process.poll() is not None:
                print('SKIP: this nginx does not begin so')
                return 77
            if not has_curl(QUT):
                print('SKIP: this qut was built without libcurl')
                return 77
            files(url)
            halves(url, 'otlp')
            halves(url, 'pprof')
            tables(url)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    return end('nginx')


if __name__ == '__main__':
    sys.exit(main())

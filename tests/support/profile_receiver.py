#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for what takes profiles over HTTP, and is strict: OTLP by the rules of opentelemetry-proto 1.11, Pyroscope's push
as its definition has it, files by PUT. What is not right is answered with 400 and said in the log. It is a process of its own,
which may be killed at any time: what it accepted is in its log before it answers.

usage: profile_receiver.py FOLDER [CERTIFICATE KEY]

  FOLDER/port    is made when it listens: the port
  FOLDER/log     a line of JSON for each request that came whole
  FOLDER/script  how to answer, a word for each request, taken from the beginning on; without one: as it should be
  FOLDER/limit   how many bytes a request may have before it is packed: those of more are answered with 413
"""
import base64
import contextlib
import fcntl
import gzip
import hashlib
import http.server
import json
import os
import socket
import ssl
import sys
import time
from email.utils import formatdate

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from export_formats import message, read_pprof_bytes  # noqa: E402
from otlp_format import read_otlp_bytes  # noqa: E402

FOLDER = os.path.abspath(sys.argv[1])
UNPACKED_MAX = 64 << 20


def next_word():
    path = os.path.join(FOLDER, 'script')
    with contextlib.suppress(FileNotFoundError), open(path, 'r+', encoding='ascii') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        word, _, rest = file.read().partition('\n')
        file.seek(0)
        file.truncate()
        file.write(rest)
        return word or 'ok'
    return 'ok'


def limit():
    with contextlib.suppress(FileNotFoundError), open(os.path.join(FOLDER, 'limit'), encoding='ascii') as file:
        return int(file.read())
    return UNPACKED_MAX


def log(entry):
    descriptor = os.open(os.path.join(FOLDER, 'log'), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, (json.dumps(entry) + '\n').encode())
    os.close(descriptor)


def summary(profiles):
    return {'services': sorted({str(profile['resource']['service.name']) for profile in profiles}),
            'sum': sum(sample['value'] for profile in profiles for sample in profile['samples']),
            'halvings': max(profile['attributes'].get('qut.rate.halvings', 0) for profile in profiles),
            'share': max(profile['attributes'].get('qut.window.share_percent', 0) for profile in profiles)}


def take_otlp(headers, body):
    assert headers['Content-Type'] == 'application/x-protobuf', headers['Content-Type']
    assert headers['Content-Encoding'] == 'gzip'
    unpacked = gzip.decompress(body)
    assert len(unpacked) <= UNPACKED_MAX
    return {**summary(read_otlp_bytes(unpacked)), 'unpacked': len(unpacked)}


def take_push(headers, body):
    assert headers['Content-Type'] == 'application/proto' and headers['Content-Encoding'] == 'gzip'
    assert headers['Connect-Protocol-Version'] == '1'
    unpacked = gzip.decompress(body)
    assert len(unpacked) <= 4 << 20, 'a profile has 4 MiB at most'
    request = message(unpacked)
    assert set(request) == {1} and len(request[1]) == 1
    series = message(request[1][0])
    assert set(series) == {1, 2} and len(series[2]) == 1
    labels = {}
    for label in map(message, series[1]):
        name, value = label[1][0].decode(), label[2][0].decode()
        assert name not in labels and name.replace('_', 'a').isalnum() and value
        labels[name] = value
    assert {'__name__', 'service_name'} <= set(labels), labels
    sample = message(series[2][0])
    assert set(sample) == {1, 2}
    uuid = sample[2][0].decode()
    assert [len(part) for part in uuid.split('-')] == [8, 4, 4, 4, 12]
    assert uuid.replace('-', '') == headers['Idempotency-Key']
    samples = read_pprof_bytes(sample[1][0])['samples']
    assert len(samples) <= 16000
    return {'labels': labels, 'unpacked': len(unpacked), 'samples': len(samples), 'sum': sum(each['values'][0] for each in samples)}


def take_file(headers, body):
    assert headers['If-None-Match'] == '*' and 'Content-Encoding' not in headers
    return {'unpacked': len(body)}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b'', headers=(), claimed=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(body) if claimed is None else claimed))
        self.end_headers()
        self.wfile.write(body)

    def take(self, take):
        word = next_word()
        if word == 'shut':  # before anything was read
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        body = self.rfile.read(int(self.headers['Content-Length']))
        if len(body) != int(self.headers['Content-Length']):
            return
        entry = {'word': word, 'path': self.path, 'id': self.headers['Idempotency-Key'], 'accepted': False,
                 'hash': hashlib.sha256(body).hexdigest(), 'authorization': self.headers.get('Authorization'),
                 'tenant': self.headers.get('X-Scope-OrgID')}
        try:
            assert len(entry['id']) == 32 and int(entry['id'], 16) >= 0
            entry.update(take(self.headers, body))
        except Exception as error:  # pylint: disable=broad-except
            log({**entry, 'error': f'{type(error).__name__}: {error}', 'body': base64.b64encode(body[:64]).decode()})
            self.answer(400)
            return
        if entry['unpacked'] > limit():
            word = '413'
        entry['accepted'] = word.split('=')[0] in ('ok', 'cut-after', 'half', 'partial', 'nonsense', 'endless')
        log(entry)
        self.speak(word)

    def speak(self, word):
        name, _, value = word.partition('=')
        partial = b'\x08' + bytes([int(value or 0)]) + b'\x12\x04late' if name == 'partial' else b''
        if name in ('cut', 'cut-after'):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif name == 'half':
            self.answer(200, b'xxxx', claimed=100)
            self.close_connection = True
        elif name == 'slow':
            time.sleep(60)
        elif name == 'no-http':
            self.wfile.write(b'\x00\x01 nothing of the kind\r\n\r\n')
            self.close_connection = True
        elif name == 'endless':
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(200):
                    self.wfile.write(b'0' * 65536)
            self.close_connection = True
        elif name == 'later':  # 503, in so many seconds
            self.answer(503, headers=[('Retry-After', value)])
        elif name == 'date':
            self.answer(429, headers=[('Retry-After', formatdate(time.time() + float(value), usegmt=True))])
        elif name == 'away':
            self.answer(302, headers=[('Location', 'http://127.0.0.1:9/')])
        elif name == 'nonsense':
            self.answer(200, b'\xff' * 20)
        elif name == 'partial':
            self.answer(200, b'\x0a' + bytes([len(partial)]) + partial, [('Content-Type', 'application/x-protobuf')])
        else:
            self.answer(200 if name == 'ok' else int(name))

    def do_POST(self):
        if self.path == '/v1development/profiles':
            self.take(take_otlp)
        elif self.path == '/push.v1.PusherService/Push':
            self.take(take_push)
        else:
            self.answer(404)

    def do_PUT(self):
        self.take(take_file)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):  # a sender that was killed is none of its errors
            super().handle_error(request, client_address)


def main():
    server = Server(('127.0.0.1', 0), Handler)
    if len(sys.argv) > 2:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    path = os.path.join(FOLDER, 'port')
    with open(path + '.new', 'w', encoding='ascii') as file:
        file.write(str(server.server_port))
    os.rename(path + '.new', path)
    server.serve_forever()


if __name__ == '__main__':
    main()

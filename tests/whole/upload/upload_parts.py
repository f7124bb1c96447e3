# SPDX-License-Identifier: Apache-2.0
"""What the tests of qut upload share: a trace, a receiver that can be killed, and an account read by its description."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RECEIVER = os.path.join(HERE, '..', '..', 'support', 'profile_receiver.py')
MASK = (1 << 64) - 1
failed = []


def check(what, good, text=''):
    if not good:
        failed.append(what)
        print(f'FAIL {what}: {str(text)[:1500]}')


def end(name):
    print(f'{name}: {"FAILED" if failed else "ok"}')
    return 1 if failed else 0


def folder():
    # In memory where that can be: a run syncs some ten times, and a disk that others use takes its time for it.
    return tempfile.TemporaryDirectory(dir='/dev/shm' if os.access('/dev/shm', os.W_OK) else None)


def make_trace(qut, golden_maker, path='golden.qtrace'):
    segment = f'/dev/shm/qut-upload-{os.getpid()}'
    try:
        subprocess.run([golden_maker, segment, 'close'], check=True)
        subprocess.run([qut, 'collect', '--quiet', segment, '-o', path], check=True)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(segment)


def run(*arguments, cache='cache'):
    return subprocess.run(arguments, capture_output=True, text=True, check=False, env={**os.environ, 'QUT_CACHE': os.path.abspath(cache)})


def balance(result):
    return result.stdout.strip().splitlines()[-1] if result.stdout.strip() else result.stderr


def has_curl(qut):
    return 'without libcurl' not in run(qut, 'upload', '--as', 'otlp', '--spool', 'probe', '--to', 'http://127.0.0.1:9').stderr


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def until_listens(process, port):
    """False: it ended, or does not come up."""
    until = time.monotonic() + 30
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(('127.0.0.1', port)) == 0:
                return True
        time.sleep(0.05)
    return False


def key_pair():
    """For tables: `key` and `pub`."""
    subprocess.run('openssl genpkey -algorithm ed25519 -out key && openssl pkey -in key -pubout -out pub', shell=True, check=True)


class Receiver:
    """`folder` keeps what it accepted: another process can go on with it, on another port."""

    def __init__(self, folder, *certificate):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.start(*certificate)

    def start(self, *certificate):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f'{self.folder}/port')
        self.process = subprocess.Popen([sys.executable, RECEIVER, self.folder, *certificate])
        until = time.monotonic() + 60
        while not os.path.exists(f'{self.folder}/port'):
            assert self.process.poll() is None and time.monotonic() < until, 'the receiver does not come up'
            time.sleep(0.02)
        with open(f'{self.folder}/port', encoding='ascii') as file:
            self.port = int(file.read())
        self.url = f'http://127.0.0.1:{self.port}'

    def script(self, *words):
        with open(f'{self.folder}/script', 'w', encoding='ascii') as file:
            file.write('\n'.join(words) + '\n' if words else '')

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def log(self):
        if not os.path.exists(f'{self.folder}/log'):
            return []
        with open(f'{self.folder}/log', encoding='utf-8') as file:
            return [json.loads(line) for line in file if line.endswith('\n')]

    def clear(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f'{self.folder}/log')
        self.script()


def hash_word(value, word):
    value = ((value ^ word) * 0x9e3779b97f4a7c15) & MASK
    return value ^ value >> 31


def checksum(text):
    value = 0
    for at in range(0, len(text) - 7, 8):
        value = hash_word(value, int.from_bytes(text[at:at + 8], 'little'))
    rest = text[len(text) // 8 * 8:]
    return hash_word(value, int.from_bytes(rest, 'little') ^ len(rest) << 56) if rest else value


def record(*words):
    text = ' '.join(words).encode().ljust(110)
    return text + b' ' + b'%016x' % checksum(text) + b'\n'


def read_account(spool):
    """taken, sent, dropped, split (lists of ids, each as often as it was), by its records alone; and what lies there. Of a short
    account that took the place of a long one also sums, "+sent" and others, of what was before: lists of numbers; and "known", ids."""
    ids = {'taken': [], 'sent': [], 'dropped': [], 'split': [], 'known': [], '+sent': [], '+dropped': [], '+split': [], '+reject': []}
    with open(f'{spool}/account', 'rb') as file:
        data = file.read()
    for at in range(0, len(data), 128):
        line = data[at:at + 128]
        if not line[0]:
            assert not any(data[at:])
            break
        words = line[:110].decode().split()
        if line != record(*words):
            assert not any(data[at + 128:]), f'record {at // 128}'
            break
        ids[words[0]].append(int(words[2]) if words[0][0] == '+' else words[1])
    waiting = sorted(name.split('.')[0] for name in os.listdir(spool) if name.split('.')[0].isalnum() and len(name.split('.')[0]) == 32)
    return ids, waiting

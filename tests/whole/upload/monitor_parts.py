# SPDX-License-Identifier: Apache-2.0
"""What the tests of qut monitor share: processes that store samples and say how many, and what qut monitor says of them."""
import contextlib
import os
import re
import subprocess

from upload_parts import Receiver, folder

SEGMENTS = 'segments'
TOLD = re.compile(r'windows (\d+); processes (\d+) now, (\d+) ended(?:, (\d+) whose segment vanished)?(?:, \d+ left alone [^\n;]*)?(?:; \d+ % of windows are taken)?(?:; the rate is halved \d+ times)?\n'
                  r'samples told (\d+) = in windows (\d+) \+ left out (\d+) \+ overwritten (\d+) \+ unreadable (\d+) \+ cut off (\d+)'
                  r'(?:; before they were stored: (\d+))?\n')
WORDS = ('windows', 'processes', 'ended', 'vanished', 'told', 'in_windows', 'left_out', 'overwritten', 'unreadable', 'cut_off', 'lost')


class Subject:
    number = 0

    def __init__(self, program, end='close', kibibytes=512, threads=2, samples=20, pause_us=2000, kind='other', in_memory=False,
                 within=()):
        Subject.number += 1
        self.path = '-' if in_memory else f'{SEGMENTS}/{Subject.number}'
        self.process = subprocess.Popen([*within, program, self.path, str(kibibytes), str(threads), str(samples), str(pause_us), end, kind],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end(self):
        """stored, lost: by its own count."""
        output, _ = self.process.communicate()
        assert self.process.returncode == 0, (self.path, self.process.returncode)
        return tuple(int(word) for word in output.split())

    def kill(self):
        self.process.kill()
        self.process.communicate()


def read_balance(output):
    match = TOLD.search(output)
    assert match, output
    return dict(zip(WORDS, (int(word or 0) for word in match.groups())))


def adds_up(balance):
    return balance['told'] == sum(balance[word] for word in ('in_windows', 'left_out', 'overwritten', 'unreadable', 'cut_off'))


def received(log):
    """The samples of what was accepted, each request once."""
    return sum(entry['sum'] for entry in {entry['id']: entry for entry in log if entry['accepted']}.values())


def segments():
    return os.listdir(SEGMENTS)


@contextlib.contextmanager
def receiving(once):
    """A folder to be in, with one of segments, and a receiver. None: this qut cannot send. once: as the tests have it."""
    with folder() as work, contextlib.ExitStack() as stack:
        os.chdir(work)
        os.mkdir(SEGMENTS)
        receiver = Receiver('receiver')
        stack.callback(receiver.kill)
        if 'without libcurl' in once('probe', '--to', receiver.url).stderr:
            print('SKIP: this qut was built without libcurl')
            receiver = None
        yield receiver

# SPDX-License-Identifier: Apache-2.0
"""The subject, calling without end, for tests that come to a process that runs."""
import subprocess

PATIENCE_S = 120


class Program:
    """That calls without end."""
    def __init__(self, subject):
        self.subject = subject

    def __enter__(self):
        self.process = subprocess.Popen([self.subject, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        return self.process

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

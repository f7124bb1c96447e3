# SPDX-License-Identifier: Apache-2.0
"""Runs a test's checks, functions, one after the other, and says of each how it went."""
import glob
import os
import shutil
import sys
import tempfile
import time


def run(*checks):
    """The first one that fails ends the test."""
    for check in checks:
        began = time.monotonic()
        try:
            check()
        except (AssertionError, AttributeError, IndexError, KeyError, StopIteration, ValueError) as error:
            sys.exit(f"FAIL {check.__name__}: {error!r}")
        print(f"ok {check.__name__}: {time.monotonic() - began:.1f} s", flush=True)


def run_in_a_folder(*checks, takes_away):
    """In a new folder, which is $TMPDIR as well; what each one leaves there of this pattern is gone before the next."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["TMPDIR"] = folder
        for check in checks:
            run(check)
            for left in glob.glob(takes_away):
                if os.path.isdir(left):
                    shutil.rmtree(left)
                else:
                    os.unlink(left)

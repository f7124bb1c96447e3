#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Code that is followed against unwind information, over cross compilers' libraries: 99 of 100 functions are followed, and
each difference has a reason that is known. usage: followed_test.py QUTC FILE...
"""
import json
import os
import re
import subprocess
import sys

FRAME = re.compile(r"cfa=(\w+)(?:([+-]\d+))? ra=(\S+)")
LINKS = ("x30", "lr", "ra")
BASES = ("sp", "x29", "r11", "r7", "s0")
# Of what nothing calls, and what does not return, no way proves what its caller left on the stack.
UNPROVEN = "nothing calls it and it does not return"


def reason(finding):
    """Why code and unwind information differ; None: not known."""
    stated, followed = finding["stated"], finding.get("followed", "")
    base, number, ra = FRAME.match(stated).groups()
    own = FRAME.match(followed)
    if base not in BASES or (own and own[1] not in BASES) or (ra[0] != "[" and ra not in LINKS):
        return "goes over to a context that a register has: longjmp, setcontext, clone, profilers"
    if finding["what"] == "CFA" and base == "x29" and own and own[1] == "sp" and own[2] == number:
        return "gcc 12 states x29 where the epilogue has loaded the caller's already"
    if finding["what"] == "CFA" and base == "x29" and own and own[1] == "x29":
        return "is entered with a frame that its callers began: __hwasan_tag_mismatch"
    if finding["what"] in followed and f"{finding['what']}=" not in stated:
        return ("overwrites registers and never returns" if f"{finding['what']}=undefined" in followed else
                "a landing pad stands behind a call that does not return")
    return None


def main():
    qutc, files = sys.argv[1], [path for path in sys.argv[2:] if os.path.exists(path)]
    if not files:
        print("SKIP: no cross compiler's library")
        return 77
    failed = 0
    for path in files:
        run = subprocess.run([qutc, "lint", "--json", path], capture_output=True, text=True)
        [report] = json.loads(run.stdout)
        outcomes = report["outcomes"]
        followed, of = outcomes["followed"], report["functions"] - outcomes.get(UNPROVEN, 0)
        reasons = {}
        for finding in report["findings"]:
            why = reason(finding)
            reasons[why] = reasons.get(why, 0) + 1
            if why is None:
                print(f"{path}: {finding['start']:#x}: {json.dumps(finding)}")
        few = followed * 100 < of * 99
        failed += few or None in reasons
        print(f"{path}: {followed} of {of} functions followed{' (too few)' * few}, "
              f"{report['not_stated']} of {report['instructions']} instructions have no exact rule stated; {reasons}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

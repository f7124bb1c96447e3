#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The judge of whole walks finds what it is there for."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support/live"))
import verdict
from walkers import Walk

CASES = [
    ("all the same", [1, 2, 3], "", [1, 2, 3], [1, 2, 3], verdict.EQUAL),
    ("both against us", [1, 9, 3], "", [1, 2, 3], [1, 2, 3], verdict.DIFFER),
    ("everybody says something else", [1, 9, 3], "", [1, 2, 3], [1, 8, 3], verdict.DIFFER),
    ("one against us, the other silent", [1, 9, 3], "", [1, 2, 3], [1], verdict.DIFFER),
    ("one against us and the other", [1, 2, 3], "", [1, 9, 3], [1, 2, 3], verdict.ONE_DIFFERS),
    ("the innermost frame", [9, 2], "", [1, 2], [1, 2], verdict.DIFFER),
    ("two frames swapped", [1, 3, 2], "", [1, 2, 3], [1, 2, 3], verdict.DIFFER),
    ("a frame left out", [1, 3], "", [1, 2, 3], [1, 2, 3], verdict.DIFFER),
    ("we stop, with a reason", [1, 2], "no module", [1, 2, 3], [1, 2, 4], verdict.WE_END),
    ("we stop, with a reason, after a wrong frame", [1, 9], "no module", [1, 2, 3], [1, 2, 4], verdict.DIFFER),
    ("we say that it is the end", [1, 2], "", [1, 2, 3], [1, 2, 3], verdict.DIFFER),
    ("we and one say that it is the end", [1, 2], "", [1, 2, 3], [1, 2], verdict.ONE_DIFFERS),
    ("nothing, without a reason", [], "", [1], [1], verdict.DIFFER),
    ("they stop", [1, 2, 3], "", [1, 2], [1, 2, 3], verdict.THEY_END),
]

# Our first frame of code that states nothing to the others is number 1.
BEYOND = [
    ("each goes on in its own way", [1, 2, 3, 4], "", [1, 2, 5], [1, 2, 6], verdict.THEY_CANNOT),
    ("one goes on in its own way, the other ends", [1, 2, 3, 4], "", [1, 2, 5], [1, 2], verdict.THEY_CANNOT),
    ("both agree against us", [1, 2, 3, 4], "", [1, 2, 5], [1, 2, 5], verdict.DIFFER),
    ("before that frame", [1, 9, 3, 4], "", [1, 2, 5], [1, 2, 6], verdict.DIFFER),
    ("we end, too", [1, 2, 3], "no module", [1, 2, 5], [1, 2, 6], verdict.DIFFER),
    ("both as we do", [1, 2, 3], "", [1, 2, 3], [1, 2, 3], verdict.EQUAL),
]

failed = 0
for name, ours, end, first, second, wanted in CASES + BEYOND:
    unread = None if (name, ours, end, first, second, wanted) in CASES else 1
    for others in ({"a": Walk(first), "b": Walk(second)}, {"a": Walk(second), "b": Walk(first)}):
        got = verdict.judge(Walk(ours, end), others, unread).kind
        if got != wanted:
            failed += 1
            print(f"FAIL {name}: {got}, wanted {wanted}")
print(f"{2 * len(CASES + BEYOND) - failed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)

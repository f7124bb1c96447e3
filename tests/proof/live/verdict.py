# SPDX-License-Identifier: Apache-2.0
"""Compares the walks of one thread. Who stops short of another says less, not something else."""
from dataclasses import dataclass

EQUAL = "equal"
WE_END = "we end earlier"
THEY_END = "they end earlier"
ONE_DIFFERS = "one of them differs"
DIFFER = "differ"
THEY_CANNOT = "they cannot read it"


@dataclass
class Verdict:
    kind: str
    detail: str = ""  # WE_END: our reason; THEY_END, ONE_DIFFERS, THEY_CANNOT: which tool
    index: int = 0  # of the first frame where it is so


def first_difference(ours, other):
    """The index of the first frame where both have one and they differ, else None."""
    for index, (mine, theirs) in enumerate(zip(ours, other)):
        if mine != theirs:
            return index
    return None


def judge(ours, others, unread=None):
    """`ours`: Walk; `others`: {name: Walk}. Nobody but us is in the wrong where all others agree against us. `unread`: index
    of our first frame of code that states nothing to them, which they leave by guesses, each by its own."""
    mine = ours.pcs
    differ = {name: index for name, walk in others.items()
              if (index := first_difference(mine, walk.pcs)) is not None}
    beyond = unread is not None and not ours.end and all(index > unread for index in differ.values())
    if beyond and differ and len({tuple(walk.pcs) for walk in others.values()}) == len(others):
        return Verdict(THEY_CANNOT, ", ".join(sorted(differ)), min(differ.values()))
    for name, index in differ.items():
        # Only another tool that gives the same pc as we do, there, makes it theirs.
        if not any(len(walk.pcs) > index and walk.pcs[:index + 1] == mine[:index + 1] for walk in others.values()):
            return Verdict(DIFFER, name, index)
    if differ:
        return Verdict(ONE_DIFFERS, ", ".join(sorted(differ)), min(differ.values()))

    longest = max(len(walk.pcs) for walk in others.values())
    if longest > len(mine):
        further = [name for name, walk in others.items() if len(walk.pcs) > len(mine)]
        if ours.end:
            return Verdict(WE_END, ours.end, len(mine))
        # We claim that there is no caller.
        if len(further) == len(others):
            return Verdict(DIFFER, "after our outermost frame", len(mine))
        return Verdict(ONE_DIFFERS, further[0] + " goes on after the outermost frame", len(mine))
    shorter = {name: len(walk.pcs) for name, walk in others.items() if len(walk.pcs) < len(mine)}
    if shorter:
        return Verdict(THEY_END, ", ".join(sorted(shorter)), min(shorter.values()))
    return Verdict(EQUAL)

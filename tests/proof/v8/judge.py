# SPDX-License-Identifier: Apache-2.0
"""What a stack of the subject may be, by what stands behind its lines (subject.js says how)."""
import os
import re
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
SUBJECT = os.path.join(HERE, "subject.js")
LINK = re.compile(r"([\w():]+) -> ([\w, ]+)")


@dataclass
class Frame:
    name: str
    file: str = ""  # "" of a native frame
    line: int = 0
    is_script: bool = False
    is_guessed: bool = False

    def __str__(self):
        return f"{self.name}:{self.line}" if self.is_script else f"[{self.name}]"


@dataclass
class Verdict:
    total: int = 0
    in_script: int = 0   # stacks in which the program's function main is
    whole: int = 0       # from the outermost frame on
    guessed: int = 0     # with a frame that rests on a guess
    frames: int = 0      # of JavaScript
    links: int = 0       # pairs of functions of which one may call the other
    lines: int = 0       # ... at that line
    unknown: int = 0     # code that was made and has no name
    wrong: list = field(default_factory=list)


class Judge:
    def __init__(self, inlines=True, has_lines=True):
        """inlines: functions may be missing, since they were inlined into others. has_lines: functions without a name are
        called by their lines."""
        self.inlines = inlines
        self.outermost = ["main", "(anonymous:1)" if has_lines else "(anonymous)"]
        self.at, self.calls = {}, {}
        with open(SUBJECT, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                links = line.partition(" // ")[2]
                for caller, names in LINK.findall(links if has_lines else re.sub(r"\(anonymous:\d+\)", "(anonymous)", links)):
                    for name in names.split(","):
                        self.calls.setdefault(caller, set()).add(name.strip())
                        self.at.setdefault(number, {}).setdefault(caller, set()).add(name.strip())
        self.reach = {name: self.reachable(name) for name in self.calls}

    def reachable(self, name):
        found, todo = set(), [name]
        while todo:
            for callee in self.calls.get(todo.pop(), ()):
                if callee not in found:
                    found.add(callee)
                    todo.append(callee)
        return found

    def judge(self, frames, verdict, is_whole):
        """frames: the innermost first."""
        verdict.total += 1
        own = [frame for frame in frames if frame.is_script and frame.file == SUBJECT]
        verdict.frames += sum(frame.is_script for frame in frames)
        verdict.guessed += any(frame.is_guessed for frame in frames)
        verdict.whole += is_whole
        names = [frame.name for frame in own]
        if "main" not in names:
            return
        verdict.in_script += 1
        if names[-2:] != self.outermost:
            verdict.wrong.append((f"begins with {names[-2:]}", frames))
            return
        for inner, outer in zip(own, own[1:]):
            allowed = self.calls.get(outer.name, set())
            through = self.reach.get(outer.name, set())
            if inner.name in allowed or (self.inlines and inner.name in through):
                verdict.links += 1
            else:
                verdict.wrong.append((f"{outer.name} does not call {inner.name}", frames))
                return
            if outer.line:
                at = self.at.get(outer.line, {}).get(outer.name, set())
                if inner.name in at or (self.inlines and any(inner.name in self.reach.get(name, ()) for name in at)):
                    verdict.lines += 1
                else:
                    verdict.wrong.append((f"line {outer.line} of {outer.name} does not call {inner.name}", frames))
                    return

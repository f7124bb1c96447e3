# SPDX-License-Identifier: Apache-2.0
"""What a stack of the subject may be, by what stands behind its lines (subject.py says how)."""
import ast
import os
import re
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
LINK = re.compile(r"(->|=>) ([^;]+)")
MADE = re.compile(r"/made/made_(\d+)\.py")
# Behind these the subject's own frames begin.
ROOTS = {"run", "w0", "<module>"}
AROUND = {"_bootstrap", "_bootstrap_inner", "run"}  # of threading.py


@dataclass(frozen=True)
class Frame:
    name: str
    file: str  # "" of a native frame
    line: int = 0
    is_guessed: bool = False

    @property
    def is_known(self):
        return self.file not in ("?", "[unknown]")

    @property
    def is_python(self):
        return self.file != ""

    def __str__(self):
        return f"{self.name} {os.path.basename(self.file)}:{self.line}" if self.is_python else f"[{self.name}]"


@dataclass
class Verdict:
    total: int = 0
    samples: int = 0
    named: int = 0  # have functions
    whole: int = 0  # from where the program begins to a function of its own
    frames: int = 0
    links: int = 0  # pairs of functions of which one may call the other
    unknown: int = 0  # functions without a name
    wrong: list = field(default_factory=list)

    def add(self, other, times):
        """What was seen of a stack, that was met so often."""
        for name in ("total", "named", "whole", "frames", "links", "unknown"):
            setattr(self, name, getattr(self, name) + getattr(other, name) * times)
        self.wrong += other.wrong * times


class Source:
    """Lines of a file: who may be called there, and where functions begin and end."""

    def __init__(self, path, first_line=1):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.links, self.functions = {}, {}
        for number, line in enumerate(text.splitlines(), first_line):
            if "#" not in line or line.lstrip().startswith("#"):
                continue
            for kind, names in LINK.findall(line[line.index("#"):]):
                for name in names.split(","):
                    self.links.setdefault(number, {}).setdefault(name.strip(), set()).add(kind)
        self.add(ast.parse(text), "", first_line - 1)
        self.functions["<module>"] = [(1, len(text.splitlines()) + first_line)]

    def add(self, node, prefix, shift):
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.GeneratorExp)):
                name = prefix + {ast.Lambda: "<lambda>", ast.GeneratorExp: "<genexpr>"}.get(type(child)) \
                    if isinstance(child, (ast.Lambda, ast.GeneratorExp)) else prefix + child.name
                first = min([child.lineno] + [item.lineno for item in getattr(child, "decorator_list", [])])
                self.functions.setdefault(name, []).append((first + shift, child.end_lineno + shift))
                inner = name + ("." if isinstance(child, ast.ClassDef) else ".<locals>.")
            self.add(child, inner, shift)


class Judge:
    def __init__(self, minor, is_stripped=False):
        self.minor = minor
        self.is_stripped = is_stripped  # parts of its evaluator have no name
        self.subject = Source(os.path.join(HERE, "subject.py"))
        self.sub = Source(os.path.join(HERE, "sub.py"), 2)

    def short(self, name):
        """Before 3.11 a code object has the last part of the name."""
        return name if self.minor >= 11 else name.rsplit(".", 1)[-1]

    def source_of(self, frame):
        if os.path.basename(frame.file) == "subject.py":
            return self.subject
        return self.sub if frame.file in ("<string>", "<script>") else None

    def place_fault(self, frame):
        """Whether the function has the line."""
        if made := MADE.fullmatch(frame.file):
            names = {"<module>": (1, 5), "made_" + made.group(1): (1, 2)}
            if frame.name not in names:
                return f"{frame.name} is not of {frame.file}"
            first, last = names[frame.name]
            first = 0 if frame.name == "<module>" else first  # before its first line
            return None if first <= frame.line <= last else f"line {frame.line} is not of {frame.name}"
        ranges = [found for name, all_of in self.source_of(frame).functions.items()
                  if self.short(name) == frame.name for found in all_of]
        if not ranges:
            return f"no function {frame.name}"
        # Line 0: of what the compiler added.
        return None if any(first <= frame.line <= last for first, last in ranges) or (
            frame.line == 0 and self.minor >= 10) else f"line {frame.line} is not of {frame.name}"

    def link_kinds(self, caller, callee):
        """How it may: of "->", "=>"; none: the line calls nothing of that name."""
        if made := MADE.fullmatch(caller.file):
            number = made.group(1)
            links = {("<module>", 5): "made_" + number, ("made_" + number, 2): "x1"}
            return {"->"} if links.get((caller.name, caller.line)) == callee.name else set()
        if MADE.fullmatch(callee.file) and callee.name != "<module>":
            return set()
        kinds = set()
        for name, allowed in self.source_of(caller).links.get(caller.line, {}).items():
            if self.short(name) == callee.name:
                kinds |= allowed
        return kinds

    def is_own(self, frame):
        return frame.is_python and (self.source_of(frame) is not None or bool(MADE.fullmatch(frame.file)))

    def fault_of(self, stack, seen):
        """stack: innermost first. None, or what cannot be."""
        pythons = [index for index, frame in enumerate(stack) if frame.is_python]
        own = [index for index in pythons if self.is_own(stack[index])]
        if not own:
            return None
        seen.named += 1
        for index in pythons:
            seen.frames += 1
            if not stack[index].is_known:
                seen.unknown += 1
            elif index not in own and index < own[-1] and "threading" not in stack[index].file:
                return f"a function of another file: {stack[index]}"
            if index in own and (fault := self.place_fault(stack[index])):
                return fault
        for callee, caller in zip(own, own[1:]):
            if [index for index in pythons if callee < index < caller]:
                continue
            if stack[caller].line == 0:  # not known: code that had gone when it was asked for
                continue
            kinds = self.link_kinds(stack[caller], stack[callee])
            if not kinds:
                return f"{stack[caller]} does not call {stack[callee]}"
            native = caller - callee > 1
            if kinds == {"=>"} and not native and self.minor < 13:
                return f"{stack[caller]} calls {stack[callee]} by way of C"
            seen.links += 1
        seen.whole += stack[own[-1]].name in ROOTS or stack[own[-1]].name.endswith("run")
        if stack[own[-1]].name not in ROOTS:
            return f"begins with {stack[own[-1]]}"
        if stack[-1].name.startswith("[") and stack[-1].name != "[unknown]":
            return None  # the walk ended early, and says why: functions stand behind what there is of it
        for index in pythons:  # an evaluator before each group
            if index > 0 and not stack[index - 1].is_python and "EvalFrame" not in stack[index - 1].name and \
                    not stack[index - 1].name.endswith(".cold") and not (self.is_stripped and stack[index - 1].name.startswith(("?", "python3."))):
                return f"{stack[index]} behind {stack[index - 1]}"
        return None

    def judge(self, stack, seen, times=1):
        one = Verdict(total=1)
        if fault := self.fault_of(stack, one):
            one.wrong.append((fault, stack))
        seen.add(one, times)

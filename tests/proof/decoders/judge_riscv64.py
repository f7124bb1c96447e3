# SPDX-License-Identifier: Apache-2.0
"""What an RV64 instruction does to the general registers, by the disassembler's text alone."""
import re

from judge import Expected

WORD = 8
RANDOM = "-D -b binary -m riscv:rv64"
ABI = ("zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6").split()
NAMES = ABI
STORES = re.compile(r"^f?s[bhwdq]$")
BRANCHES = re.compile(r"^b(eq|ne|lt|ge|gt|le)u?z?$")
STOPS = ("ebreak", "unimp", "mret", "sret", "uret", "dret", "mnret")
SILENT = ("nop", "fence", "fence.i", "fence.tso", "pause", "wfi", "wrs.nto", "wrs.sto")
SILENT_BEGINNINGS = ("vs", "cbo.", "prefetch", "sfence", "hfence", "sinval", "hinval", "hsv", "csrw", "csrs", "csrc")


def number(text):
    return int(text, 0)


def target(text):
    found = re.search(r"(?:^|[ ,])(?:0x)?([0-9a-f]+)(?: <.*)?$", text)
    return int(found.group(1), 16) if found else None


def judge(name, text, address, _mode):
    if name[0] == "." or "undefined" in text:
        return None
    e = Expected()
    plain = re.sub(r"\s*(#|<).*", "", text)
    ops = [part.strip() for part in plain.split(",") if part.strip()]
    first = ops[0] if ops else ""
    to = first if first in ABI and first != "zero" else None
    memory = re.match(r"^(-?\w+)?\((\w+)\)$", ops[-1]) if ops else None
    if BRANCHES.match(name):
        e.flow("branch", target(text))
    elif name in ("j", "jal", "jr", "jalr", "ret"):
        jump(e, name, ops, text)
    elif name in STOPS:
        e.flow("stop")
    elif name == "ecall":
        e.flow("system")
        e.unknown("a0")
    elif STORES.match(name):
        if name == "sd" and memory.group(2) != "zero" and first != "zero":
            e.store(first, memory.group(2), number(memory.group(1) or "0"))
    elif name in SILENT or name.startswith(("vs",  "cbo.", "prefetch", "sfence", "hfence", "sinval", "hinval", "hsv")):
        if to and name.startswith("vset"):
            e.unknown(to)
    elif not to or (name in ("fsflags", "fscsr", "fsrm", "csrw", "csrs", "csrc") and len(ops) == 1):
        pass
    elif name == "ld" and memory.group(2) != "zero":
        e.load(to, memory.group(2), number(memory.group(1) or "0"))
    elif name in ("mv", "sext.w") and (name == "mv" or ops[1] == "zero"):
        copy(e, to, ops[1], 0)
    elif name == "li":
        e.constant(to, number(ops[1]) & (1 << 64) - 1)
    elif name == "lui":
        e.constant(to, ((number(ops[1]) ^ 0x80000) - 0x80000 << 12) & (1 << 64) - 1)
    elif name == "auipc":
        e.constant(to, address + ((number(ops[1]) ^ 0x80000) - 0x80000 << 12) & (1 << 64) - 1)
    elif name in ("add", "addi") and re.match(r"^-?\d", ops[2]):
        copy(e, to, ops[1], number(ops[2]))
    elif name == "addw" and ops[1] == "zero" and re.match(r"^-?\d", ops[2]):
        copy(e, to, "zero", number(ops[2]))
    elif name in ("add", "sub") and ops[2] == "zero":
        copy(e, to, ops[1], 0)
    elif name in ("add", "sh1add", "sh2add", "sh3add") and ops[1] == "zero":
        copy(e, to, ops[2], 0)
    elif name in ("add", "sub") and ops[1] != "zero":
        e.add_register(to, ops[1], ops[2], name == "sub")
    elif name in ("and", "andi") and re.match(r"^-\d", ops[2]) and -number(ops[2]) & -number(ops[2]) - 1 == 0 and ops[1] != "zero":
        e.align(to, ops[1], -number(ops[2]))
    else:
        e.unknown(to)
    return e


def copy(e, to, source, by):
    if source == "zero":
        e.constant(to, by & (1 << 64) - 1)
    else:
        e.add(to, source, by)


def jump(e, name, ops, text):
    link = "zero" if name in ("j", "jr", "ret") else ops[0] if len(ops) > 1 else "ra"
    if link not in ("zero", "ra"):
        e.unknown("sp")
    if name in ("jr", "ret", "jalr"):
        returns = name == "ret" or (link == "zero" and ops[-1] in ("ra", "0(ra)"))
        e.flow("return" if returns else "jump" if link == "zero" else "call")
    else:
        e.flow("jump" if link == "zero" else "call", target(text))

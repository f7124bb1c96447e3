# SPDX-License-Identifier: Apache-2.0
"""What an A64 instruction does to the general registers, by the disassembler's text alone."""
import re

from judge import Expected

X = re.compile(r"^[xw](\d+)$")
MEMORY = re.compile(r"\[([^\]]*)\](!?)(?:, ([^\s\[]+))?")
WORD = 8
RANDOM = "-D -b binary -m aarch64"
NAMES = [f"x{number}" for number in range(31)] + ["sp"]
STATUSES = re.compile(r"^(stl?xr[bh]?|stl?xp|st64bv0?)$")
READS_ALL = re.compile(r"^(st|cmp|cmn|tst|ccm|cb|tb|b$|b\.|bl|br|ret|prfm|msr|nop|hint|bti|dmb|dsb|isb|sys$|dc$|ic$|yield|wf|sev|"
                       r"fcmp|fccmp|clrex|cterm|rmif|setf|pssbb|ssbb|sb$|csdb|hlt|dcps|xpaclri|pac|aut|brk|udf|esb|cfinv)")


def operands(text):
    """The operands, those in brackets as one."""
    text = re.sub(r"\s*(//|<).*", "", text)
    return [part.strip() for part in re.findall(r"(?:\[[^\]]*\]!?|\{[^}]*\}(?:\[\d+\])?|[^,])+", text) if part.strip()]


def register(text):
    """(name, whole) of a general register, None of zr and all else."""
    if text in ("sp", "wsp"):
        return "sp", text == "sp"
    match = X.match(text)
    return (f"x{match.group(1)}", text[0] == "x") if match else None


def number(text):
    return int(text.lstrip("#"), 0)


def judge(name, text, _address, _mode):
    if name[0] == "." or "undefined" in text:
        return None
    e = Expected()
    ops = operands(text)
    first = register(ops[0]) if ops else None
    memory = None
    for memory in MEMORY.finditer(text): # the last: elements of vectors stand before
        pass
    base = offset = None
    if memory and name[:2] in ("ld", "st"):
        inner = [part.strip() for part in memory.group(1).split(",")]
        base = (register(inner[0]) or [None])[0]
        offset = 0 if len(inner) == 1 else number(inner[1]) if len(inner) == 2 and inner[1][0] == "#" else None
        after = memory.group(3)
        if memory.group(2):
            e.add(base, base, offset) if offset is not None else e.unknown(base)
        elif after:
            e.add(base, base, number(after)) if after[0] == "#" else e.unknown(base)
    flows(e, name, text, ops)
    if re.match(r"^(ld[rp]|ldu?r|ldpsw|st[gn]?p|stu?r|stll?u?r|sttr|ldtr|ldnp|ldapur)$", name):
        pair = "p" in name[2:4]
        for i, op in enumerate(ops[:2 if pair else 1]):
            at = register(op)
            whole = (at and at[1]) and name != "ldpsw"
            if name[0] == "s":
                if at and whole and offset is not None and not (at[0] == base and memory.group(2)):
                    e.store(at[0], base, offset + i * WORD)
            elif at and whole and offset is not None:
                e.load(at[0], base, offset + i * WORD)
            elif at:
                e.unknown(at[0])
    elif name[:2] == "ld" or name[:3] in ("cas", "swp"):
        for op in ops[1 if re.match(r"^(ldadd|ldclr|ldeor|ldset|lds[a-z]*(max|min)|ldu(max|min)|swp)", name) else 0:]:
            if op[0] == "[":
                break
            if register(op):
                e.unknown(register(op)[0])
            if name[:3] == "cas":
                if name[3:4] != "p":
                    break
                if op is ops[1]:
                    break
    elif STATUSES.match(name):
        if first:
            e.unknown(first[0])
    elif name == "xpaclri":
        e.change("auth")
    elif re.match(r"^paci[ab](sp|z)$", name):
        e.change("sign")
    elif re.match(r"^auti[ab](sp|z)$", name):
        e.change("auth")
    elif re.match(r"^(pac|aut)i[ab]1716$", name):
        e.unknown("x17")
    elif name in ("svc", "hvc", "smc"):
        for i in range(1 if name == "svc" else 18):
            e.unknown(f"x{i}")
        e.flow("system")
    elif name[:3] in ("cpy", "set") and "!" in text:
        for op in ops:
            if register(op.strip("[]!")):
                e.unknown(register(op.strip("[]!"))[0])
    elif READS_ALL.match(name) or not first:
        pass
    elif name in ("adr", "adrp") and first:
        e.constant(first[0], target(text))
    elif name in ("add", "sub", "adds", "subs", "mov", "and", "ands", "orr"):
        arithmetic(e, name, ops, first)
    else:
        e.unknown(first[0])
    return e


def arithmetic(e, name, ops, first):
    name = name[:3]
    source = register(ops[1]) if len(ops) > 1 else None
    to, whole = first
    if whole and name == "mov" and source:
        e.add(to, source[0], 0)
    elif name == "mov" and ops[1][0] == "#":
        e.constant(to, number(ops[1]) & ((1 << 64 if whole else 1 << 32) - 1))
    elif name == "orr" and ops[1][1:] == "zr" and ops[2][0] == "#":
        e.constant(to, number(ops[2]) & ((1 << 64 if whole else 1 << 32) - 1))
    elif name == "mov" and ops[1][1:] == "zr":
        e.constant(to, 0)
    elif whole and name in ("add", "sub") and source and ops[2][0] == "#":
        by = number(ops[2])
        if len(ops) == 4:
            by <<= number(ops[3].split()[1])
        e.add(to, source[0], -by if name == "sub" else by)
    elif whole and name in ("add", "sub") and source and re.match("^[xw]zr", ops[2]):
        e.add(to, source[0], 0)
    elif whole and name in ("add", "sub") and source and register(ops[2]) and ops[3:] in ([], ["uxtx"], ["sxtx"]):
        e.add_register(to, source[0], register(ops[2])[0], name == "sub")
    elif whole and name == "and" and source and ops[2][0] == "#":
        low = -(number(ops[2]) - (1 << 64)) if number(ops[2]) >> 63 else 0
        if 0 < low < 1 << 63 and low & (low - 1) == 0:
            e.align(to, source[0], low)
        else:
            e.unknown(to)
    else:
        e.unknown(to)


def target(text):
    found = re.search(r"(?:^|[ ,])(?:0x)?([0-9a-f]+)(?: <|$)", text)
    return int(found.group(1), 16) if found else None


def flows(e, name, text, ops):
    if name in ("bl", "blr") or name.startswith("blra"):
        e.flow("call", target(text) if name == "bl" else None)
    elif name in ("ret", "retaa", "retab"):
        e.flow("return")
    elif name in ("b", "b.al", "b.nv", "bc.al", "bc.nv"):
        e.flow("jump", target(text))
    elif name.startswith(("b.", "bc.")) or name in ("cbz", "cbnz", "tbz", "tbnz"):
        e.flow("branch", target(text))
    elif re.match(r"^bra?[ab]?z?$", name):
        e.flow("jump")
    elif name in ("brk", "udf", "hlt", "eret", "eretaa", "eretab", "drps", "tcancel", "dcps1", "dcps2", "dcps3"):
        e.flow("stop")

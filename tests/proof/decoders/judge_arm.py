# SPDX-License-Identifier: Apache-2.0
"""What an A32 or T32 instruction does to the core registers, by the disassembler's text alone."""
import re

from judge import Expected

WORD = 4
RANDOM = ["-D -b binary -m armv8-a", "-D -b binary -m armv8-a -M force-thumb"]
NAMES = [f"r{number}" for number in range(13)] + ["sp", "lr", "pc"]
OTHER_NAMES = {"sl": "r10", "fp": "r11", "ip": "r12", "r13": "sp", "r14": "lr", "r15": "pc", "sb": "r9"}
CONDITIONS = "eq ne cs cc mi pl vs vc hi ls ge lt gt le al hs lo".split()
SILENT = """cmp cmn tst teq nop pld pldw pli dmb dsb isb msr cps cpsie cpsid setend setpan clrex yield wfe wfi sev sevl dbg
csdb esb pssbb ssbb sb cdp cdp2 mcr mcr2 mcrr mcrr2 ldc ldc2 ldcl ldc2l stc stc2 stcl stc2l tsb""".split()
TWO = """umull smull umlal smlal umaal smlalbb smlalbt smlaltb smlaltt smlald smlaldx smlsld smlsldx mrrc mrrc2""".split()
LOADS = {"ldr": 4, "ldrb": 1, "ldrh": 2, "ldrsb": 1, "ldrsh": 2, "ldrt": 4, "ldrbt": 1, "ldrht": 2, "ldrsbt": 1, "ldrsht": 2}
STORES = {"str": 4, "strb": 1, "strh": 2, "strt": 4, "strbt": 1, "strht": 2}
MANY = {f"{way}{kind}": (way == "ldm", kind) for way in ("ldm", "stm") for kind in ("", "ia", "ib", "da", "db")}
EXCLUSIVE = "strex strexb strexh stlex stlexb stlexh strexd stlexd".split()
PLAIN = """mov movw movt mvn add addw sub subw and bic eor orr orn adc sbc rsb rsc lsl lsr asr ror rrx mul mla mls adr
b bl blx bx bxj cbz cbnz tbb tbh svc hvc smc hlt bkpt udf push pop ldrd strd swp swpb ldrex ldrexb ldrexh ldrexd lda ldab ldah
ldaex ldaexb ldaexh ldaexd stl stlb stlh mrs mrc mrc2 neg""".split()
# Data; crc32, whose result binutils names wrongly; instructions of coprocessors long gone, of the small processors that have no A32, and of no processor.
NO_INSTRUCTION = re.compile(r"^([.@;]|bl?xns|lfm|sfm|ldf|stf|cf|w(ld|st))|<(und|ill|inv|over|bad)|undefined|UNDEF|"
                            r"unpredictable|UNPREDICTABLE|\?|#-0$|(FPSCR|VPR|P0|FPCX).*\]|^crc32")
# May have pc as their destination.
TO_PC = """mov mvn add sub and bic eor orr adc sbc rsb rsc lsl lsr asr ror rrx neg ldr movs mrc""".split()
BRANCHES = "b bl blx bx bxj cbz cbnz".split()
STEMS = set(SILENT) | set(TWO) | set(LOADS) | set(STORES) | set(MANY) | set(EXCLUSIVE) | set(PLAIN)


def split(name):
    """(stem, sets flags, condition)"""
    name = re.sub(r"\.[wn]$", "", name)
    for length in range(len(name), 0, -1):
        stem, rest = name[:length], name[length:]
        if stem not in STEMS:
            continue
        for flags in ("", "s") if stem not in BRANCHES else ("",):
            for condition in [""] + CONDITIONS:
                if rest == flags + condition:
                    return stem, bool(flags), condition
    return None, False, ""


def register(text):
    text = OTHER_NAMES.get(text, text)
    return text if text in NAMES else None


def operands(text):
    text = re.sub(r"\s*([;@]|<).*", "", text)
    return [part.strip() for part in re.findall(r"(?:\[[^\]]*\]!?|\{[^}]*\}\^?|[^,])+", text) if part.strip()]


def number(text):
    value = int(text.lstrip("#"), 0)
    return value - (1 << 32) if value >= 1 << 31 else value


def target(text):
    found = re.search(r"(?:^|[ ,])(?:0x)?([0-9a-f]+)(?: <.*)?$", text)
    # In an object file 0 is what a relocation says.
    return int(found.group(1), 16) or None if found else None


def memory(ops, i):
    """(base, offset, after, writes back) of operand i and what follows; offset None: a register."""
    inner, bang = re.match(r"\[([^\]]*)\](!?)", ops[i]).groups()
    inner = [part.strip() for part in inner.split(",")]
    after = ops[i + 1] if len(ops) > i + 1 else None
    base = register(inner[0].split(":")[0])
    text = after or (inner[1] if len(inner) > 1 and not inner[1].startswith(":") else "#0")
    offset = number(text) if text[0] == "#" else None
    return base, offset, after is not None, bool(bang) or after is not None


def listed(text):
    found = []
    for part in filter(None, text.strip("{}^").split(",")):
        ends = [NAMES.index(register(end.strip())) for end in part.split("-")]
        found += NAMES[ends[0]:ends[-1] + 1]
    return sorted(found, key=NAMES.index)


in_block = 0 # how many instructions more are made conditional by `it`


def is_skipped(name):
    """A branch that `it` makes conditional is a jump by its own bits."""
    global in_block
    skips = in_block > 0 and name[0] == "b" and split(name)[0] == "b"
    in_block = len(name) - 1 if re.match(r"^it[te]*$", name) else max(in_block - 1, 0)
    return skips


def mode(groups):
    return int(len(groups[0]) == 4)


def to_pc(e, base, sp_too=False):
    e.flow("return" if base == "sp" or sp_too else "jump")


def move_many(e, loads, kind, base, regs, writes_back):
    size, up = 4 * len(regs), kind in ("", "ia", "ib")
    at = (0 if up else -size) + (4 if kind in ("ib", "da") else 0)
    for reg in regs:
        if loads and reg == "pc":
            to_pc(e, base, "sp" in regs)
        elif loads and reg == base and writes_back:
            e.unknown(reg)
        elif loads:
            e.load(reg, base, at)
        elif reg != "pc" and not (reg == base and writes_back):
            e.store(reg, base, at)
        at += 4
    if writes_back and not (loads and base in regs):
        e.add(base, base, size if up else -size)


def move_one(e, ops, regs, loads, whole):
    base, offset, after, writes_back = memory(ops, len(regs))
    exact = offset is not None and base != "pc"
    if writes_back and base not in (regs if loads else ()):
        e.add(base, base, offset) if exact else e.unknown(base)
    for i, reg in enumerate(regs):
        at = (0 if after else offset) if exact or after else None
        if loads and reg == "pc":
            to_pc(e, base)
        elif loads and whole and at is not None and base != "pc" and not (writes_back and base == reg):
            e.load(reg, base, at + 4 * i)
        elif loads:
            e.unknown(reg)
        elif whole and at is not None and base != "pc" and reg != "pc" and not (reg == base and writes_back):
            if not (writes_back and not exact and not after):
                e.store(reg, base, at + 4 * i)


def vectors(e, name, ops, text):
    name = name.split(".")[0]
    ends = [int(end) for pair in re.findall(r"\{[ds](\d+)-[ds](\d+)\}", text) for end in pair]
    if "{}" in text or ends != sorted(ends):
        return False
    if re.match(r"^v(push|pop)", name):
        wide = ops[0].lstrip("{")[0] == "d"
        count = ends[1] - ends[0] + 1 if ends else len(ops[0].split(","))
        e.add("sp", "sp", count * (8 if wide else 4) * (-1 if name.startswith("vpush") else 1))
    elif re.match(r"^(v(ld|st)m|f(ld|st)m)", name):
        if ops[0].endswith("!"):
            e.any(register(ops[0][:-1]))
    elif re.match(r"^v(ld|st)[1-4]", name):
        inner = [op for op in ops if op[0] == "["][-1]
        if inner.endswith("!") or register(ops[-1]):
            e.any(register(re.split(r"[\],: ]", inner[1:])[0]))
    elif name.startswith(("vmov", "vmrs")):
        for op in ops:
            if not register(op) or op == "pc":
                break
            e.unknown(register(op))


def judge(name, text, address, thumb):
    if NO_INSTRUCTION.search(f"{name} {text}"):
        return None
    e = Expected()
    ops = operands(text)
    if name[0] == "v" or name.startswith(("fldm", "fstm")):
        return None if vectors(e, name, ops, text) is False else e
    if re.match(r"^it[te]*$", name):
        return e
    stem, sets_flags, condition = split(name)
    first = register(ops[0]) if ops else None
    if stem is None:
        if name.startswith(("rfe", "srs", "eret", "cps", "aes", "sha", "crc")) and not first:
            return None if name.startswith(("rfe", "srs")) else e
        if name.startswith("eret"):
            e.flow("stop")
            return e
        stem = "ldc" if ops[1:] and ops[1][0] == "[" else "" # of other coprocessors
    if re.match(r"^(ldc2|stc2|mrc2|mrrc2|mcr2)", stem) or (not thumb and stem in ("tst", "teq", "cmp", "cmn", "msr")):
        return None # vectors to some; what sets no flags has this name, too
    if "pc" in (first, (stem[-1:] == "d" or stem in TWO) and len(ops) > 1 and register(ops[1])) and stem not in TO_PC + SILENT + BRANCHES + list(STORES):
        return None
    if stem in SILENT:
        transfer_back(e, stem, ops)
    elif stem in ("b", "bl", "blx", "bx", "bxj", "cbz", "cbnz", "tbb", "tbh", "svc", "hvc", "smc", "hlt", "bkpt", "udf"):
        flows(e, stem, text, ops, condition)
    elif stem in ("push", "pop"):
        move_many(e, stem == "pop", "ia" if stem == "pop" else "db", "sp", listed(ops[0]), True)
    elif stem in MANY:
        if text.endswith("^") or ops[1] == "{}":
            return None
        loads, kind = MANY[stem]
        move_many(e, loads, kind, register(ops[0].rstrip("!")), listed(ops[1]), ops[0].endswith("!"))
    elif stem in ("ldrd", "strd"):
        regs = [register(op) for op in ops[:2]]
        if regs[1] is None:
            return None
        move_one(e, ops, regs, stem == "ldrd", True)
    elif (stem in LOADS or stem in STORES) and ops[1][0] == "[":
        move_one(e, ops, [first], stem in LOADS, (LOADS.get(stem) or STORES.get(stem)) == 4)
    elif stem in EXCLUSIVE:
        e.unknown(first)
    elif stem in ("stl", "stlb", "stlh"):
        pass
    elif stem in ("ldrexd", "ldaexd") or stem in TWO:
        for op in ops[2:4] if stem.startswith("mrrc") else ops[:2]:
            e.unknown(register(op))
    elif stem in ("mrc", "mrc2"):
        if register(ops[2]) and register(ops[2]) != "pc":
            e.unknown(register(ops[2]))
    elif not first:
        pass
    elif first == "pc":
        e.flow("stop" if sets_flags else "return" if stem == "mov" and ops[1:] == ["lr"] else "jump")
    else:
        arithmetic(e, stem, ops, first, address, thumb)
    return e


def transfer_back(e, stem, ops):
    """ldc, stc: a base that is changed."""
    if stem[:3] not in ("ldc", "stc"):
        return
    base, offset, _, writes_back = memory([op for op in ops if op[0] != "{"], next(i for i, op in enumerate(ops) if op[0] == "["))
    if writes_back:
        e.any(base)


def arithmetic(e, stem, ops, to, address, thumb):
    if len(ops) == 2 and stem in ("add", "sub", "and", "bic") and (register(ops[1]) or ops[1][0] == "#"):
        ops = [ops[0]] + ops
    source = register(ops[1]) if len(ops) > 1 else None
    if ops[-1].isdigit() and ops[-2][0] == "#": # a number, and by how much it is rotated
        value, by = number(ops[-2]), int(ops[-1])
        ops = ops[:-2] + [f"#{(value >> by | value << 32 - by) & 0xffffffff if by else value}"]
    last = ops[2] if len(ops) == 3 else None
    if stem in ("mov", "movw") and len(ops) == 2 and ops[1][0] == "#":
        e.constant(to, number(ops[1]) & 0xffffffff)
    elif stem == "mvn" and len(ops) == 2 and ops[1][0] == "#":
        e.constant(to, ~number(ops[1]) & 0xffffffff)
    elif stem == "mov" and source == "pc" and len(ops) == 2:
        e.constant(to, address + (4 if thumb else 8))
    elif stem == "mov" and source and len(ops) == 2:
        e.add(to, source, 0)
    elif stem in ("add", "sub", "addw", "subw") and source and last and last[0] == "#":
        by = number(last) * (-1 if stem[:3] == "sub" else 1)
        if source == "pc":
            e.constant(to, (address + 4 & ~3 if thumb else address + 8) + by & 0xffffffff)
        else:
            e.add(to, source, by)
    elif stem in ("add", "sub") and source and last and register(last) and "pc" not in (source, register(last)):
        e.add_register(to, source, register(last), stem == "sub")
    elif stem in ("and", "bic") and source and source != "pc" and last and last[0] == "#":
        mask = number(last) & 0xffffffff
        low = (mask ^ 0xffffffff if stem == "and" else mask) + 1
        if 1 <= low < 1 << 31 and low & low - 1 == 0:
            e.align(to, source, low)
        else:
            e.unknown(to)
    else:
        e.unknown(to)


def flows(e, stem, text, ops, condition):
    first = register(ops[0]) if ops else None
    if stem in ("svc", "hvc", "smc"):
        e.flow("system")
        e.unknown("r0")
    elif stem in ("hlt", "bkpt", "udf"):
        e.flow("stop")
    elif stem in ("cbz", "cbnz"):
        e.flow("branch", target(text))
    elif stem in ("tbb", "tbh") or (stem in ("bx", "bxj") and first != "lr"):
        e.flow("jump")
    elif stem in ("bx", "bxj"):
        e.flow("return")
    elif stem in ("bl", "blx"):
        e.flow("call", None if first else target(text))
    else:
        e.flow("branch" if condition not in ("", "al") else "jump", target(text))

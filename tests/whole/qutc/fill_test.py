#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holes that are filled: code without unwind information, against what the compiler states of the same code elsewhere; and
code that must stay a hole. usage: fill_test.py QUTC FOLDER_OF_THIS CC
"""
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

# Nothing says how these are entered, or what they leave.
HOLES = {
    "never_returns": "1: jmp 1b\n",
    "returns_and_pops": "ret $0x3630\n",
    "returns_elsewhere": "push %rdi\nret\n",
    "jumps_anywhere": "sub $24, %rsp\njmp *8(%rdi)\n",
    "like_haskell": "add $-16, %rbp\nmov (%rbp), %rbx\njmp *(%rbp)\n",
    "is_not_there": ".zero 22\nret\n",
    "starts_a_thread": "mov $56, %eax\nsyscall\n1: pop %rdi\ncall *%r9\njmp 1b\n",
}

# What stands behind a call that may not come back, of what nothing follows; from the label on: "rule" or "hole".
UNKNOWN = "sub $24, %rsp\njmp *8(%rdi)\n"
BEHIND = {
    # Another function, which does not return either: nothing contradicts that it runs with this one's stack.
    "goes_into_a_loop": ("sub $24, %rsp\ncall unknown\n", "sub $40, %rsp\n1: call unknown\njmp 1b\n", "hole"),
    "goes_into_an_end": ("sub $24, %rsp\ncall unknown\n", "sub $40, %rsp\ncall ends\n", "hole"),
    "does_nothing_else": ("sub $24, %rsp\ncall unknown\n", "1: pause\njmp 1b\n", "hole"),
    # The same function.
    "traps": ("sub $24, %rsp\ncall unknown\n", "mov %eax, %edi\nud2\n", "rule"),
    "ends_so": ("sub $24, %rsp\ncall *%rdi\n", "mov %eax, %edi\ncall ends\n", "rule"),
    "returns": ("sub $24, %rsp\ncall *%rdi\n", "call *%rsi\nadd $24, %rsp\nret\n", "rule"),
    "loops": ("sub $24, %rsp\n1: call *%rdi\n", "call *%rsi\njmp 1b\n", "rule"),
    "knows_it_from_another": ("sub $24, %rsp\ncall unknown_as_well\n", "1: pause\njmp 1b\n", "rule"),
    "shows_it": ("sub $24, %rsp\ncall unknown_as_well\n", "add $24, %rsp\nret\n", "rule"),
}


def rows(qutc, path, *options):
    """[(start, end, rule)], holes included."""
    text = subprocess.run([qutc, "dump", "--all", *options, path], capture_output=True, text=True, check=True).stdout
    return [(int(match[1], 16), int(match[2], 16), match[3])
            for match in re.finditer(r"^0x([0-9a-f]+)-0x([0-9a-f]+) (.*)$", text, re.MULTILINE)]


def rule_at(table, pc):
    return next((rule for start, end, rule in table if start <= pc < end), "hole")


def functions(path):
    text = subprocess.run(["nm", "-S", path], capture_output=True, text=True, check=True).stdout
    return {match[3]: (int(match[1], 16), int(match[2], 16))
            for match in re.finditer(r"^([0-9a-f]+) ([0-9a-f]+) [tT] (\w+)$", text, re.MULTILINE)}


def compare(qutc, compiler, source, flags, folder):
    """How many bytes of functions have a rule, with another CFA or return address than the compiler states."""
    stated, bare = os.path.join(folder, "stated"), os.path.join(folder, "bare")
    subprocess.run(compiler + ["-w", "-O2", "-g0"] + flags + [source, "-o", stated], check=True)
    subprocess.run(["objcopy", "--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr", stated, bare],
                   check=True, stderr=subprocess.DEVNULL)
    truth, filled = rows(qutc, stated), rows(qutc, bare)
    report = json.loads(subprocess.run([qutc, "lint", "--json", stated], capture_output=True, text=True).stdout)[0]
    if report["findings"]:
        print(f"{source} {flags}: {json.dumps(report['findings'], indent=1)}")
        return False
    total = covered = 0
    for name, (start, size) in functions(stated).items():
        if name.startswith("_") or name in ("deregister_tm_clones", "register_tm_clones", "frame_dummy"):
            continue
        total += size
        covered += sum(rule_at(filled, pc) != "hole" for pc in range(start, start + size))
        for pc in range(start, start + size):
            if "outermost" in rule_at(truth, pc):
                continue
            if (rule_at(filled, pc) != "hole") and rule_at(truth, pc) == "hole":
                print(f"{name}: {pc:x}: a rule where the compiler has none: {rule_at(filled, pc)}")
                return False
    print(f"{os.path.basename(source)} {flags}: {covered} of {total} bytes")
    return covered > 0.95 * total


def behind_calls(qutc, compiler, folder):
    path = os.path.join(folder, "behind")
    code = {name: f"{first}{name}_behind: {then}" for name, (first, then, _) in BEHIND.items()}
    # That they are called proves that they are functions.
    code["calls_all"] = "sub $8, %rsp\ntest %edi, %edi\njne 1f\nadd $8, %rsp\nret\n1:\n" + "".join(
        f"cmp ${i}, %edi\nje {i}f\n" for i in range(2, len(BEHIND) + 2)) + "ud2\n" + "".join(
        f"{i}: call {name}\nud2\n" for i, name in enumerate(BEHIND, 2))
    code.update({"ends": "mov $60, %eax\nsyscall\n", "unknown": UNKNOWN, "unknown_as_well": UNKNOWN})
    with open(path + ".s", "w", encoding="ascii") as file:
        for name, text in code.items():
            file.write(f".p2align 4\n.type {name}, @function\n{name}:\n{text}.size {name}, .-{name}\n")
        file.write('.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(compiler + ["-shared", "-nostdlib", "-o", path, path + ".s"], check=True)
    table, places = rows(qutc, path, "--fill"), functions(path)
    text = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    good = True
    for name, (_, _, wanted) in BEHIND.items():
        behind = int(re.search(rf"^([0-9a-f]+) t {name}_behind$", text, re.MULTILINE)[1], 16)
        start, end = places[name][0], sum(places[name])
        found = ["hole" if rule_at(table, pc) == "hole" else "rule" for pc in range(start, end)]
        expected = ["rule"] * (behind - start) + [wanted] * (end - behind)
        if found != expected:
            print(f"{name}: {found}, behind its call at +{behind - start} should be: {wanted}")
            good = False
    stat = subprocess.run([qutc, "stat", "--fill", path], capture_output=True, text=True).stdout
    if "instructions: behind calls that nothing shows to come back" not in stat:
        print(stat)
        good = False
    return good


# As assemblers of vector code write them: jumps by the trailing zeros of a width, so that nothing bounds the index and the
# first elements stand before the table; the tables of all functions one behind the other; the rest of a function behind
# another's begin; fifty tables of one function, of which a hundred elements have to be found to be none, a walk for each.
# What is said of them here is the truth that code has to prove.
TABLES = """
.macro begin name
.p2align 4
\\name: .cfi_startproc
.endm
.macro end
.cfi_endproc
.endm
.text
begin by_width
lea first(%rip), %rax
tzcnt %edx, %edx
movslq (%rax, %rdx, 4), %rdx
add %rax, %rdx
push %rbx
.cfi_adjust_cfa_offset 8
.cfi_offset %rbx, -16
jmp *%rdx
1: inc %ebx
2: dec %ebx
3: pop %rbx
.cfi_adjust_cfa_offset -8
.cfi_restore %rbx
ret
end
begin two_depths
lea second(%rip), %rax
tzcnt %edx, %edx
movslq 8(%rax, %rdx, 4), %rcx
add %rax, %rcx
test %esi, %esi
je 5f
push %rbx
.cfi_adjust_cfa_offset 8
.cfi_offset %rbx, -16
movslq (%rax, %rdx, 4), %rcx
add %rax, %rcx
jmp *%rcx
3: inc %ebx
4: pop %rbx
.cfi_adjust_cfa_offset -8
.cfi_restore %rbx
ret
5: jmp *%rcx
6: inc %edx
ret
7: not %edx
ret
end
begin keeps_it
inc %eax
ret
end
begin behind_a_call
lea third(%rip), %r10
tzcnt %edx, %edx
movslq (%r10, %rdx, 4), %r8
add %r10, %r8
call keeps_it
jmp *%r8
8: inc %eax
9: push %rbp
.cfi_adjust_cfa_offset 8
.cfi_offset %rbp, -16
xor %ebp, %ebp
pop %rbp
.cfi_adjust_cfa_offset -8
.cfi_restore %rbp
ret
end
begin says_where
lea 10f(%rip), %r8
jmp shared
.cfi_adjust_cfa_offset 40
10: inc %ecx
add $40, %rsp
.cfi_adjust_cfa_offset -40
ret
end
begin says_another
lea 11f(%rip), %r8
jmp shared
.cfi_adjust_cfa_offset 40
11: dec %ecx
add $40, %rsp
.cfi_adjust_cfa_offset -40
ret
end
begin shared_by_them
shared: sub $40, %rsp
.cfi_adjust_cfa_offset 40
inc %eax
jmp *%r8
end
begin longer
.rept 600
push %rbx
.cfi_adjust_cfa_offset 8
pop %rbx
.cfi_adjust_cfa_offset -8
.endr
ret
end
.globl many_tables
.type many_tables, @function
begin many_tables
lea fourth(%rip), %rax
.macro jumps_by number, depth
.if \\depth
push %rbx
.cfi_adjust_cfa_offset 8
.cfi_offset %rbx, -16
.endif
test %esi, %esi
je first_\\number
movslq 8*\\number(%rax, %rdx, 4), %rcx
add %rax, %rcx
jmp *%rcx
first_\\number: inc %edi
second_\\number: dec %edi
.if \\depth
pop %rbx
.cfi_adjust_cfa_offset -8
.cfi_restore %rbx
.endif
.endm
.set number, 0
.altmacro
.rept 25
jumps_by %number, 0
.set number, number + 1
jumps_by %number, 1
.set number, number + 1
.endr
ret
end
.section .rodata
.long 0x1234567, 0x7654321
.set first, . - 8
.long 1b - first, 2b - first, 3b - first
.set second, . - 8
.long 3b - second, 4b - second, 6b - second, 7b - second
.set third, .
.long 8b - third, 9b - third
.macro leads_to number
.long first_\\number - fourth, second_\\number - fourth
.endm
.set number, 0
fourth:
.rept 50
leads_to %number
.set number, number + 1
.endr
.data
"""


def tables(qutc, compiler, folder):
    stated, bare = os.path.join(folder, "tables"), os.path.join(folder, "tables-bare")
    names = re.findall(r"^begin (\w+)$", TABLES, re.MULTILINE)
    with open(stated + ".s", "w", encoding="ascii") as file:
        file.write(TABLES + "".join(f".quad {name}\n" for name in names) + '.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(compiler + ["-shared", "-nostdlib", "-o", stated, stated + ".s"], check=True)
    subprocess.run(["strip", "--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr", stated, "-o", bare], check=True,
                   stderr=subprocess.DEVNULL)
    truth, filled = rows(qutc, stated, "--no-fill"), rows(qutc, bare)
    text = subprocess.run(["nm", stated], capture_output=True, text=True, check=True).stdout
    start_of = {match[2]: int(match[1], 16) for match in re.finditer(r"^([0-9a-f]+) [tT] (\w+)$", text, re.MULTILINE)}
    good = True
    for start, end, rule in truth:
        for pc in range(start, end):
            # Of two jumps that may go to one place, with the stack at two, neither may be believed.
            if rule_at(filled, pc) == "hole" and start_of["two_depths"] <= pc < start_of["keeps_it"]:
                continue
            # Where a register was saved last says no compiler of code that has it back already.
            found = rule_at(filled, pc)
            if rule != "hole" and found.split()[:2] != rule.split()[:2]:
                print(f"tables: {pc:x}: {found}, is {rule}")
                good = False
    return good and len(truth) > 20


# Functions that end in a call that never returns, each right before another one that has another frame. What is said of
# them here is the truth; in the file that is looked at nothing but the names of imports says where functions end.
ENDS = """
.macro begin name
.p2align 4
\\name: .cfi_startproc
.endm
.macro end
.cfi_endproc
.endm
.macro sp bytes
add $-(\\bytes), %rsp
.cfi_adjust_cfa_offset \\bytes
.endm
.text
.globl dies
.type dies, @function
begin dies
sp 8
call abort@plt
end
.size dies, .-dies
begin helps
inc %eax
ret
end
# By chance what stands behind it returns with the stack as it is there: of the import that shows nothing.
begin has_no_frame
call abort@plt
end
begin returns_at_once
xor %eax, %eax
ret
end
.macro ends_by name, call:vararg
begin \\name
sp 40
call helps
test %eax, %eax
jne 1f
.cfi_remember_state
sp -40
ret
1: .cfi_restore_state
\\call
end
begin behind_\\name
push %rbp
.cfi_adjust_cfa_offset 8
push %rbx
.cfi_adjust_cfa_offset 8
sp 24
call helps
sp -24
pop %rbx
.cfi_adjust_cfa_offset -8
pop %rbp
.cfi_adjust_cfa_offset -8
ret
end
.endm
ends_by import, call abort@plt
ends_by check, call __stack_chk_fail@plt
ends_by slot, call *_exit@GOTPCREL(%rip)
ends_by stub_of_slot, call _exit@plt
ends_by throw, call _ZSt20__throw_length_errorPKc@plt
"""

# In a file in which little is not described nothing is known of functions that are.
ENDS_OF_OWN = """
ends_by own_function, call dies@plt
begin says_how
call dies@plt
end
begin says_not
xor %eax, %eax
ret
end
ends_by tail, call ends_by_a_jump@plt
.globl ends_by_a_jump
.type ends_by_a_jump, @function
begin ends_by_a_jump
jmp abort@plt
end
.size ends_by_a_jump, .-ends_by_a_jump
# Something has the address of what begins behind the padding. Nothing else shows that the call does not come back.
begin before_a_pointer
sp 24
call *%rdi
.cfi_endproc
nop
in_a_table: .cfi_startproc
xor %eax, %eax
ud2
end
begin calls_it
sp 8
call before_a_pointer
sp -8
ret
end
begin longer
.rept 600
push %rbx
.cfi_adjust_cfa_offset 8
pop %rbx
.cfi_adjust_cfa_offset -8
.endr
ret
end
.data
.quad in_a_table
"""


def ends(qutc, compiler, folder, source):
    """No rule without symbols and unwind information that they do not state; each function is found."""
    stated, bare = os.path.join(folder, "ends"), os.path.join(folder, "ends-bare")
    with open(stated + ".s", "w", encoding="ascii") as file:
        file.write(source + '.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(compiler + ["-shared", "-nostdlib", "-o", stated, stated + ".s"], check=True)
    subprocess.run(["strip", "--strip-all", "--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr", stated, "-o", bare],
                   check=True, stderr=subprocess.DEVNULL)
    truth, filled = rows(qutc, stated, "--no-fill"), rows(qutc, bare, "--fill")
    text = subprocess.run(["nm", stated], capture_output=True, text=True, check=True).stdout
    behind = {match[2]: int(match[1], 16) for match in re.finditer(r"^([0-9a-f]+) t (behind_\w+)$", text, re.MULTILINE)}
    good = True
    for start, end, rule in truth:
        for pc in range(start, end):
            found = rule_at(filled, pc)
            # A stub's push is told by arithmetic in what is stated.
            if rule != "hole" and "pc&" not in rule and found != "hole" and found.split()[:2] != rule.split()[:2]:
                print(f"ends: {pc:x}: {found}, is {rule}")
                good = False
    missing = [name for name, pc in behind.items() if rule_at(filled, pc) == "hole"]
    if missing:
        print(f"ends: not found: {missing}")
    return good and not missing and len(behind) > 4


# Each ends in a call of __stack_chk_fail, right behind which the next one begins; nothing else of them is known.
CHECKED = """
void abort(void);
int use(char *);
#define F(n) int f##n(int a) { char b[n * 16]; b[0] = (char)a; if (use(b)) abort(); return b[1] + use(b + 1); }
F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15) F(16)
"""


def stubs(qutc, triple, folder):
    """The linker's stubs of other architectures are read, too."""
    if not shutil.which(f"{triple}-gcc") or not shutil.which(f"{triple}-objcopy"):
        print(f"stubs: no compiler for {triple}")
        return True
    path, bare = os.path.join(folder, "stubs"), os.path.join(folder, "stubs-bare")
    with open(path + ".c", "w", encoding="ascii") as file:
        file.write(CHECKED)
    subprocess.run([f"{triple}-gcc", "-O2", "-fstack-protector-all", "-fvisibility=hidden", "-fPIC", "-shared", "-nostdlib", "-o", path,
                    path + ".c"], check=True)
    subprocess.run([f"{triple}-objcopy", "--strip-all", "--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr", path,
                    bare], check=True, stderr=subprocess.DEVNULL)
    stat = subprocess.run([qutc, "stat", "--fill", bare], capture_output=True, text=True).stdout
    if "16 functions that nothing describes, 16 followed" not in stat or "behind calls" in stat:
        print(f"stubs: {triple}: {stat}")
        return False
    return True


def saves_twice(qutc, compiler, folder):
    """Where sp rose, what had been saved further below than the red zone may be another's since."""
    path = os.path.join(folder, "twice")
    with open(path + ".s", "w", encoding="ascii") as file:
        file.write(".p2align 4\n.type twice, @function\ntwice: sub $200, %rsp\nmov %rbx, (%rsp)\nxor %ebx, %ebx\n"
                   "mov (%rsp), %rbx\nadd $200, %rsp\npush %rbx\nsub $240, %rsp\nxor %ebx, %ebx\ninside: add $240, %rsp\n"
                   'pop %rbx\nret\n.size twice, .-twice\n.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(compiler + ["-shared", "-nostdlib", "-o", path, path + ".s"], check=True)
    text = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    found = rule_at(rows(qutc, path), int(re.search(r"^([0-9a-f]+) t inside$", text, re.MULTILINE)[1], 16))
    if found != "cfa=rsp+256 ra=[cfa-8] fp=same rbx=[cfa-16] from-code":
        print(f"twice: {found}")
        return False
    return True


def pointed(qutc, compiler, folder):
    """What no symbol names, nothing calls and no alignment shows, but a table has the address of."""
    path = os.path.join(folder, "pointed")
    with open(path + ".s", "w", encoding="ascii") as file:
        file.write(f".p2align 4\n.type before, @function\nbefore: {UNKNOWN}.size before, .-before\n"
                   "in_a_table: push %rbx\nxor %ebx, %ebx\npop %rbx\nret\n"
                   "in_none: push %rbx\nxor %ebx, %ebx\npop %rbx\nret\n"
                   # Of a few bytes nobody asks who knows where they are.
                   ".p2align 4\n.type long, @function\nlong: .rept 600\npush %rbx\npop %rbx\n.endr\nret\n"
                   '.size long, .-long\n.data\n.quad in_a_table\n.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(compiler + ["-shared", "-nostdlib", "-o", path, path + ".s"], check=True)
    table = rows(qutc, path, "--fill")
    text = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    found = {name: rule_at(table, 1 + int(re.search(rf"^([0-9a-f]+) t {name}$", text, re.MULTILINE)[1], 16))
             for name in ("in_a_table", "in_none")}
    if found != {"in_a_table": "cfa=rsp+16 ra=[cfa-8] fp=same rbx=[cfa-16] from-code", "in_none": "hole"}:
        print(found)
        return False
    return True


def bounded(qutc, compiler, folder):
    """Of code that never returns so much is looked at, and then nothing; what stands behind it has no name."""
    path = os.path.join(folder, "bounded")
    with open(path + ".s", "w", encoding="ascii") as file:
        file.write(".text\n.rept 60000\n.p2align 4\n.rept 10\nnot %eax\n.endr\njmp *%rax\n.endr\n.p2align 4\n"
                   'last: push %rbx\nxor %ebx, %ebx\npop %rbx\nret\n.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(compiler + ["-shared", "-nostdlib", "-o", path, path + ".s"], check=True)
    text = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    inside = 1 + int(re.search(r"^([0-9a-f]+) t last$", text, re.MULTILINE)[1], 16)
    dump = subprocess.run([qutc, "dump", path], capture_output=True, text=True)
    whole = rule_at(rows(qutc, path, "--fill"), inside)
    stat = subprocess.run([qutc, "stat", "--fill", path], capture_output=True, text=True).stdout
    if dump.returncode != 2 or "in vain: --fill follows all" not in dump.stderr or not whole.endswith(" from-code") or "in vain" in stat:
        print(f"bounded: {dump.stderr} {dump.returncode}; with --fill: {whole} {stat}")
        return False
    # With a name it is found whatever is bounded; what else there is, is said to be cut.
    with open(path + ".s", "a", encoding="ascii") as file:
        file.write(".text\n.type last, @function\n.size last, .-last\n")
    subprocess.run(compiler + ["-shared", "-nostdlib", "-o", path, path + ".s"], check=True)
    stat = subprocess.run([qutc, "stat", path], capture_output=True, text=True).stdout
    if rule_at(rows(qutc, path), inside) != whole or "some of it: too much was followed in vain" not in stat:
        print(f"bounded: {rule_at(rows(qutc, path), inside)} {stat}")
        return False
    return True


def padding(qutc, compiler, folder):
    """What fills up is told from code that has no rule."""
    path = os.path.join(folder, "padding")
    with open(path + ".s", "w", encoding="ascii") as file:
        for name, code in ("first", "ret"), ("unproven", "1: pause\njmp 1b"), ("last", "ret"):
            described = name != "unproven"
            file.write(f".p2align 6\n{name}:\n" + ".cfi_startproc\n" * described + code + "\n" +
                       ".cfi_endproc\n" * described)
        file.write('.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(compiler + ["-shared", "-nostdlib", "-o", path, path + ".s"], check=True)
    [stat] = json.loads(subprocess.run([qutc, "stat", "--json", path], capture_output=True, text=True).stdout)
    # Only at a hole's begin: what stands behind other code may be of that.
    expected = {"text_bytes": 129, "code_bytes": 129, "covered_bytes": 2, "hole_bytes": 127, "padding_bytes": 63}
    if any(stat[key] != value for key, value in expected.items()):
        print(f"padding: {[(key, stat[key]) for key in expected]}, should be {expected}")
        return False
    return True


def main():
    if platform.machine() != "x86_64":
        print("SKIP: the code is of x86-64")
        return 77
    qutc, root, compiler = sys.argv[1], sys.argv[2], sys.argv[3:]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(root, "tests/proof/oracle/programs/calls.c")
        for flags in [], ["-O0"], ["-fno-omit-frame-pointer"]:
            failed += not compare(qutc, compiler, source, flags, folder)
        failed += not behind_calls(qutc, compiler, folder)
        failed += not pointed(qutc, compiler, folder)
        failed += not saves_twice(qutc, compiler, folder)
        for triple in "aarch64-linux-gnu", "riscv64-linux-gnu":
            failed += not stubs(qutc, triple, folder)
        failed += not tables(qutc, compiler, folder)
        failed += not ends(qutc, compiler, folder, ENDS)
        failed += not ends(qutc, compiler, folder, ENDS + ENDS_OF_OWN)
        failed += not bounded(qutc, compiler, folder)
        failed += not padding(qutc, compiler, folder)
        path = os.path.join(folder, "holes")
        with open(path + ".s", "w", encoding="ascii") as file:
            for name, code in HOLES.items():
                file.write(f".text\n.p2align 4\n.globl {name}\n.type {name}, @function\n{name}:\n{code}"
                           f".size {name}, .-{name}\n")
            file.write(".p2align 4\n.globl fine\n.type fine, @function\nfine: push %rbx\nxor %ebx, %ebx\npop %rbx\nret\n"
                       ".size fine, .-fine\n.section .note.GNU-stack,\"\",@progbits\n")
        subprocess.run(compiler + ["-shared", "-nostdlib", "-o", path, path + ".s"], check=True)
        without = subprocess.run([qutc, "dump", "--no-fill", path], capture_output=True, text=True)
        table, places = rows(qutc, path), functions(path)
        for name in HOLES:
            rules = {rule_at(table, pc) for pc in range(places[name][0], sum(places[name]))}
            if rules != {"hole"}:
                print(f"{name}: {rules}")
                failed += 1
        fine = places["fine"][0]
        if rule_at(table, fine + 1) != "cfa=rsp+16 ra=[cfa-8] fp=same rbx=[cfa-16] from-code" or without.returncode == 0:
            print(f"fine: {rule_at(table, fine + 1)}; with --no-fill: {without.stdout}")
            failed += 1
        text = subprocess.run([qutc, "verify", path], capture_output=True, text=True)
        stat = subprocess.run([qutc, "stat", path], capture_output=True, text=True).stdout
        if "rows from code" not in stat or "1 followed" not in stat or text.returncode != 0:
            print(stat + text.stdout + text.stderr)
            failed += 1
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds a sixth architecture to a copy of the tree by the steps of docs/adding-an-architecture.md, builds that, and walks
a stack of it: the page is enough, and says nothing that is not so.

usage: new_architecture_test.py SOURCE_ROOT
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LEFT_OUT = ('.git', 'build', 'corpus')
FUNCTION_BYTES = 0x40
TEXT = 0x1000
FUNCTIONS = ('leaf', 'middle', 'outer', 'start')
LOADED_AT = 0x7000000000
STACK_AT = 0x7fff0000

# What the page has one do: its section, the file, what stands there, what stands there then.
STEPS = (
    ('1', 'formats/qut_rule.h', r'(    QUT_ARCH_RISCV64 = 5,.*\n)', r'\1    QUT_ARCH_TOY = 6,\n'),
    ('2', 'libqut/arch/arch.h', r'(arch_x86, arch_riscv64);', r'\1, arch_toy;'),
    ('2', 'libqut/arch/arch.c', r'(&arch_riscv64,)', r'\1 &arch_toy,'),
    ('2', 'libqut/arch/meson.build', r"('riscv64/registers.c', 'riscv64/trampolines.c')",
     r"\1, 'toy/registers.c', 'toy/trampolines.c'"),
    # Linux gives new architectures the numbers of the generic table, as riscv64 has them.
    ('2', 'libqut/arch/calls.c', r'(NUMBERS\(x86_64, .*riscv64)\)', r'\1, toy)'),
    ('2', 'libqut/arch/calls.c', r'(-1, x86_64, .*riscv64)', r'\1, toy'),
    ('2', 'libqut/arch/calls.c', r'(    CALL\w*\(.*, )(-?\d+)\)', r'\1\2, \2)'),
)


def fail(what):
    sys.exit(f'FAIL: {what}')


def run(*command, **more):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if result.returncode != 0:
        fail(f'{" ".join(command)}: exit status {result.returncode}\n{result.stdout}')
    return result.stdout


# ---- the tree

def section_of(page, number):
    found = re.search(rf'^## {number}\. .*?(?=^## |\Z)', page, re.MULTILINE | re.DOTALL)
    return found[0] if found else fail(f'the page has no section {number}')


def follow_the_page(tree):
    with open(f'{tree}/docs/adding-an-architecture.md', encoding='utf-8') as file:
        page = file.read()
    for number, path, there, then in STEPS:
        name = path if number == '1' else os.path.basename(path)
        if name not in section_of(page, number):
            fail(f'section {number} of the page does not name {name}')
        with open(f'{tree}/{path}', encoding='utf-8') as file:
            text = file.read()
        text, count = re.subn(there, then, text)
        if count == 0:
            fail(f'{path} has nothing like "{there}"')
        with open(f'{tree}/{path}', 'w', encoding='utf-8') as file:
            file.write(text)
    shutil.copytree(f'{HERE}/toy', f'{tree}/libqut/arch/toy')
    for name in os.listdir(f'{HERE}/toy'):
        if f'`{name}`' not in section_of(page, '2'):
            fail(f'section 2 of the page does not name {name}')
    fields = re.findall(r'\.(\w+) =', open(f'{HERE}/toy/definition.h', encoding='utf-8').read())
    for field in fields:
        if field not in ('id', 'tracked_count', 'trampoline_count') and f'`{field}`' not in section_of(page, '2'):
            fail(f'section 2 of the page says nothing about the field {field}')


def build(tree, to):
    environment = dict(os.environ, CCACHE_DISABLE='1')
    run('meson', 'setup', to, tree, '-Doptimization=0', '-Ddebug=false', '-Dtracer=disabled',
        '-Djudges=disabled', '-Dinlines=disabled', '-Dzlib=disabled', '-Dzstd=disabled', '-Dfetch=disabled', '--werror', env=environment)
    run('ninja', '-C', to, 'qutc/cli/qutc', 'libqut/libqut.a', 'qutc/libqutc.a',
        'tests/unit/libqut/arch/arch_arch_test', 'tests/unit/libqut/arch/arch_calls_test', env=environment)
    run(os.environ.get('CC', 'cc').split()[-1], '-I', f'{tree}/libqut/include', '-I', f'{tree}/qutc/include', f'{HERE}/walk.c',
        f'{to}/qutc/libqutc.a', f'{to}/libqut/libqut.a', '-llzma', '-lpthread', '-o', f'{to}/walk')


# ---- an ELF file of it

def fde(at, cie_at, start, program):
    body = struct.pack('<QQ', start, FUNCTION_BYTES) + b'\0' + program
    body += b'\0' * (-len(body) % 8 + 4)
    return struct.pack('<II', len(body) + 4, at + 4 - cie_at) + body


def eh_frame():
    # Code counts in 4, data in -8; the return address is in lr; cfa = sp.
    cie = struct.pack('<IB', 0, 1) + b'zR\0' + bytes([4, 0x78, 15, 1, 0x00, 0x0c, 14, 0])
    cie += b'\0' * (-len(cie) % 8 + 4)
    frames = struct.pack('<I', len(cie)) + cie
    programs = {
        'leaf': b'',
        # After one instruction: cfa = sp + 32, lr at cfa - 8, fp at cfa - 16.
        'middle': bytes([0x41, 0x0e, 32, 0x80 | 15, 1, 0x80 | 13, 2]),
        # After two: cfa = fp + 16.
        'outer': bytes([0x42, 0x0c, 13, 16, 0x80 | 15, 1, 0x80 | 13, 2]),
        'start': bytes([0x07, 15]), # no caller
    }
    for i, name in enumerate(FUNCTIONS):
        frames += fde(len(frames), 0, TEXT + i * FUNCTION_BYTES, programs[name])
    return frames + bytes(4)


def elf_file():
    text = bytes([0, 0, 0, 0x10]) * (FUNCTION_BYTES // 4 * len(FUNCTIONS))
    frames = eh_frame()
    frames_at = TEXT + len(text)
    names = b'\0.text\0.eh_frame\0.shstrtab\0'
    names_at = frames_at + len(frames)
    sections_at = (names_at + len(names) + 7) & ~7
    sections = ((0,) * 10,
                (1, 1, 6, TEXT, TEXT, len(text), 0, 0, 4, 0),
                (7, 1, 2, frames_at, frames_at, len(frames), 0, 0, 8, 0),
                (17, 3, 0, 0, names_at, len(names), 0, 0, 1, 0))
    head = b'\x7fELF\2\1\1' + bytes(9)
    head += struct.pack('<HHIQQQIHHHHHH', 3, 0x5154, 1, 0, 64, sections_at, 0, 64, 56, 1, 64, len(sections), 3)
    head += struct.pack('<IIQQQQQQ', 1, 5, 0, 0, 0, names_at, names_at, 4096)
    file = head + bytes(TEXT - len(head)) + text + frames + names
    file += bytes(sections_at - len(file))
    return file + b''.join(struct.pack('<IIQQQQIIQQ', *section) for section in sections)


# ---- a stack in it

def address_in(name, offset):
    return LOADED_AT + TEXT + FUNCTIONS.index(name) * FUNCTION_BYTES + offset


def write_snapshot(to):
    os.mkdir(to)
    file = elf_file()
    with open(f'{to}/libtoy.so', 'wb') as out:
        out.write(file)
    with open(f'{to}/maps.txt', 'w', encoding='ascii') as out:
        out.write(f'{LOADED_AT:x}-{LOADED_AT + 0x2000:x} r-xp 0 00:00 0   libtoy.so\n')
    # leaf has sp, middle has 32 bytes from there, outer what lies up to fp + 16.
    outer_fp = STACK_AT + 32 + 48
    stack = [0, 0, outer_fp, address_in('outer', 0x20)] # of middle: fp at cfa - 16, lr at cfa - 8
    stack += [0] * 6 + [0, address_in('start', 0x10)]   # of outer: cfa = fp + 16
    with open(f'{to}/stack.data', 'wb') as out:
        out.write(struct.pack('<Q', STACK_AT) + struct.pack(f'<{len(stack)}Q', *stack) + bytes(64))
    with open(f'{to}/regs.txt', 'w', encoding='ascii') as out:
        out.write(f'g0: 0\nfp: 1234\nsp: {STACK_AT:x}\nlr: {address_in("middle", 0x30):x}\n'
                  f'pc: {address_in("leaf", 8):x}\n')
    return [f'{address_in("leaf", 8):x} {STACK_AT:x}', f'{address_in("middle", 0x30):x} {STACK_AT:x}',
            f'{address_in("outer", 0x20):x} {STACK_AT + 32:x}', f'{address_in("start", 0x10):x} {outer_fp + 16:x}']


def main():
    with tempfile.TemporaryDirectory() as work:
        tree, to, snapshot = f'{work}/tree', f'{work}/build', f'{work}/snapshot'
        shutil.copytree(sys.argv[1], tree, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
        follow_the_page(tree)
        build(tree, to)
        run(f'{to}/tests/unit/libqut/arch/arch_arch_test')
        run(f'{to}/tests/unit/libqut/arch/arch_calls_test')
        wanted = write_snapshot(snapshot)
        stat = run(f'{to}/qutc/cli/qutc', 'stat', f'{snapshot}/libtoy.so')
        if 'toy' not in stat:
            fail(f'qutc stat: {stat}')
        row = run(f'{to}/qutc/cli/qutc', 'lookup', f'{snapshot}/libtoy.so', hex(TEXT + FUNCTION_BYTES + 0x30))
        if 'fp' not in row or '32' not in row:
            fail(f'qutc lookup: {row}')
        stack = run(f'{to}/walk', snapshot).splitlines()
        if stack != ['toy', *wanted, 'outermost frame']:
            fail(f'the stack is {stack}, not {wanted}')
    print('1 passed, 0 failed, 0 skipped')


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qutc --check: where the code proves that what is stated is wrong the table has the code's rule, and nowhere else; a
function that leaves for a frame that catches is refused from where the exchange begins; what the code contradicts and does
not prove is doubtful. usage: mend_test.py QUTC CC
"""
import json
import os
import platform
import subprocess
import sys
import tempfile

ENTER, LEAVE = ".cfi_startproc\n", ".cfi_endproc\n"
PUSHED = "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6, -16\nmov %rsp, %rbp\n.cfi_def_cfa_register 6\n"
FUNCTIONS = {
    "right": "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3, -16\nxor %ebx, %ebx\npop %rbx\n.cfi_def_cfa_offset 8\n"
             ".cfi_restore 3\nret\n",
    "forgets_push": "push %rbx\nxor %ebx, %ebx\npop %rbx\nret\n",
    "says_same": "push %rbx\n.cfi_def_cfa_offset 16\nxor %ebx, %ebx\npop %rbx\n.cfi_def_cfa_offset 8\nret\n",
    # Its callers have saved two registers.
    "overwrites": "imul %rdi, %rbx\nmov (%rdi), %r12\nadc $0, %r12\nret\n",
    # Nothing that is stated fits: perhaps it is entered otherwise than functions are. That it is one the call says.
    "fits_nowhere": ".cfi_def_cfa_offset 80\nxor %eax, %eax\nret\n",
    "calls_it": "call fits_nowhere\nret\n",
    # What cannot be followed stays as it is stated.
    "jumps_anywhere": "push %rbx\njmp *8(%rdi)\n",
    # As libgcc leaves: two calls, then with another frame's registers.
    "leaves": PUSHED + "call right\ntest %eax, %eax\njne 1f\npop %rbp\n.cfi_remember_state\n.cfi_def_cfa 7, 8\nret\n"
              "1: .cfi_restore_state\ncall right\ncall right\nlea 8(%rbp), %rcx\nmov (%rbp), %rbp\n.cfi_restore 6\n"
              ".cfi_def_cfa 2, 8\nmov %rcx, %rsp\n.cfi_def_cfa_register 7\npop %rcx\n.cfi_register 16, 2\n"
              ".cfi_def_cfa_offset 0\njmp *%rcx\n",
}


def lines(qutc, path, start, *options):
    """The rows from a function's start up to its end, by where they begin."""
    text = subprocess.run([qutc, "dump", *options, path], capture_output=True, text=True, check=True).stdout
    rows = [(int(row.split("-")[0], 16), row.split(" ", 1)[1].replace(" from-code", "")) for row in text.splitlines()]
    return {pc - start: rule for pc, rule in rows if start <= pc < start + 64}


def main():
    if platform.machine() != "x86_64":
        print("SKIP: the code is of x86-64")
        return 77
    qutc, compiler, failed = sys.argv[1], sys.argv[2:], 0

    def check(name, good, why):
        nonlocal failed
        if not good:
            print(f"{name}: {why}")
            failed += 1

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "subject")
        with open(path + ".s", "w", encoding="ascii") as file:
            file.write(".text\n" + "".join(
                f".p2align 6\n.globl {name}\n.type {name}, @function\n{name}:\n{ENTER}{code}{LEAVE}.size {name}, .-{name}\n"
                for name, code in FUNCTIONS.items()) + ".section .note.GNU-stack,\"\",@progbits\n")
        subprocess.run(compiler + ["-shared", "-nostdlib", "-Wl,-Bsymbolic", "-o", path, path + ".s"], check=True)
        symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
        start = {line.split()[2]: int(line.split()[0], 16) for line in symbols if len(line.split()) == 3}

        for name in FUNCTIONS:
            stated = lines(qutc, path, start[name], "--as-stated")
            checked = lines(qutc, path, start[name], "--check")
            if name in ("right", "jumps_anywhere", "calls_it"):
                check(name, checked == stated, f"{checked} and {stated}")
            elif name == "forgets_push":
                check(name, stated[0].startswith("cfa=rsp+8 ") and 1 not in stated, stated)
                check(name, checked[0].startswith("cfa=rsp+8 ") and checked[1].startswith("cfa=rsp+16 ") and
                      checked[4].startswith("cfa=rsp+8 "), checked)
            elif name == "fits_nowhere":
                check(name, checked == {0: stated[0] + " doubtful"} and lines(qutc, path, start[name]) == stated, checked)
            elif name == "overwrites":
                check(name, checked.keys() == {0, 4, 7} and "rbx=undefined" in checked[4] and
                      "rbx=undefined r12=undefined" in checked[7], checked)
            elif name == "says_same":
                check(name, "rbx=" not in stated[1] and "rbx=[cfa-16]" in checked[3], checked)
            else:
                refused = [pc for pc, rule in checked.items() if rule.startswith("refused: EH_RETURN")]
                check(name, refused == [15] and stated.keys() != checked.keys(), f"{refused} {checked}")
                check(name, lines(qutc, path, start[name])[15].startswith("refused: EH_RETURN"), "not without --check")

        run = subprocess.run([qutc, "verify", "--check", "--json", path], capture_output=True, text=True)
        [verdict] = json.loads(run.stdout)
        check("verify", run.returncode == 0 and verdict["wrong"] == 0 and verdict["mended"] > 0 and
              verdict["doubtful"] == 1, verdict)
        run = subprocess.run([qutc, "stat", "--check", "--json", path], capture_output=True, text=True, check=True)
        check("stat", json.loads(run.stdout)[0]["doubtful_bytes"] == 3, run.stdout)
        # A table that was made so, judged without: readers know better.
        table = os.path.join(folder, "subject.qut")
        subprocess.run([qutc, "compile", "-q", "--check", "-o", table, path], check=True, stdout=subprocess.DEVNULL)
        run = subprocess.run([qutc, "verify", "--json", "--table", table, path], capture_output=True, text=True)
        check("verify", run.returncode == 1 and json.loads(run.stdout)[0]["wrong"] > 0, run.stdout)
    print(f"{len(FUNCTIONS)} functions, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

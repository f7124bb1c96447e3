#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qut probe of programs that die, become others and unload what is probed, and of scripts that ask for too much.

    hostile_test.py QUT SUBJECT LIBRARY COUNTING-SUBJECT [--long]
"""
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import checks  # noqa: E402

QUT, SUBJECT, LIBRARY, COUNTING = (os.path.realpath(path) for path in sys.argv[1:5])
NAME = os.path.basename(SUBJECT)
CALLS = 500000 if "--long" in sys.argv else 50000 # of each of two threads
PATIENCE_S = 120


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


def probe(script, *command):
    done = subprocess.run([QUT, "probe", "--json", "-e", script, *command], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE_S)
    done.documents = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    done.maps = {document["map"]: document for document in done.documents if "map" in document}
    return done


def total(document):
    return sum(row["value"] for row in document["rows"])


def check_death():
    count = f"entry:{NAME}!probe_called {{ @[pid] = count() }} entry:{NAME}!probe_dies {{ @dies = count() }}"
    for how, status, dies in (("die", 137, 0), ("abort", 134, 1)):
        done = probe(count + f"return:{NAME}!probe_dies {{ @returns = count() }}", SUBJECT, how, "500")
        expect(f"exit status of {how} ({done.stderr})", done.returncode, status)
        expect(f"calls before {how}", (total(done.maps[""]), total(done.maps["dies"]), total(done.maps["returns"])),
               (500, dies, 0))


def check_exec():
    done = probe(f"entry:{NAME}!probe_called {{ @[pid] = count(); @s[stack(1)] = count() }}", SUBJECT, "exec", "300", "200")
    expect(f"exit status ({done.stderr})", done.returncode, 137)
    expect("calls of one process, before and behind its exec", [row["value"] for row in done.maps[""]["rows"]], [500])
    names = [row["key"][0][0] if isinstance(row["key"][0], list) else row["key"][0] for row in done.maps["s"]["rows"]]
    assert names and all(name.startswith(("call (", "main (", "stack ")) for name in names), names


def check_recorders_own_calls():
    """Processes that begin, fork, exec and end tell the recorder so, from the program's threads: none of its calls."""
    asked = "".join(f"entry:libc.so*!{name} {{ @{name} = count() }}" for name in ("connect", "sendmsg", "recvmsg"))
    # A bash without SHELL or HOME asks for the user's entry, and libc connects to nscd's socket for it.
    bash = ("/usr/bin/env", "SHELL=/bin/bash", "HOME=/", "/bin/bash")
    done = probe(asked + "entry:libc.so*!fork { @forks = count() }", *bash, "-c", "(true); (true); exec /bin/bash -c :")
    expect(f"exit status ({done.stderr})", done.returncode, 0)
    expect("what has been called", sorted(name for name, shown in done.maps.items() if shown["rows"]), ["forks"])


def check_unload():
    rounds = 30
    done = probe(f"entry:{NAME}!probe_called {{ @n = count() }} entry:probe_take {{ @[stack(2)] = count() }}"
                 "return:probe_take { @r = count() }", SUBJECT, "unload", str(rounds), LIBRARY)
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    expect("calls", total(done.maps["n"]), rounds)
    # One that has just been loaded is probed a moment later.
    assert total(done.maps["r"]) == total(done.maps[""]) <= rounds, done.maps


def check_chain():
    reads = "arg0"
    for _ in range(12):
        reads = f"u64({reads})"
    done = probe(f"entry:{NAME}!probe_chain {{ @deep[{reads}] = count(); @text[str({reads})] = count() }}", SUBJECT, "chain", "5")
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    expect("what is not there", [[(row["key"], row["value"]) for row in done.maps[name]["rows"]] for name in ("deep", "text")],
           [[([0], 3)], [([""], 3)]])


def check_too_much():
    done = probe("entry:probe_work { @[arg0, tid] = count() }", COUNTING, "2", str(CALLS), "0")
    own = int(re.search(r"calls (\d+) ", done.stdout).group(1)) + 1
    document = done.maps[""]
    expect("keys that are shown and those without room", total(document) + document["lost"], own)
    assert document["lost"] > own // 2 and len(document["rows"]) <= 4096, document["lost"]
    done = probe('entry:probe_work { printf("%s %d\\n", str(arg1, 256), arg0) }', COUNTING, "2", str(CALLS), "0")
    own = int(re.search(r"calls (\d+) ", done.stdout).group(1)) + 1
    shown = sum("printf" in document for document in done.documents)
    assert shown == own or (shown < own and "records of printf had no room" in done.stderr), (shown, own, done.stderr)


def check_many_stacks():
    ways, told_most = 20000, 16384
    done = probe(f'entry:{NAME}!probe_called {{ printf("%s", stack()) }}', SUBJECT, "ways", str(ways))
    expect(f"exit status ({done.stderr})", done.returncode, 7)
    everything = [document["printf"] for document in done.documents if "printf" in document]
    shown = {text for text in everything if text.startswith("stack ")} # the others had names already
    told = {document["stack"]: document["frames"] for document in done.documents if "stack" in document}
    # Where others want the processors, some come faster than they are shown.
    no_room = re.search(r"([\d,]+) records of printf had no room", done.stderr)
    lost = int(no_room.group(1).replace(",", "")) if no_room else 0
    expect("stacks that were shown, and those that are said not to be", len(set(everything)) + lost, ways)
    assert lost < ways // 2, done.stderr
    assert all(text.startswith(("stack ", "\n    probe_way (")) for text in everything), everything[:3]
    expect("stacks that are told", (len(told), told.keys() <= shown), (min(told_most, len(shown)), True))
    untold = re.search(r"([\d,]+) times a stack was shown by a number that is not told", done.stderr)
    expect("those that are not, as it is said", int(untold.group(1).replace(",", "")) if untold else 0,
           len(shown) - len(told))
    without = sum(not frames for frames in told.values())
    unknown = re.search(r"([\d,]+) times a stack is shown by its number alone", done.stderr)
    expect("those without frames, as it is said", int(unknown.group(1).replace(",", "")) if unknown else 0, without)


def main():
    checks.run(check_death, check_exec, check_recorders_own_calls, check_unload, check_chain, check_too_much, check_many_stacks)


main()

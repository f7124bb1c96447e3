#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/runtimes.md says was run is run: each row with a cell that says **run** names in its last cell the tests of
./check, or the long forms of ./check --long, that run it; and a row without such a cell names none.

usage: runtimes_page_test.py ROOT
"""
import os
import re
import sys


def tests_of(root):
    """Names of tests in the build descriptions, and of long forms in ./check."""
    found = set()
    for folder, folders, names in os.walk(os.path.join(root, "tests")):
        folders[:] = [name for name in folders if name not in ("build", "node_modules")]
        if "meson.build" in names:
            text = open(os.path.join(folder, "meson.build"), encoding="utf-8").read()
            found.update(re.findall(r"\btest\('(\w+)'", text))
            # test('snapshots_' + name, ...) in a loop over names
            for loop in re.finditer(r"foreach name : \[([^\]]*)\](.*?)endforeach", text, re.DOTALL):
                for prefix in re.findall(r"\btest\('(\w+)' \+ name", loop[2]):
                    found.update(prefix + name for name in re.findall(r"'(\w+)'", loop[1]))
    long_forms = re.search(r"long_forms='([^']*)'", open(os.path.join(root, "check"), encoding="utf-8").read())
    return found, set(long_forms[1].split())


def rows(page):
    """(line number, cells) of each row of the tables that have a column of tests."""
    heading = None
    for number, line in enumerate(page.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            heading = None
        elif heading is None:
            heading = cells
        elif heading[-1] == "tests" and not set(cells[0]) <= set("-"):
            yield number, cells, len(heading)


def faults(page, tests, long_forms):
    count = 0
    for number, cells, width in rows(page):
        count += 1
        named = re.findall(r"`([^`]+)`", cells[-1])
        ran = any("**run**" in cell for cell in cells[:-1])
        if len(cells) != width:
            yield f"line {number}: {len(cells)} cells of {width}"
        elif ran and not named:
            yield f"line {number}: a cell says run, and no test is named"
        elif not ran and named:
            yield f"line {number}: tests are named, and no cell says run"
        for name in named:
            form = name.removeprefix("--long ")
            if form not in (long_forms if form != name else tests):
                yield f"line {number}: there is no {name}"
    if not count:
        yield "no row has tests"


def fails(page):
    return any(faults(page, {"a_live"}, {"a_long"}))


def main():
    head = "| runtime | walked | tests |\n|---|---|---|\n"
    judge_works = (not fails(head + "| A | **run** | `a_live`, `--long a_long` |\n| B | *read* | |\n")
                   and fails(head + "| A | **run** | |\n") and fails(head + "| A | **run** | `gone` |\n")
                   and fails(head + "| A | **run** | `--long a_live` |\n") and fails(head + "| B | — | `a_live` |\n")
                   and fails(head + "| B | — |\n") and fails("| runtime | walked |\n|---|---|\n| A | **run** |\n"))
    with open(os.path.join(sys.argv[1], "docs/runtimes.md"), encoding="utf-8") as file:
        found = list(faults(file.read(), *tests_of(sys.argv[1])))
    for fault in found:
        print(f"docs/runtimes.md: {fault}")
    if not judge_works:
        print("the judge is wrong of pages that are made up")
    print(f"{judge_works + (not found)} passed, {2 - judge_works - (not found)} failed")
    return 0 if judge_works and not found else 1


if __name__ == "__main__":
    sys.exit(main())

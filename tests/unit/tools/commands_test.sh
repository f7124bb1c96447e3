#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Commands that tests and tools ask for are declared in tools/setup: one that is not would skip its tests wherever nobody
# happened to install it. What is used without being asked for is not found in ./check, whose PATH holds no more.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
if ! command -v dpkg-query >/dev/null; then
    echo 'SKIP: no dpkg-query here'
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
say_failed()
{
    failed=1
    printf 'FAIL: %s\n' "$*"
}

asked_for()
{
    grep -rhoE 'command -v "?[a-z][a-z0-9+._-]*|shutil\.which\("[^"]+"|find_program\('\''[a-z0-9+._-]+'\'', required: false' \
        "$root"/{tests,tools,bench,corpus,check,demo} |
        sed -E "s/^command -v \"?//; s/^shutil\.which\(\"//; s/^find_program\('//; s/[\"'].*//; /[-.]$/d" | sort -u
}

# Not Debian's, or not what a test rests on: the machine's own package manager and its asking for root's rights; containers,
# of a tool that no test runs.
elsewhere='apt-get dpkg-query sudo docker qut qutc'

"$root/tools/declared-commands" "$work/all"
count=0
for name in $(asked_for); do
    case " $elsewhere " in *" $name "*) continue ;; esac
    count=$((count + 1))
    grep -qE "^[a-z]+ +[^ ]+ +$name( |$)" <("$root/tools/setup" --list) || [ -e "$work/all/$name" ] ||
        say_failed "$name is asked for, and no package of tools/setup has it"
done
[ "$count" -ge 10 ] || say_failed "only $count commands are asked for: the search finds nothing"

"$root/tools/declared-commands" "$work/build" build
for name in bash sed awk gcc python3; do
    [ -x "$work/build/$name" ] || say_failed "$name is on every machine, and not found"
done
for name in gdb qemu-arm chromium; do
    [ ! -e "$work/build/$name" ] || say_failed "$name is no command of group build"
done
PATH=$work/build sh -c 'gdb --version' >/dev/null 2>&1 && say_failed 'a command of another group runs'
[ "$failed" -eq 0 ] && echo "$count commands are asked for, all declared"
exit "$failed"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What bench/compare says of figures that are known. Measuring itself is too long for a test.
set -euo pipefail
# shellcheck source=bench/smoke.sh
. "$(dirname "$0")/smoke.sh"
compare=$(dirname "$0")/compare
work=$(mktemp -d)
trap 'rm -rf "$output" "$work"' EXIT

figures() # FILE WALK COMPILING [COMPLETE]
{
    printf '{"figures": {"walks, x86_64: same": %s, "compiling: libc": %s}, "complete": %s, "architectures": ["x86_64"]}\n' \
        "$2" "$3" "${4:-true}" >"$work/$1"
}
figures old 1000 5000
figures worse 1030 4000
figures slightly 1009 5000
figures part 1000 5000 false
printf '{"figures": {"walks, x86_64: other": 1}, "complete": true, "architectures": ["x86_64"]}\n' >"$work/other"
printf '{"figures": {"walks": "many"}}\n' >"$work/words"

run 0 0 "$compare" "$work/old" "$work/old"
expect '^2 figures compared: 0 worse, 0 better, by more than 1 %$'
run 1 1 "$compare" "$work/old" "$work/worse"
expect '\+3\.00 % +1000 -> +1030  walks, x86_64: same$'
expect '-20\.00 % +5000 -> +4000  compiling: libc$'
expect '^2 figures compared: 1 worse, 1 better, by more than 1 %$'
run 0 0 "$compare" --within 5 "$work/old" "$work/worse"
expect '^2 figures compared: 0 worse, 1 better, by more than 5 %$'
run 0 0 "$compare" "$work/old" "$work/slightly"
expect '^walks, x86_64 +1 +\+0\.90 '
run 2 2 "$compare" "$work/old" "$work/part"
expect '0 worse'
run 2 2 "$compare" "$work/old" "$work/other"
expect '^0 figures compared'
expect "^3 figures are of one side only"
run 2 2 "$compare" "$work/words" "$work/old"
expect 'not what a comparison keeps'
run 2 2 "$compare" no-such-commit
expect 'neither a commit nor a file|git is missing'
run 2 2 "$(dirname "$0")/run" --no-install --minutes 0
expect '--minutes needs a number'
finish

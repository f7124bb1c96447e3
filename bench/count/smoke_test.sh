#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Counts a program that loops 0, 100, 200, ... times between the marks: each bracket must have the same number of
# instructions more than the one before.
set -euo pipefail

subject=$1 plugin=$2 emulator=$3
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT

if ! command -v "$emulator" >/dev/null || ! [[ $("$emulator" -version) =~ version\ (7\.2|8\.0)\. ]]; then
    printf 'SKIP: no %s of version 7.2\n0 passed, 0 failed, 1 skipped\n' "$emulator"
    exit 77
fi
"$emulator" -plugin "$plugin,out=$counts" "$subject"
if awk '
    $1 != NR - 1 { exit bad = 1 }
    NR == 3 { step = $2 - last; if (step < 200 || step > 1000 || step % 100 != 0) exit bad = 1 }
    NR > 3 && $2 - last != step { exit bad = 1 }
    { last = $2 }
    END { exit bad || NR != 10 }' "$counts"; then
    printf '1 passed, 0 failed, 0 skipped\n'
else
    printf 'FAILED: not 10 brackets, each with as many instructions more than the one before:\n'
    sed 's/^/    /' "$counts"
    printf '0 passed, 1 failed, 0 skipped\n'
    exit 1
fi

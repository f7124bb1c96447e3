#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# That bench/probe/run measures something, and that a run takes no more instructions than it should: of those that do
# what they are for 60 a bytecode instruction at most, and of those whose condition is false fewer than half.
set -euo pipefail

here=$(dirname "$0") build=$1
# shellcheck source=bench/smoke.sh
. "$here/../smoke.sh"

run 0 2 "$here/run" --rounds 3 "$build"
# shellcheck disable=SC2016 # scripts, not commands
expect '^\| `entry:f \{ @ = count\(\) \}` \| 6 \| ([0-9]+|\?) \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \|$'
expect '^\| `return:f /duration > 5000/ '
if ! grep -q '| ? |' "$output"; then
    if awk -F ' [|] ' 'NR > 2 { n++; code[n] = $(NF - 4); count[n] = $(NF - 3); if (count[n] > 60 * code[n]) bad = 1 }
        END { exit bad || n != 5 || count[3] * 2 > count[2] || count[5] * 2 > count[4] }' "$output"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        cat "$output"
    fi
fi
run 0 0 "$here/run" --help
expect '^usage: bench/probe/run'

finish

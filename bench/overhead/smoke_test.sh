#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# That points and run say what they should. What the figures are is not asked.
set -euo pipefail

here=$(dirname "$0") points=$1
output=$(mktemp)
trap 'rm -f "$output"' EXIT
passed=0
failed=0

expect() # PATTERN: in what was put out
{
    if grep -qE -- "$1" "$output"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: no line like: %s; but\n' "$1"
        sed 's/^/    /' "$output"
    fi
}

run() # STATUS COMMAND...
{
    local wanted=$1 status=0
    shift
    "$@" >"$output" 2>&1 || status=$?
    [ "$status" -eq "$wanted" ] || {
        failed=$((failed + 1))
        printf 'FAILED: exit status %d: %s\n' "$status" "$*"
        sed 's/^/    /' "$output"
    }
}

run 0 "$points" 1
for what in throttled scope taken-30 taken-100; do
    expect "^$what( -?[0-9]+\.[0-9]){3}\$"
done
run 2 "$points" 0
expect '^points: 1 to 101 rounds'
run 0 "$here/run" --help
expect '^usage: bench/overhead/run'
run 2 "$here/run" --only nothing --built /nowhere
expect '^overhead: no such program'

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

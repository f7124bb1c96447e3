#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# That every part of bench/store/run measures something, and says so. What the figures are is not asked.
set -euo pipefail

here=$(dirname "$0") build=$1
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

run() # STATUS-AT-MOST COMMAND...
{
    local most=$1 status=0
    shift
    "$@" >"$output" 2>&1 || status=$?
    [ "$status" -le "$most" ] || {
        failed=$((failed + 1))
        printf 'FAILED: exit status %d: %s\n' "$status" "$*"
        sed 's/^/    /' "$output"
    }
}

run 1 "$here/run" --short --built "$build"
expect '^\| append of another known node, of 4096 in random order \| [0-9.]+ \('
expect '^\| \*\*store: intern \+ append\*\* \| [0-9.]+ \('
expect '^\| tree with a lock, malloc for each node \| [0-9.]+ \('
expect '^PASS  small: 0 samples were not stored'
expect '^PASS  large: 0 samples were not stored'
expect '^(PASS|MISS)  two writers / one: [0-9.]+ '
expect '^PASS  python3: balanced, nothing lost'
expect '^(PASS|MISS)  python3: [0-9.]+ bytes a sample'
expect '^(PASS|MISS)  perfetto: [0-9.]+ million records'
run 0 "$here/run" --help
expect '^usage: bench/store/run'
! "$here/run" --only nothing >"$output" 2>&1 || failed=$((failed + 1))
expect 'takes append, sample, writers, programs or export'

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

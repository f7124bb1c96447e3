#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Samples python3 for a moment: that both modes take stacks which end where stacks end, and what the script says then.
# How long anything takes is not asked; so the table of a module that python3 loads meanwhile may still be pending.
set -euo pipefail

here=$(dirname "$0") sampler=$1
output=$(mktemp)
trap 'rm -f "$output" "$output.kept"' EXIT
passed=0
failed=0

expect() # STATUS PATTERN COMMAND...: the status is a pattern, too
{
    local wanted=$1 pattern=$2 status=0
    shift 2
    "$@" >"$output" 2>&1 || status=$?
    if [[ $status =~ ^$wanted$ ]] && grep -qE -- "$pattern" "$output"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: exit status %d, wanted %d and a line like: %s; but\n' "$status" "$wanted" "$pattern"
        sed 's/^/    /' "$output"
    fi
}

if [ ! -x /usr/bin/python3 ]; then
    printf 'SKIP: no /usr/bin/python3\n0 passed, 0 failed, 1 skipped\n'
    exit 77
fi
expect '[01]' '^\| python3 \| 100th malloc \| [0-9]{3,} \| 1 \| [1-9][0-9]* / [1-9][0-9]* \|.*\| (0|[0-9]+ table pending) \|$' \
    "$here/run" --short --rounds 1 --only python3 --sampler "$sampler"
cp "$output" "$output.kept"
# The chase had its turn, or the run was too short for it.
expect 0 '^\| python3 \| ([0-9]+ \| [0-9.]+ \| [0-9.]+ \| [0-9.]+|– \| – \| – \| –) \|$' cat "$output.kept"
# Costs of all four walkers, and the ratios.
expect 0 '^\| python3 \| 100th malloc( \| [1-9][0-9]* / [0-9]+){4}( \| [0-9.]+ \(.*\)){3} \|$' cat "$output.kept"
expect 2 'no such program' "$here/run" --short --only nobody --sampler "$sampler"
expect 2 'status 127|not measured|no samples|cannot' "$here/run" --short --rounds 1 --only python3 --sampler /dev/null
expect 0 'usage: bench/programs/run' "$here/run" --help

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

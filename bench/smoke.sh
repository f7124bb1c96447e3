# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the smoke tests of benchmarks share. Sourced, not run.

output=$(mktemp)
trap 'rm -f "$output"' EXIT
passed=0
failed=0

run() # LEAST-STATUS MOST-STATUS COMMAND...: what it puts out is asked for by expect
{
    local least=$1 most=$2 status=0
    shift 2
    "$@" >"$output" 2>&1 || status=$?
    if [ "$status" -lt "$least" ] || [ "$status" -gt "$most" ]; then
        failed=$((failed + 1))
        printf 'FAILED: exit status %d: %s\n' "$status" "$*"
        sed 's/^/    /' "$output"
    fi
}

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

finish()
{
    printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
    [ "$failed" -eq 0 ]
}

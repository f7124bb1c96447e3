#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/count-tests decides whether ./check says "0 failed": every way a test program can end must be counted right.
set -euo pipefail

counter=$QUT_SOURCE_ROOT/tools/count-tests
log=$(mktemp)
again=$(mktemp)
trap 'rm -f "$log" "$again"' EXIT
passed=0
failed=0

expect() # NAME COUNTS RESULT EXIT_STATUS STDOUT(JSON)
{
    local said
    printf '{"name": "t", "stdout": "%s", "result": "%s", "returncode": %d}\n' "$5" "$3" "$4" >"$log"
    said=$("$counter" "$log")
    said=${said%%$'\n'*}
    if [ "$said" = "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: wanted "%s", got "%s"\n' "$1" "$2" "$said"
    fi
}

expect 'a plain program' '1 0 0' OK 0 'hello\n'
expect 'a plain program that fails' '0 1 0' FAIL 1 ''
expect 'exit 77' '0 0 1' SKIP 77 ''
expect 'a SKIP line' '0 0 1' OK 0 'SKIP: no corpus\n'
expect 'a SKIP line does not excuse a failure' '0 1 0' FAIL 1 'SKIP: no corpus\n'
expect 'Check' '5 0 0' OK 0 'Running suite(s): s\n100%: Checks: 5, Failures: 0, Errors: 0\n'
expect 'Check, two suites, one failing' '6 3 0' FAIL 1 \
    '60%: Checks: 5, Failures: 1, Errors: 1\n75%: Checks: 4, Failures: 1, Errors: 0\n'
expect 'Check with skips' '3 0 2' OK 0 'SKIP: a\nSKIP: b\n100%: Checks: 5, Failures: 0, Errors: 0\n'
expect 'Check good, but a leak at exit' '5 1 0' FAIL 23 '100%: Checks: 5, Failures: 0, Errors: 0\n'
expect 'our own harness' '7 0 2' OK 0 'SKIP: a\nok   b\n7 passed, 0 failed, 2 skipped\n'
expect 'our own harness, failing' '7 1 0' FAIL 1 '7 passed, 1 failed, 0 skipped\n'
expect 'timed out' '0 1 0' TIMEOUT -15 'ok   a\n'
expect 'killed' '0 1 0' ERROR -11 ''

expect_again() # NAME COUNTS LEAD RESULT...
{
    local name=$1 counts=$2 lead=$3 result said
    shift 3
    printf '{"name": "s / t", "stdout": "", "result": "FAIL", "returncode": 1}\n' >"$log"
    for result in "$@"; do
        printf '{"name": "s / t", "stdout": "", "result": "%s", "returncode": 0}\n' "$result"
    done >"$again"
    said=$("$counter" "$log" "$again")
    if [ "${said%%$'\n'*}" = "$counts" ] && grep -q "^$lead --- s / t: FAIL" <<<"$said" &&
        [ "$("$counter" --failed "$log")" = t ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: wanted "%s" and "%s", got "%s"\n' "$name" "$counts" "$lead" "$said"
    fi
}

expect_again 'passed each time alone' '1 0 0' shaky OK OK OK
expect_again 'failed once more alone' '0 1 0' fail OK FAIL OK
expect_again 'did not run again' '0 1 0' fail

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

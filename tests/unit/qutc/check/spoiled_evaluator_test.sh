#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each program is the evaluator's test suite, linked with an evaluator that makes one mistake: it must fail, by a failed
# check and not by a crash.
set -u
passed=0 failed=0
for program in "$@"; do
    output=$("$program" 2>&1)
    status=$?
    if [ "$status" -eq 1 ] && printf '%s\n' "$output" | grep -Eq 'Failures: [1-9][0-9]*, Errors: 0$'; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s: the mistake was not noticed (exit status %s)\n' "$(basename "$program")" "$status"
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]

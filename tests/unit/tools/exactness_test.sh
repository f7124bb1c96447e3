#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each table that tools/exactness makes stands below a section of the pages that it is for; what it does not know it refuses.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
exactness=$root/tools/exactness
failed=0
say_failed()
{
    failed=1
    printf 'FAIL: %s\n' "$*"
}

count=0
while read -r name section; do
    count=$((count + 1))
    grep -qE "^## $section" "$root/docs/exactness.md" "$root/docs/qutc-lint.md" || grep -qE "^### $section" "$root/docs/exactness.md" ||
        say_failed "$name: no page has a section \"$section\""
done < <("$exactness" --list)
[ "$count" -ge 10 ] || say_failed "only $count tables"

status=0
"$exactness" "$root" no_such_table >/dev/null 2>&1 || status=$?
[ "$status" -eq 2 ] || say_failed "an unknown table: exit status $status"
status=0
"$exactness" /no/such/build >/dev/null 2>&1 || status=$?
[ "$status" -eq 2 ] || say_failed "a build that is not there: exit status $status"

# What has no short form is not made in one.
output=$("$exactness" --short "$root" sets 2>&1) || say_failed "sets, in short: $output"
[[ $output == *'left out'* && $output == *'0 passed, 0 failed' ]] || say_failed "sets, in short: $output"
[ "$failed" -eq 0 ] && echo "$count tables, each with its section"
exit "$failed"

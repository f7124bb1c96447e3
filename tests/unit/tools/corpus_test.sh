#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# corpus/check must tell inputs that are right from those that are absent or changed; and the manifest must be sound here.
set -euo pipefail

check=$QUT_SOURCE_ROOT/corpus/check
shared=$(mktemp -d)
trap 'rm -rf "$shared"' EXIT
passed=0
failed=0
header='kind\tname\tfiles\tbytes\tidentity\torigin\ttests\n'

expect() # NAME STATUS PATTERN ARGUMENT...
{
    local name=$1 wanted=$2 pattern=$3 status=0 said
    shift 3
    said=$("$check" "$@" 2>&1) || status=$?
    if [ "$status" -eq "$wanted" ] && [[ $said =~ $pattern ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: status %d, wanted %d and "%s"; said:\n%s\n' "$name" "$status" "$wanted" "$pattern" "$said"
    fi
}

mine() # NAME STATUS PATTERN
{
    expect "$@" --shared "$shared" --manifest "$shared/manifest"
}

mkdir -p "$shared/corpus/set"
echo one >"$shared/corpus/one"
echo two >"$shared/corpus/set/two"
{
    printf '%b' "$header"
    "$check" --shared "$shared" --row "$shared/corpus/one" "$shared/corpus/set" | sed 's|$|\tmade here\tcorpus/check|'
} >"$shared/manifest"
mine 'all is here' 0 '^2 here and right, 0 of another version, 0 absent, 0 wrong$'

echo more >"$shared/corpus/set/three"
mine 'a set with one file more' 1 'wrong: set: files 2, not 1'
rm "$shared/corpus/set/three"
echo eno >"$shared/corpus/one"
mine 'a file of the same size' 1 'wrong: one: identity '
rm "$shared/corpus/one"
mine 'an absent file' 77 'absent: one.skips, whole or in part: corpus/check \(1 absent\).1 here and right, .* 1 absent, 0 wrong'
echo one >"$shared/corpus/one"

printf 'package\t/gone/file\t1\t-\tgone 1.0\tDebian 12\t-\n' >>"$shared/manifest"
mine 'an absent package' 77 'absent: /gone/file: of package gone'
printf 'file\tone\n' >>"$shared/manifest"
mine 'a row that is cut off' 1 'row 5 has 2 columns, not 7'
printf '%bfile\tnone\t1\t0\t-\tmade here\ttests/gone_test.c\n' "$header" >"$shared/manifest"
mine 'a test that is not there' 1 'wrong: none: names a test that is not there: tests/gone_test.c'
echo >"$shared/manifest"
mine 'no manifest' 1 'the first line is not: kind name'

# The manifest itself, with the inputs that are here.
status=0
"$check" || status=$?
if [ "$status" -eq 1 ]; then
    failed=$((failed + 1))
    echo 'FAIL corpus/manifest.tsv'
else
    passed=$((passed + 1))
    [ "$status" -eq 0 ] || echo 'SKIP: inputs of corpus/manifest.tsv that are absent'
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

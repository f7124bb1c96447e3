#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What symbols say of real libarts, of a snapshot of Android 8's development and of Android 12: where method tracing's
# return addresses would be looked up, and, without its mark, where the interpreter is. Usage: libart_test.sh QUTC QUT
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qutc=$(readlink -f "$1")
qut=$(readlink -f "$2")
corpus=${QUT_SHARED:-$here/../../../../shared}/corpus/snapshots
if [ ! -d "$corpus" ]; then
    echo "SKIP: no snapshots under $corpus"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export QUT_CACHE=$work/cache
passed=0
failed=0

expect() # WHAT WANTED GOT
{
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'not so: %s:\n  wanted %s\n  got    %s\n' "$1" "$2" "$3"
    fi
}

rule() # LIBRARY ADDRESS: the last word
{
    "$qutc" lookup "$1" "$2" | sed 's/.* //' || true
}

verified() # LIBRARY: nothing is wrong, so much is refused
{
    "$qutc" verify "$1" | sed -n 's/.* \(refused=[0-9]*\) \(wrong=[0-9]*\)$/\1 \2/p'
}

mkdir "$work/8" "$work/12"
gzip -dc "$corpus/art_quick_osr_stub_arm/libart.so.gz" >"$work/8/libart.so"
gzip -dc "$corpus/common/libart.so_82c0556f4b66528e4a608c100a63b712.gz" >"$work/12/libart.so"

# art_quick_instrumentation_exit: 88 bytes of Thumb code; its neighbour ends right before.
expect 'before tracing' r8=[cfa+92] "$(rule "$work/8/libart.so" 0x417bed)"
expect 'where its return address is looked up' INSTRUMENTED "$(rule "$work/8/libart.so" 0x417bef)"
expect 'its first instruction' INSTRUMENTED "$(rule "$work/8/libart.so" 0x417bf0)"
expect 'its last' INSTRUMENTED "$(rule "$work/8/libart.so" 0x417c46)"
expect 'behind' body-only "$(rule "$work/8/libart.so" 0x417c48)"
expect 'arm, rows' 'refused=11 wrong=0' "$(verified "$work/8/libart.so")"
expect 'aarch64, behind a hole' INSTRUMENTED "$(rule "$work/12/libart.so" 0x29d18f)"
expect 'aarch64, rows' 'refused=52 wrong=0' "$(verified "$work/12/libart.so")"

# The mark spoiled: no "DEX1", as in Android 7.
expect 'marked' dex-pc=r4 "$(rule "$work/8/libart.so" 0x402230)"
LC_ALL=C sed -i 's/\x0cDEX1\x13/\x0cDEX0\x13/' "$work/8/libart.so"
expect 'unmarked prologue' r8=[cfa-20] "$(rule "$work/8/libart.so" 0x402230)"
expect 'first handler' dex-pc=r4 "$(rule "$work/8/libart.so" 0x402280)"
expect 'end of the interpreter' dex-pc=r4 "$(rule "$work/8/libart.so" 0x412556)"
expect 'unmarked, rows' 'refused=11 wrong=0' "$(verified "$work/8/libart.so")"

# The same stack is found by either.
snapshot=$work/snapshot
cp -r "$corpus/art_quick_osr_stub_arm" "$snapshot"
chmod -R u+w "$snapshot"
gzip -d "$snapshot"/*.gz
cp "$work/8/libart.so" "$snapshot/libart.so"
"$qut" stack --quiet --no-cache --snapshot "$snapshot" >"$work/stack"
wanted=$(awk '{ print $3 }' "$snapshot/output.txt" | xargs)
expect 'the stack' "$wanted" "$(awk '/#/ { print $3 }' "$work/stack" | xargs)"

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]

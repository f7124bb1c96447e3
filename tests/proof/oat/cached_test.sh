#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Real OAT files without build-id (Android 11): what qutc warm-up puts into the cache, qut stack finds there. A table that
# is made anew replaces the file, which then has another inode.
# usage: cached_test.sh QUTC QUT
set -u
export LC_ALL=C
qutc=$1 qut=$2
art11=${QUT_SHARED:-../shared}/corpus/art11
passed=0 failed=0 skipped=0
work=$(mktemp -d) || exit 1
export QUT_CACHE="$work/cache"
trap 'rm -rf "$work"' EXIT

check() { # WHAT CONDITION...
    what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        echo "FAIL: $what"
        failed=$((failed + 1))
    fi
}

files() {
    ls -i "$QUT_CACHE" | grep '\.qut$' | sort
}

for name in x86_64_aot arm64_aot; do
    if [ ! -d "$art11/$name" ]; then
        echo "SKIP: no corpus/art11/$name under QUT_SHARED"
        skipped=$((skipped + 1))
        continue
    fi
    rm -rf "$QUT_CACHE"
    mkdir -p "$work/common" "$work/$name"
    cp "$art11/$name"/* "$work/$name" 2>/dev/null
    for packed in "$art11"/common/*.gz; do
        gzip -dc "$packed" > "$work/common/$(basename "$packed" .gz)"
    done
    while read -r target link; do
        [ -n "$target" ] && ln -sfn "$target" "$work/$name/$link"
    done < "$art11/$name/links.txt"

    "$qutc" warm-up "$work/$name/boot-snap.oat" > "$work/log" 2>&1
    files > "$work/warm"
    check "$name: one table" [ "$(wc -l < "$work/warm")" -eq 1 ]
    "$qutc" stat "$QUT_CACHE"/*.qut > "$work/stat" 2>&1
    check "$name: $(cat "$work/log" "$work/stat")" grep -q 'OAT identity' "$work/stat"
    "$qut" stack --snapshot "$work/$name" > "$work/first" 2>&1
    files > "$work/cached"
    # The libraries' tables are new, the OAT file's is the one that was there.
    check "$name: made again" [ -z "$(comm -23 "$work/warm" "$work/cached")" ]
    check "$name: it is used" grep -q boot-snap.oat "$work/first"
    "$qut" stack --snapshot "$work/$name" > "$work/second" 2>&1
    files > "$work/again"
    check "$name: the second time nothing is made" cmp -s "$work/cached" "$work/again"
    check "$name: the same stack" cmp -s "$work/first" "$work/second"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] || exit 1
[ "$passed" -gt 0 ] || exit 77

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Real stacks of Android 11's runtime, walked twice: with the OAT file as it is, and with a copy that has lost all but
# what is mapped: no frame program, no symbol. The headers of its methods must lead through it, pc by pc.
# usage: without_cfi_test.sh QUT
set -u
export LC_ALL=C
qut=$1
art11=${QUT_SHARED:-../shared}/corpus/art11
passed=0 failed=0 skipped=0
work=$(mktemp -d) || exit 1
export QUT_CACHE="$work/cache"
trap 'rm -rf "$work"' EXIT

# The snapshot as the corpus's expand makes it.
expand() { # NAME
    mkdir -p "$work/common" "$work/$1"
    cp "$art11/$1"/* "$work/$1" 2>/dev/null
    for packed in "$art11"/common/*.gz; do
        gzip -dc "$packed" > "$work/common/$(basename "$packed" .gz)"
    done
    while read -r target link; do
        [ -n "$target" ] && ln -sfn "$target" "$work/$1/$link"
    done < "$art11/$1/links.txt"
}

zeros() { # FILE OFFSET BYTES
    dd if=/dev/zero of="$1" bs=1 seek="$2" count="$3" conv=notrunc 2>/dev/null
}

for name in x86_64_aot arm64_aot; do
    if [ ! -d "$art11/$name" ]; then
        echo "SKIP: no corpus/art11/$name under QUT_SHARED"
        skipped=$((skipped + 1))
        continue
    fi
    expand "$name"
    "$qut" stack --snapshot "$work/$name" 2>/dev/null | sed 's/ (.*//' > "$work/whole"
    chmod u+w "$work/$name/boot-snap.oat"
    zeros "$work/$name/boot-snap.oat" 40 8 # ELF64: where section headers are
    zeros "$work/$name/boot-snap.oat" 60 4 # how many, and which has their names
    # For the cache it is the same file: all that counts is what is mapped of it.
    QUT_CACHE="$work/another" "$qut" stack --snapshot "$work/$name" 2>/dev/null | sed 's/ (.*//' > "$work/mapped"
    java=$(grep -c boot-snap.oat "$work/mapped")
    frames=$(grep -c '^ *#' "$work/mapped")
    # The corpus's own list of frames, too: the walk is whole.
    truth=$(grep -c '^ *#' "$art11/$name/output.txt")
    if [ "$java" -ge 10 ] && [ "$frames" = "$truth" ] && cmp -s "$work/whole" "$work/mapped"; then
        echo "$name: $frames frames, $java of compiled Java code"
        passed=$((passed + 1))
    else
        echo "FAIL: $name: $frames frames of $truth, $java of compiled Java code"
        diff "$work/whole" "$work/mapped" | head -20
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] || exit 1
[ "$passed" -gt 0 ] || exit 77

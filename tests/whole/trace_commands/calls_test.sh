#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Exact calls as qut info and qut export print them: the same text as in the folder calls, made of a story that is told
# by hand. With --write the texts are made anew: look at what has changed.
#
#     calls_test.sh QUT TELL [--write]
set -uo pipefail

qut=$(realpath "$1")
tell=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)/calls
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failed=0

same() # NAME STATUS COMMAND...
{
    local name=$1 wanted=$2 status
    shift 2
    "$@" >"$name" 2>err
    status=$?
    if [ "$status" != "$wanted" ]; then
        printf 'FAIL %s: exit status %s instead of %s: %s\n' "$name" "$status" "$wanted" "$(head -c 300 err)"
        failed=1
    fi
    # How well it packs is not ours.
    sed -i -E 's/^  sizes .*/  sizes/; s/"file_bytes": ?[0-9]+/"file_bytes": 0/; s/"exporter":"qut [^"]*"/"exporter":"qut"/' "$name"
    if [ "${write:-}" ]; then
        cp "$name" "$here/$name"
    elif ! diff -u "$here/$name" "$name"; then
        printf 'FAIL %s is another one\n' "$name"
        failed=1
    fi
}

[ "${3:-}" = --write ] && write=1
"$tell" told.qtrace || exit 1
"$tell" other.qtrace 'a1 b2 /b2 /a1' 1 || exit 1

same info.txt 0 "$qut" info --calls told.qtrace
same slowest.txt 0 "$qut" info --slowest b,50 told.qtrace
same nobody.txt 0 "$qut" info --slowest nobody told.qtrace
same thread.txt 0 "$qut" info --calls --thread 4001 told.qtrace
same info.json 0 "$qut" info --json --calls --slowest b told.qtrace
same replay.txt 0 "$qut" export -q -f replay -o - told.qtrace
same chrome.json 0 "$qut" export -q -f chrome -o - told.qtrace
same thread-replay.txt 0 "$qut" export -q -f replay --thread 4001 -o - told.qtrace

# Several parts in one file: each process has its own.
cat told.qtrace other.qtrace >both.qtrace
same both.txt 0 "$qut" info --calls --top 3 both.qtrace
same both-replay.txt 0 "$qut" export -q -f replay -o - both.qtrace

# Of b and c one of several calls is recorded, of y none, of x all.
"$tell" thinned.qtrace 'a1 b2 /b2 b2 c3 /c3 /b2 c2 /c2 c2 /c2 /a1 x1 /x1' 1 'b61 c2 y7 x0' || exit 1
same thinned.txt 0 "$qut" info --calls thinned.qtrace
same thinned-replay.txt 0 "$qut" export -q -f replay -o - thinned.qtrace

# A file without its trailer has what it has, and says so.
head -c -168 told.qtrace >cut.qtrace
same cut.txt 1 "$qut" info --calls --top 3 cut.qtrace
exit "$failed"

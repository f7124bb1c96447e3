#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# AOSP's offline unwinding snapshots, and stacks of a real ART: `qut stack --snapshot` prints what their output.txt has,
# to the last byte of every frame: pc, module, name. Every directory that has an output.txt counts. Usage: walk_test.sh
# QUT
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"

known=28 # 24 of AOSP's, 4 of a real ART
corpus=${QUT_SHARED:-$here/../../../../shared}/corpus
if [ ! -d "$corpus/snapshots" ]; then
    echo "SKIP: no snapshots under $corpus"
    exit 77
fi
export QUT_CACHE=$work/cache
# Outside this process: expand changes directories.
sh "$corpus/expand" "$work/snapshots"
cd "$work/snapshots"

# AOSP's test has the image in the memory of the process, and no file of that name: made from the file that is there.
python3 - apk_rorx_unreadable_arm64 <<'END'
import struct
import sys
with open(sys.argv[1] + "/fake.apk", "rb") as file:
    image = file.read()[0x4000:0x6000]
with open(sys.argv[1] + "/apk.data", "wb") as memory:
    memory.write(struct.pack("<Q", 0x7426D2D000) + image)
END
# AOSP's test adds the mappings that simpleperf makes of symbol files.
chmod u+w jit_map_arm/maps.txt
cat >>jit_map_arm/maps.txt <<'END'
d025c788-d025c9f0 r-xp 0 00:00 0 jit_map0.so
d025cd98-d025cff4 r-xp 0 00:00 0 jit_map1.so
END

mapfile -t snapshots < <(find . -name output.txt -printf '%P\n' | sed 's,/output.txt$,,' | LC_ALL=C sort)
right=0
frames=0
for snapshot in "${snapshots[@]}"; do
    run stack --snapshot "$snapshot"
    grep '^  #' "$work/out" >"$work/lines" || true
    wanted=$(wc -l <"$snapshot/output.txt")
    frames=$((frames + wanted))
    good=0
    diff "$snapshot/output.txt" "$work/lines" >"$work/diff" || good=1
    [ "$status" -eq 0 ] && [ "$wanted" -gt 0 ] || good=1
    if [ "$good" -eq 0 ]; then
        right=$((right + wanted))
        printf 'ok %s: %d frames; %s\n' "$snapshot" "$wanted" "$(grep 'end:' "$work/out" || echo outermost frame)"
    fi
    result "$snapshot" "$good" "status $status; < output.txt, > qut: $(head -c 3000 "$work/diff") $(grep end: "$work/out")"

    # The same again for programs.
    run stack --json --snapshot "$snapshot"
    cp "$work/out" "$snapshot/output.json"
done
good=0
python3 "$here/kinds.py" "${snapshots[@]}" 2>"$work/err" || good=1
result "--json, and what each frame is" "$good" "$(head -c 3000 "$work/err")"
good=0
[ "${#snapshots[@]}" -ge $known ] || good=1
result "all snapshots" "$good" "only ${#snapshots[@]} of $known are there"
printf '%d of %d frames are right\n' "$right" "$frames"
finish

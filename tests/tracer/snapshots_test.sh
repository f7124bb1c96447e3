#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `qut stack --snapshot` prints what AOSP's unwinder prints, line by line, for the snapshots whose stacks are native code
# alone. Where it does not, the difference stands here with its reason. Usage: snapshots_test.sh QUT
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
# shellcheck source=tests/tracer/lib.sh
. "$here/lib.sh"

corpus=${QUT_SHARED:-$here/../../../shared}/corpus
if [ ! -d "$corpus/snapshots" ]; then
    echo "SKIP: no snapshots under $corpus"
    exit 77
fi
export QUT_CACHE=$work/cache
# Outside this process: expand changes directories.
sh "$corpus/expand" "$work/snapshots"
cd "$work/snapshots"

snapshots='apk_rorx_arm64 apk_rorx_unreadable_arm64 apk_soname_at_end_arm64 bad_eh_frame_hdr_arm64 bluetooth_arm64/pc_1
    bluetooth_arm64/pc_4 debug_frame_first_x86 eh_frame_hdr_begin_x86_64 gnu_debugdata_arm invalid_elf_offset_arm
    pauth_pc_arm64 shared_lib_in_apk_arm64 shared_lib_in_apk_memory_only_arm64 signal_fde_x86_64 signal_load_bias_arm
    straddle_arm64 vlenb_riscv64 zstd_compress_arm'

# Turns AOSP's lines into those we print instead.
known_differences() # SNAPSHOT
{
    case $1 in
    # The rule there depends on vlenb, the length of vector registers: refused (CFA_EXPRESSION).
    vlenb_riscv64) head -n 5 ;;
    *) cat ;;
    esac
}

# AOSP's test has the image in the memory of the process, and no file of that name: made from the file that is there.
python3 - apk_rorx_unreadable_arm64 <<'END'
import struct
import sys
with open(sys.argv[1] + "/fake.apk", "rb") as file:
    image = file.read()[0x4000:0x6000]
with open(sys.argv[1] + "/apk.data", "wb") as memory:
    memory.write(struct.pack("<Q", 0x7426D2D000) + image)
END

for snapshot in $snapshots; do
    run stack --snapshot "$snapshot"
    grep '^  #' "$work/out" >"$work/lines" || true
    known_differences "$snapshot" <"$snapshot/output.txt" >"$work/wanted"
    good=0
    diff "$work/wanted" "$work/lines" >"$work/diff" || good=1
    [ "$status" -eq 0 ] || good=1
    result "$snapshot" "$good" "status $status; < AOSP, > qut: $(head -c 3000 "$work/diff") $(grep end: "$work/out")"
done
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A JavaScript machine that writes a map for perf, or a jitdump: its functions have names in recordings and stacks.
# Usage: made_names_test.sh QUT
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
export QUT_CACHE=$work/cache
cd "$work"
if ! command -v node >/dev/null; then
    skip node 'not here: tools/setup consumers'
    finish
    exit 0
fi
cat >main.js <<'END'
let kept = 0;
function innermost(n) { for (let i = 0; i < 3000000; i++) kept = (kept * 31 + i) | 0; return kept; }
function descendTo(depth) { return depth === 0 ? innermost(depth) : descendTo(depth - 1) + 1; }
// Of processor time: of a busy machine's most would be the start.
while (process.cpuUsage().user < Number(process.argv[2]) * 1e6) kept = descendTo(20) | 0;
END

flags=(--interpreted-frames-native-stack --no-turbo-inlining)
record_node() # FLAG SECONDS
{
    "$qut" record -q -F 500 -o trace -- node "$1" "${flags[@]}" main.js "$2" >out 2>err || true
    "$qut" export trace -f collapsed -o - >stacks 2>/dev/null || true
}
record_node --perf-basic-prof 3
chains() { grep -c 'descendTo.*;[^;]*descendTo.*;[^;]*innermost' stacks; }
check 'a recording has the names of its stacks' [ "$(chains || true)" -gt 0 ]
named() { awk '{ n = $NF; all += n; if (/innermost/) with += n } END { exit !(with > 0.8 * all) }' stacks; }
check 'most samples have them' named

rm -f "/tmp/perf-$("$qut" info trace 2>/dev/null | sed -n 's/.*from  *process \([0-9]*\),.*/\1/p').map"

# Its last 2 MiB are written when it ends: here, all.
record_node --perf-prof 3
check 'a recording has names that were written at the end' [ "$(chains || true)" -gt 0 ]
check 'most samples have them, too' named
rm -f jit-*.dump

start_node() # FLAG
{
    node "$1" "${flags[@]}" main.js 60 &
    machine=$!
    subjects+=("$machine")
    disown
}
start_node --perf-basic-prof
for _ in $(seq 100); do
    ! grep -q innermost "/tmp/perf-$machine.map" 2>/dev/null || break
    sleep 0.1
done
for _ in $(seq 20); do # it may stand between two descents
    "$qut" stack -p "$machine" >stack 2>err || true
    ! grep -q descendTo stack || break
    sleep 0.1
done
check 'a stack has them' grep -q descendTo stack
rm -f "/tmp/perf-$machine.map"
finish

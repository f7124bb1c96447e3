#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# V8 walks through return addresses that were exchanged: functions that JavaScript's code calls are traced while errors are
# made, whose stacks it reads.
# usage: node_test.sh QUT
set -euo pipefail
qut=$1
node=$(command -v /usr/bin/node) || { echo "SKIP: there is no /usr/bin/node"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
script='
function deep(n) { return n ? deep(n - 1) : new Error("x").stack.split("\n").length; }
let sum = 0;
for (let i = 0; i < 200; i++) { try { null.x; } catch (e) { sum += e.stack.length > 0; } sum += deep(i % 9); }
console.log(sum, [3, 1, 2].sort((a, b) => { if (a === b) throw a; return a - b; }), JSON.stringify({ a: [..."abc"] }));'
"$node" -e "$script" >"$work/expected"
"$qut" trace -o "$work/out.qtrace" -f 'node!v8::internal::Runtime_*' -f 'node!v8::internal::Builtin_*' -- \
    "$node" -e "$script" >"$work/now" 2>"$work/said" || { cat "$work/said"; exit 1; }
cmp "$work/expected" "$work/now"
grep -q '[1-9][0-9]* entries' "$work/said" || { cat "$work/said"; exit 1; }
cat "$work/said"

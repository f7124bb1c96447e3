#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/walk/run with one round of few walks: every scenario and walker that is here gives figures, all pcs are compared, and a
# walker that gets one wrong makes it fail. What the figures are is not asked.
set -euo pipefail

bench_walk=$1 walks=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

check() # WHAT COMMAND...
{
    local what=$1
    shift
    if "$@" >"$work/check" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s\n' "$what"
        sed 's/^/    /' "$work/check"
    fi
}

walk() # OPTION...
{
    "$bench_walk" --cache "$work/tables" "$@" >"$work/output" 2>"$work/errors"
}

# One line a round for each walker that is there; of code with frame pointers, and without.
mapfile -t walkers < <("$bench_walk" --cache "$work/tables" --list | grep -v -e '^missing: ' -e '^nothing$')
for scenario in same top1 top3 top5 top9 middle all known3 known5 known diverse cold-l2 fresh-thread signal; do
    check "$scenario: status" walk --scenario "$scenario" --depth 18 --rounds 1 --walks 4
    for walker in "${walkers[@]}"; do
        is_signal=false wants_signal=false
        [[ $walker != signal-* ]] || is_signal=true
        [ "$scenario" != signal ] || wants_signal=true
        [ $is_signal = $wants_signal ] || continue
        check "$scenario: $walker" grep -qE "^walk $scenario 18 fp $walker 0 -?[0-9.]+$" "$work/output"
        [[ $walker == *chase* ]] ||
            check "$scenario: $walker" grep -qE "^walk $scenario 18 nofp $walker 0 -?[0-9.]+$" "$work/output"
    done
done
for depth in 60 200; do
    check "depth $depth" walk --scenario all --depth "$depth" --rounds 1 --walks 4
done
check 'fresh process' walk --scenario fresh-process --walkers qut --code nofp
check 'fresh process: times' grep -qE '^first fresh-process 60 nofp qut [0-9.]+ -?[0-9.]+$' "$work/output"
check 'counting' walk --scenario top3 --depth 18 --count --walks 5 --walkers qut
check 'counting: what was counted' grep -qx 'count top3 18 nofp qut 5' "$work/output"

# The last pc of one walker's walks is made wrong.
for walker in chase-checked libgcc qut; do
    status=0
    walk --depth 18 --rounds 1 --walks 4 --walkers "$walker" --spoil "$walker" || status=$?
    check "a wrong pc of $walker: status $status" [ "$status" -eq 1 ]
    check "a wrong pc of $walker is named" grep -qE "^mismatch: same, depth 18, fp, $walker: frame 17: 0x" "$work/errors"
done

# The whole suite, as bench/run calls it; its status says which targets are met, or 2: a peer is missing.
QUT_BENCH_BUILD=$(cd "$(dirname "$bench_walk")/../.." && pwd)
export QUT_BENCH_BUILD
status=0
"$walks" --no-build --rounds 1 --depths 60 --only same,top5,all,diverse,fresh-process,signal --json "$work/json" \
    --picture "$work/picture.svg" >"$work/output" 2>"$work/errors" || status=$?
check "bench/walk/run: status $status: $(cat "$work/errors")" [ "$status" -le 2 ]
for line in 'Depth 60, code with frame pointers: ratio' 'Depth 60, code without: ratio' 'QUT, all tiers +[0-9.]+ ±[0-9]+%' \
    '(PASS|MISS)  walk: same stack, depth 60: [0-9.]+ x the chase \(target <= 0.58; fp [0-9.]+, nofp [0-9.]+\)' \
    '(PASS|MISS)  walk: QUT, linked cache, diverse, depth 60: [0-9.]+ ns a frame \(target <= 20; fp [0-9.]+, nofp [0-9.]+\)' \
    '(PASS|MISS)  walk: QUT, table only, same stack, depth 60: [0-9.]+ ns a frame' \
    '(PASS|MISS)  walk: diverse, depth 60: [0-9.]+ x faster than libgcc'; do
    check "bench/walk/run: $line" grep -qE "$line" "$work/output"
done
check 'picture' grep -q 'QUT, all tiers' "$work/picture.svg"
check 'picture: well-formed' python3 -c 'import sys, xml.dom.minidom as dom; dom.parse(sys.argv[1])' "$work/picture.svg"
status=0
"$walks" --no-build --rounds 1 --depths 18 --only same --walkers qut --spoil qut >"$work/output" 2>&1 || status=$?
check "bench/walk/run, spoiled: status $status" [ "$status" -eq 1 ]
check 'bench/walk/run, spoiled: says so' grep -q '^failed: walks differ: mismatch: same, depth 18, fp, qut' "$work/output"

# Out of time after the first process: that one's figures, and no claim to be whole.
status=0
"$walks" --no-build --rounds 5 --minutes 0.0000001 --depths 18 --only same >"$work/output" 2>"$work/errors" || status=$?
check "out of time at once: status $status: $(cat "$work/errors")" [ "$status" -eq 2 ]
check 'out of time at once: says so' grep -q '^walks: nothing was measured: out of time' "$work/errors"
status=0
"$walks" --no-build --rounds 5000 --minutes 0.002 --depths 18 --only same,diverse --walkers qut >"$work/output" 2>"$work/errors" ||
    status=$?
check "out of time: says so: $(cat "$work/errors")" grep -qE '^out of time after [0-9]+ s, in pass 1 of 5: fewer rounds' "$work/output"
check 'out of time: prints what there is' grep -qE '^QUT, all tiers +[0-9.]+ ±' "$work/output"
check "out of time: status $status" [ "$status" -eq 2 ]

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

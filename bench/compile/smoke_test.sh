#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the benchmarks' programs on themselves, one round: every line that bench/run reads must be there. What the
# figures are is not asked.
set -euo pipefail

bench_size=$1 bench_compile=$2 qutc=$3
# shellcheck source=bench/smoke.sh
. "$(dirname "$0")/../smoke.sh"

run 0 1 "$bench_size" "$bench_size"
expect '^bench_size +[1-9][0-9]* +[1-9][0-9]* +[1-9][0-9]* .*\|'
expect '^median of 1 .*\|'
expect '^(PASS|MISS)  size: median of 1 files [0-9.]+ of E'
expect '^(PASS|MISS)  size: largest '
expect '^(PASS|MISS)  size: --small median '

run 0 1 "$bench_size" --json "$bench_size"
expect '"qut_bytes": [1-9][0-9]*.*"medians": \{"qut": [0-9.]+'

run 0 1 "$bench_compile" --rounds 1 "$bench_compile"
for who in 'decode, unchecked' 'decode, bounds-checked' 'QUT: open and compile' 'libdw: .*' 'libdwarf: .*' 'libdwarf, 17 registers'; do
    expect "^$who +[0-9.]+ \\( *[0-9.]+ - +[0-9.]+\\) +[1-9][0-9]* +[0-9.]+ +[0-9.]+ \\("
done
expect '^(PASS|MISS)  compile: bench_compile in '
expect '^(PASS|MISS)  compile: bench_compile [0-9.]+ x faster a row than libdw '
expect '^(PASS|MISS)  compile: bench_compile [0-9.]+ x faster a row than libdwarf '

run 0 1 "$bench_compile" --rounds 1 --images "$bench_compile"
expect '^bench_compile +[0-9.]+ \(.*[0-9.]+$'

run 0 1 "$bench_compile" --qutc "$qutc" --memory "$bench_compile"
expect '^(PASS|MISS)  memory: bench_compile [0-9]+ KiB \(target <= '

run 0 1 "$bench_compile" --qutc "$qutc" --rounds 1 --tree "$(dirname "$bench_compile")"
expect ' with -j 2, 1 rounds: [1-9][0-9]* tables, [1-9][0-9]* rows'
expect '^  wall [0-9.]+ s '

run 0 1 "$bench_compile" --once "$bench_compile"

here=$(dirname "$0")
run 0 2 "$here/usual" --built "$(dirname "$qutc")/../.." --tree "$(dirname "$bench_compile")"
expect '^\| libc \(.*\) \| [0-9,]+ \| [0-9,]+ \| 0\.[0-9]{3} \|$'
expect '^(PASS|MISS)  size: median of [0-9]+ usual files: 0\.[0-9]{3} of E \(target <= 0\.32\)'
expect '^(PASS|MISS)  size: median of all [1-9][0-9]* files of this machine: [0-9.]+ of E \(target <= 0\.50\)'
run 2 2 "$here/usual" --built /nowhere
expect '^usual: /nowhere/qutc/cli/qutc: is not there'

finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# That every part of bench/store/run measures something, and says so. What the figures are is not asked.
set -euo pipefail

here=$(dirname "$0") build=$1
# shellcheck source=bench/smoke.sh
. "$here/../smoke.sh"

run 0 1 "$here/run" --short --built "$build"
expect '^\| append of another known node, of 4096 in random order \| [0-9.]+ \('
expect '^\| \*\*store: intern \+ append\*\* \| [0-9.]+ \('
expect '^\| tree with a lock, malloc for each node \| [0-9.]+ \('
expect '^PASS  small: 0 samples were not stored'
expect '^PASS  large: 0 samples were not stored'
expect '^(PASS|MISS)  two writers / one: [0-9.]+ '
expect '^PASS  python3: balanced, nothing lost'
expect '^(PASS|MISS)  python3: [0-9.]+ bytes a sample'
expect '^(PASS|MISS)  perfetto: [0-9.]+ million records'
run 0 0 "$here/run" --help
expect '^usage: bench/store/run'
run 1 255 "$here/run" --only nothing
expect 'takes append, sample, writers, programs or export'

finish

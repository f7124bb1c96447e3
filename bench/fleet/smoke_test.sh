#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# That bench/fleet/bytes measures each program, and says so. What the figures are is not asked.
set -euo pipefail

here=$(dirname "$0") build=$1
# shellcheck source=bench/smoke.sh
. "$here/../smoke.sh"

if ! command -v zstd >/dev/null; then
    echo 'SKIP: zstd is not installed'
    exit 77
fi
run 0 1 "$here/bytes" --seconds 1 --built "$build"
expect '^(PASS|MISS)  fleet: zstd -19 -T2, 100 samples a second: [0-9.]+ bytes a sample in a window of [0-9]+ s, [0-9]+ samples \(target <= 1\.2\)'
expect '^(PASS|MISS)  fleet: a service in Python, 100 samples a second: [0-9.]+ bytes .* \(target <= 8\)'
expect '^(PASS|MISS)  fleet: a service in Python, 20 samples a second: [0-9.]+ bytes .* \(target <= 14\)'
run 0 0 "$here/bytes" --help
expect '^usage: bench/fleet/bytes'
run 2 2 "$here/bytes" --built /nowhere
expect '^bytes: /nowhere/tracer/qut: is not there'

finish

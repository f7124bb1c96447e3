#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# That every part of bench/fleet measures something, and says so. What the figures are is not asked.
set -euo pipefail

here=$(dirname "$0") build=$1
# shellcheck source=bench/smoke.sh
. "$here/../smoke.sh"

run 0 1 "$here/questions" --short --only sqlite --built "$build"
for what in self total diff; do
    expect "^(PASS|MISS)  sqlite, usual: $what of 10000 samples: [0-9.]+ s .* at most 3; processor time [0-9.]+ s"
    expect "^(PASS|MISS)  sqlite, diverse: $what of 10000 samples: "
done
if node -e "$(printf "import('%s').then((found) => found.consumerFile('@duckdb/node-api', 'lib/index.js'))" \
    "$(realpath "$here/../../tests/support/consumers/consumers.mjs")")" >/dev/null 2>&1; then
    run 0 1 "$here/questions" --short --only duckdb --only parquet --built "$build"
    expect '^usual: 4 hosts, 10000 samples, [1-9][0-9]* rows of stacks, [1-9][0-9]* of frames'
    expect '^(PASS|MISS)  duckdb, usual: self: [0-9.]+ s .* at most 0.5; processor time'
    expect '^(PASS|MISS)  duckdb, diverse: diff: [0-9.]+ s .* at most 2.5; processor time'
    expect '^PASS  parquet, usual: [1-9][0-9]* bytes of 10000 samples, 0\.[0-9]+ of DuckDB'
    expect '^(PASS|MISS)  parquet, diverse: [1-9][0-9]* rows, [0-9.]+ million a second'
fi
run 0 0 "$here/questions" --help
expect '^usage: bench/fleet/questions'
run 2 2 "$here/questions" --only nothing
expect '^questions: --only takes duckdb, sqlite, parquet'

run 0 2 "$here/tables" --short --built "$build"
if ! grep -q '^missing' "$output"; then
    expect '^(PASS|MISS)  layout: 20 ELF files .* tables .* in [0-9.]+ s .* at most 5; processor time'
    expect '^(PASS|MISS)  layout, --no-fill: 20 ELF files '
    expect "^(PASS|MISS)  fetch: libcrypto.so.3's table, taken and checked, in [0-9.]+ ms"
    expect '^qutc fetch, the whole command: [0-9.]+ ms'
    expect '^(PASS|MISS)  refused: another file of the same build-id: .*: other bytes$'
fi
run 0 0 "$here/tables" --help
expect '^usage: bench/fleet/tables'
run 2 2 "$here/tables" --only nothing
expect '^tables: --only takes layout, fetch'

finish

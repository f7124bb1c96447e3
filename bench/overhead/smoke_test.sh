#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# That points and run say what they should. What the figures are is not asked.
set -euo pipefail

here=$(dirname "$0") points=$1
# shellcheck source=bench/smoke.sh
. "$here/../smoke.sh"

run 0 0 "$points" 1
for what in throttled scope taken-30 taken-100; do
    expect "^$what( -?[0-9]+\.[0-9]){3}\$"
done
run 2 2 "$points" 0
expect '^points: 1 to 101 rounds'
run 0 0 "$here/run" --help
expect '^usage: bench/overhead/run'
run 2 2 "$here/run" --only nothing --built /nowhere
expect '^overhead: no such program'

finish

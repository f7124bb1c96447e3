#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The instructions of each second bracket of PROGRAM, which has four times as much to do, against those of the one before.
# Usage: linear_test.sh PROGRAM PLUGIN EMULATOR
set -euo pipefail

program=$1 plugin=$2 emulator=$3
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT

if ! command -v "$emulator" >/dev/null || ! [[ $("$emulator" -version) =~ version\ (7\.2|8\.0)\. ]]; then
    "$program"
    printf 'SKIP: no %s of version 7.2, which counts\n' "$emulator"
    exit 0
fi
CK_FORK=no "$emulator" -plugin "$plugin,out=$counts" "$program"
awk '
    NR % 2 { small = $2; next }
    { printf "%d instructions, for four times as much %d: %.2f times\n", small, $2, $2 / small }
    $2 > 6 * small { bad = 1 }
    END { exit bad || NR != 10 }' "$counts"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checksums count in every build but a fuzzer's: the switch is read in one header and set in one place, every reader of a
# sum asks that header, and nobody but the fuzzers' own script configures such a build.
set -euo pipefail

cd "$QUT_SOURCE_ROOT"
failed=0
expect_only() # WHAT PATTERN FILE...
{
    local what=$1 pattern=$2 found
    shift 2
    found=$(grep -rlE --exclude-dir=build --exclude-dir='.*' -- "$pattern" formats libqut base qutc cli agent tracer tests \
        tools bench check demo meson.build meson_options.txt | sed '/\/fuzz_switch_test\.sh$/d' | LC_ALL=C sort | tr '\n' ' ')
    [ "$found" = "$* " ] || {
        failed=1
        printf 'FAIL: %s: in %s, expected in %s\n' "$what" "$found" "$*"
    }
}

expect_only 'the switch' 'FUZZING_BUILD_MODE' formats/qut_checksum_inline.h meson.build
expect_only 'a build with it' 'Dfuzzers=true' tests/proof/fuzz/run

# A sum that a reader compares by itself counts for fuzzers, too: what is behind it would not be tried.
readers=$(grep -nE '([!=]= *(qut_table_checksum|directory_checksum|lzma_crc32)|(qut_table_checksum|lzma_crc32)\([^;]*\) *[!=]=)' \
    -r formats libqut base qutc tracer agent --include='*.c' --include='*.h' || true)
[ -z "$readers" ] || {
    failed=1
    printf 'FAIL: compared without formats/qut_checksum_inline.h:\n%s\n' "$readers"
}
count=$(grep -rlE 'qut_checksum_agrees' libqut base qutc tracer formats --include='*.c' | wc -l)
[ "$count" -ge 5 ] || {
    failed=1
    printf 'FAIL: only %d readers ask: the search finds nothing\n' "$count"
}
exit "$failed"

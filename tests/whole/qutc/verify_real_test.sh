#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A few real libraries of each architecture, every row against every reader, both kinds of table. Among them one with
# frame programs and an exception index for the same text. `tools/verify-sets` does whole distributions.
set -u
qutc=$1
passed=0 failed=0 skipped=0
for file in \
    /lib/x86_64-linux-gnu/libc.so.6 \
    /lib/x86_64-linux-gnu/libm.so.6 \
    /usr/aarch64-linux-gnu/lib/libc.so.6 \
    /usr/arm-linux-gnueabihf/lib/libc.so.6 \
    /usr/arm-linux-gnueabihf/lib/libubsan.so.1 \
    /usr/i686-linux-gnu/lib/libc.so.6 \
    /usr/riscv64-linux-gnu/lib/libc.so.6; do
    if [ ! -e "$file" ]; then
        echo "SKIP: no $file"
        skipped=$((skipped + 1))
        continue
    fi
    for kind in '' --small; do
        if output=$("$qutc" verify --quiet $kind "$file" 2>&1) && [[ $output =~ rows=[1-9][0-9]*\ .*wrong=0$ ]]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            printf 'FAIL %s %s: %s\n' "$file" "$kind" "$output"
        fi
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/check-mentions must find names of files that are not there, in pages and comments, and must not take others for one.
set -euo pipefail

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
passed=0
failed=0

mkdir -p "$tree/qutc/cfi" "$tree/docs" "$tree/tests/unit/qutc"
printf '// See qutc/cfi/plt.c.\n' >"$tree/qutc/cfi/plt.h"
printf 'int x; // made for plt.h\n' >"$tree/qutc/cfi/plt.c"
printf "executable('plt_test', 'plt.c')\n" >"$tree/tests/unit/qutc/meson.build"
printf 'Begin here.\n' >"$tree/README.md"

expect() # FILE TEXT MENTION: what is said to be missing; "": nothing
{
    local said status=0
    printf '%s\n' "$2" >"$tree/$1"
    said=$("$QUT_SOURCE_ROOT/tools/check-mentions" "$tree" 2>&1) || status=$?
    rm "$tree/$1"
    if [ "$status" -eq "$([ -n "$3" ] && echo 1 || echo 0)" ] && [[ -z $3 || $said == "$1:"*" names $3, "* ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: "%s": status %d, wanted "%s"; said:\n%s\n' "$1" "$2" "$status" "$3" "$said"
    fi
}

# Of this tree, and there.
expect docs/a.md 'The file `qutc/cfi/plt.c`, `cfi/plt.h`, plt.c, [home](../README.md), qutc/cfi/ and qutc/cfi.' ''
expect docs/a.md 'qutc/cfi/plt.{c,h}, qutc/*/plt.c, cfi/NAME.c, tests/unit/<part>' ''
expect docs/a.md 'BUILD/tests/unit/qutc/plt_test' ''
# Of others.
expect docs/a.md '/usr/include/elf.h, <sys/gone.h>, linux/perf_event.h, https://example.org/qutc/gone.c, libc.so.6' ''
expect qutc/a.c 'const char *path = "qutc/gone.c // gone.c"; /* none */' ''
# Of this tree, and not there.
expect docs/a.md 'See qutc/cfi/gone.c.' qutc/cfi/gone.c
expect docs/a.md 'See `gone.h`: nothing.' gone.h
expect docs/a.md 'See qutc/gone for more' qutc/gone
expect docs/a.md '[there](gone.md)' gone.md
expect docs/a.md 'all of qutc/cfi/gone_*.c' 'qutc/cfi/gone_*.c'
expect docs/a.md 'qutc/cfi/plt.{c,S}' 'qutc/cfi/plt.{c,S}'
expect docs/a.md 'BUILD/tests/unit/qutc/gone_test' tests/unit/qutc/gone_test
expect qutc/a.c '/* as in cfi/gone.c */' cfi/gone.c
expect qutc/a.h 'int x; // gone.c does it' gone.c
expect qutc/a.h '// ---- plt.c' qutc/plt.c
expect qutc/a.h '//   plt.c   what is there' qutc/plt.c
expect qutc/a.py '# as gone.py does' gone.py

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libqut.so exports what the headers declare, all of it in its version and nothing else, and needs nothing but libc.
# Usage: exports_test.sh LIBQUT.SO
set -euo pipefail

library=$1
passed=0
failed=0
if ! command -v readelf >/dev/null 2>&1; then
    echo 'SKIP: no readelf'
    exit 77
fi

same() # NAME WANTED IS
{
    if [ -n "$2" ] && [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s:\n' "$1"
        diff <(printf '%s\n' "$2") <(printf '%s\n' "$3") || true
    fi
}

# "FUNC GLOBAL NAME@VERSION" of each dynamic symbol that is defined (or, with UND, is not).
symbols() # UND|DEF
{
    readelf --dyn-syms --wide "$library" |
        awk -v want="$1" '$1 ~ /^[0-9]+:$/ && $5 != "LOCAL" && $8 != "" && (($7 == "UND") == (want == "UND")) {
            print $4, $5, $8 }'
}

# But those of libqut-probes.a, which is no part of it.
declared=$(find "$QUT_SOURCE_ROOT/libqut/include/qut" -name "*.h" ! -name own_probes.h -exec "$QUT_SOURCE_ROOT/tools/check-contracts" --list {} + | LC_ALL=C sort)
listed=$(sed -n 's/^ *\(qut_[a-z0-9_]*\);$/\1/p' "$QUT_SOURCE_ROOT/libqut/libqut.map" | LC_ALL=C sort)
exported=$(symbols DEF | sed -n 's/^FUNC GLOBAL \(.*\)@@QUT_0\.1$/\1/p' | LC_ALL=C sort)
same 'libqut.map lists the functions of the headers' "$declared" "$listed"
same 'the library exports the functions of the headers' "$declared" "$exported"
same 'and nothing else' 'OBJECT GLOBAL QUT_0.1' "$(symbols DEF | grep -v '^FUNC GLOBAL .*@@QUT_0\.1$' | sed 's/@@.*//')"
same 'its soname' 'libqut.so.0' "$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')"

# What it takes from elsewhere: from libc and the loader, each symbol with a version of theirs.
other=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v -e '^libc\.so\.6$' -e '^ld-linux' || true)
same 'it needs nothing but libc' 'none' "${other:-none}"
other=$(symbols UND | grep -v -e '@GLIBC_' -e ' WEAK ' || true)
same 'it takes nothing but what is of libc' 'none' "${other:-none}"
other=$(readelf -d "$library" | grep -e TEXTREL -e RPATH -e RUNPATH || true)
same 'no relocated text, no search path' 'none' "${other:-none}"
other=$(readelf -lW "$library" | grep -e 'GNU_STACK.*RWE' || true)
same 'no executable stack' 'none' "${other:-none}"

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each public header compiles alone, as C11, C++11 and C++20, without a warning.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0
skipped=0
headers=("$QUT_SOURCE_ROOT"/libqut/include/qut/*.h "$QUT_SOURCE_ROOT"/qutc/include/qutc/*.h)

compile() # COMPILER STANDARD SUFFIX
{
    if ! command -v "$1" >/dev/null 2>&1 || ! printf '#include <stddef.h>\nint main() { return 0; }\n' |
        "$1" -std="$2" -x "$([ "$3" = c ] && echo c || echo c++)" -fsyntax-only - 2>/dev/null; then
        echo "SKIP: no $1 that compiles $2"
        skipped=$((skipped + 1))
        return
    fi
    for header in "${headers[@]}"; do
        local name=${header#*/include/}
        # Twice: it must guard itself.
        printf '#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' "$name" "$name" >"$folder/alone.$3"
        if "$1" -std="$2" -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
            -I"$QUT_SOURCE_ROOT/libqut/include" -I"$QUT_SOURCE_ROOT/qutc/include" "$folder/alone.$3"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            printf 'FAIL %s as %s by %s\n' "$name" "$2" "$1"
        fi
    done
}

for compiler in gcc clang; do
    compile "$compiler" c11 c
done
for compiler in g++ clang++; do
    compile "$compiler" c++11 cc
    compile "$compiler" c++20 cc
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]

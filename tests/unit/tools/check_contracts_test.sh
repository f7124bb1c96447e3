#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/check-contracts must find each function that promises nothing, and pass the headers as they are.
set -euo pipefail

checker=$QUT_SOURCE_ROOT/tools/check-contracts
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0

expect() # NAME STATUS PATTERN ARGUMENT...
{
    local name=$1 wanted=$2 pattern=$3 status=0 said
    shift 3
    said=$("$checker" "$@" 2>&1) || status=$?
    if [ "$status" -eq "$wanted" ] && [[ $said =~ $pattern ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: status %d, wanted %d and "%s"; said:\n%s\n' "$name" "$status" "$wanted" "$pattern" "$said"
    fi
}

header() # TEXT
{
    printf '// SPDX-License-Identifier: Apache-2.0\n// A header.\n#ifndef H\n#define H\n%s\n#endif\n' "$1" >"$folder/h.h"
}

public=("$QUT_SOURCE_ROOT"/libqut/include/qut/*.h "$QUT_SOURCE_ROOT"/qutc/include/qutc/*.h)
expect 'the headers as they are' 0 '^$' "${public[@]}"
expect 'their functions' 0 'qut_backtrace_context' --list "${public[@]}"

# Each promise of a real header taken away in turn must be missed.
local_h=$QUT_SOURCE_ROOT/libqut/include/qut/local.h
count=$(grep -c '\[\(not \)\?signal-safe' "$local_h")
for ((i = 1; i <= count; i++)); do
    awk -v which="$i" '/\[(not )?signal-safe/ && ++seen == which { sub(/\[(not )?signal-safe/, "(perhaps safe") } { print }' \
        "$local_h" >"$folder/local$i.h"
done
missed=$({ "$checker" "$folder"/local*.h || true; } | sed -n 's/.*\/\(local[0-9]*\.h\):[0-9]*: qut_[a-z_]* does not say.*/\1/p' | sort -u | wc -l)
if [ "$count" -gt 5 ] && [ "$missed" -eq "$count" ]; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    printf 'FAIL promises of local.h taken away: %d of %d missed\n' "$missed" "$count"
fi

header $'// Does. [signal-safe]\nQUT_API int f(void);'
expect 'a good header' 0 '^$' "$folder/h.h"
header $'// Does. [signal-safe]\nQUT_API int f(void);\nQUT_API int g(void);'
expect 'a group' 0 '^$' "$folder/h.h"
header $'// Does. [signal-safe]\nQUT_API int f(void);\n\nQUT_API int g(void);'
expect 'after a blank line' 1 'h.h:8: g does' "$folder/h.h"
header $'// Does. [signal-safe]\nstruct s {\n    int a;\n};\nQUT_API int g(struct s *s);'
expect 'a structure in between' 1 'h.h:9: g does' "$folder/h.h"
header $'// Does.\nQUT_API int f(void); // [signal-safe]'
expect 'a comment behind' 1 'h.h:6: f does' "$folder/h.h"
header $'// Returns [0, 1].\nQUT_API int f(int (*g)(void),\n              int h);'
expect 'other brackets, several lines' 1 'h.h:6: ' "$folder/h.h"
header $'// Does. [signal-safe]\nint QUT_API f(void);'
expect 'QUT_API elsewhere' 1 'stands 1 times, before 0' "$folder/h.h"
expect 'no header' 2 'Usage'
expect 'an absent header' 1 'No such file' "$folder/absent.h"

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]

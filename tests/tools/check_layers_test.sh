#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/check-layers must find each thing it is there for, and nothing in a clean tree.
set -euo pipefail

checker=$QUT_SOURCE_ROOT/tools/check-layers
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
passed=0
failed=0

fresh_tree()
{
    rm -rf "${tree:?}"/*
    mkdir -p "$tree"/formats "$tree"/libqut/{arch/x86,runtime} "$tree"/qutc/{base,cfi,check,cli} "$tree"/tests
    write formats/rule.h ''
    write libqut/arch/x86/registers.c '#if defined(__x86_64__)'
    write libqut/runtime/table.c '#include "libqut/arch/arch.h"'
    write qutc/qutc.h '#include "formats/rule.h"'
    write qutc/check/verify.c '#include "qutc/qutc.h"'
    write tests/any_test.c '#include "qutc/check/verify.h"'
}

write() # FILE TEXT
{
    printf '// SPDX-License-Identifier: Apache-2.0\n%s\n' "$2" >"$tree/$1"
}

expect() # NAME STATUS PATTERN
{
    local status=0 said
    said=$("$checker" "$tree" 2>&1) || status=$?
    if [ "$status" -eq "$2" ] && [[ $said =~ $3 ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: status %d, wanted %d and "%s"; said:\n%s\n' "$1" "$status" "$2" "$3" "$said"
    fi
    fresh_tree
}

fresh_tree
expect 'a clean tree passes' 0 '^$'
write libqut/runtime/walk.c '#include "qutc/base/error.h"'
expect 'the runtime includes the compiler' 1 'libqut/runtime/walk.c:2: .*above'
write formats/check.c '#include "libqut/arch/arch.h"'
expect 'a format includes an architecture' 1 'formats/check.c:2: .*above'
write qutc/cfi/rows.c '  #  include "qutc/qutc.h"'
expect 'a part includes the whole' 1 'qutc/cfi/rows.c:2: .*above'
write qutc/compile.c '#include "qutc/check/judge.h"'
expect 'the compiler includes its judges' 1 'qutc/compile.c:2: .*above'
write qutc/cfi/rows.c '#include "rows.h"'
expect 'an include without its path' 1 'qutc/cfi/rows.c:2: .*path from the root'
mkdir "$tree/qutc/new"
write qutc/new/part.c ''
expect 'a part without a place in the order' 1 'qutc/new/part.c:1: '
write qutc/cfi/rows.c '#elif defined(__aarch64__)'
expect 'an architecture outside its folder' 1 'qutc/cfi/rows.c:2: .*architectures'
printf 'int x;\n' >"$tree/qutc/base/error.c"
expect 'no licence' 1 'qutc/base/error.c:1: no SPDX'
write qutc/base/error.c "$(yes '' | head -n 448 | sed 's/$/;/')"
expect 'as long as allowed' 0 '^$'
write qutc/base/error.c "$(yes '' | head -n 450 | sed 's/$/;/')"
expect 'too long' 1 'qutc/base/error.c:451: longer'

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/check-layers must find each thing it is there for in the tree as it is, and nothing else.
set -euo pipefail

root=$QUT_SOURCE_ROOT
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
passed=0
failed=0

fresh_tree()
{
    rm -rf "${tree:?}"/*
    mkdir "$tree/tools"
    cp "$root/tools/check-layers" "$tree/tools"
    (cd "$root" && find formats bytecode base libqut qutc cli agent tracer tests bench -name '*.[ch]' -print0 |
        xargs -0 cp --parents -t "$tree")
}

expect() # NAME STATUS PATTERN
{
    local status=0 said
    said=$("$tree/tools/check-layers" 2>&1) || status=$?
    if [ "$status" -eq "$2" ] && [[ $said =~ $3 ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: status %d, wanted %d and "%s"; said:\n%s\n' "$1" "$status" "$2" "$3" "$said"
    fi
}

# What FILE may not include. All at once: the checker names each.
forbidden=()
forbid() # FILE INCLUDED
{
    printf '#include "%s"\n' "$2" >>"$tree/$1"
    forbidden+=("$1:[0-9]*: includes \"$2\"")
}

expect_all_named()
{
    local said pattern
    said=$("$tree/tools/check-layers" 2>&1) || true
    for pattern in "${forbidden[@]}"; do
        if [[ $said =~ $pattern ]]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            printf 'FAIL: not named: %s\n' "$pattern"
        fi
    done
}

fresh_tree
expect 'the tree passes' 0 '^$'
forbid libqut/runtime/walk.c base/error.h
forbid libqut/runtime/walk.c libqut/modules/registry.h
forbid libqut/modules/modules.c libqut/walk/walk_local.h
forbid libqut/segment/chunk.c libqut/trace/feed.h
forbid libqut/sample/tick.c libqut/target/opened_target.h
forbid libqut/target/ask.c libqut/sample/inside.h
forbid libqut/trace/feed.c libqut/segment/inside.h
forbid formats/qut_table_check.c libqut/arch/arch.h
forbid agent/start.c qutc/qutc.h
forbid agent/start.c base/error.h
forbid agent/hooks/hook_io.c tracer/export/export.h
forbid agent/start.c tracer/record/record.h
forbid base/error.c qutc/qutc.h
forbid qutc/cfi/row_list.c qutc/qutc.h
forbid qutc/compile.c qutc/check/judge.h
forbid tracer/trace/read.c tracer/collect/collect.h
forbid tracer/export/chrome.c tracer/report/report.h
forbid tracer/record/record.c tracer/cli/record_options.h
forbid qutc/cfi/row_list.c row_list.h
forbid tests/unit/qutc/cfi/ops_test.c tests/proof/fuzz/fuzz.h
expect_all_named
fresh_tree

mkdir "$tree/qutc/new"
printf '// SPDX-License-Identifier: Apache-2.0\n' >"$tree/qutc/new/part.c"
expect 'a folder without a place' 1 'qutc/new/part.c:1: .*graph'
rm -r "$tree/qutc/new"
printf '// SPDX-License-Identifier: Apache-2.0\n' >"$tree/tracer/left.c"
expect 'sources at the root of tracer' 1 'tracer:1: holds sources'
rm "$tree/tracer/left.c"
mv "$tree/tracer/analysis" "$tree/analysis"
expect 'a folder is lost' 1 'tracer/analysis:1: .*has no sources'
mv "$tree/analysis" "$tree/tracer/analysis"
sed -i 's,^cli: .*,& formats,' "$tree/tools/check-layers"
expect 'an arrow that nothing needs' 1 'cli may use formats, and no longer does'
cp "$root/tools/check-layers" "$tree/tools"
sed -i 's,^formats:,formats: cli,' "$tree/tools/check-layers"
expect 'an arrow upwards' 1 'formats may use cli, which does not stand above'
cp "$root/tools/check-layers" "$tree/tools"
printf '#elif defined(__aarch64__)\n' >>"$tree/qutc/cfi/row_list.c"
expect 'an architecture outside its folder' 1 'qutc/cfi/row_list.c:[0-9]*: .*architectures'
printf '// case QUT_ARCH_ARM:\n' >"$tree/qutc/cfi/row_list.c"
expect 'a case for an architecture' 1 'qutc/cfi/row_list.c:1: names an architecture'
fresh_tree
printf 'int x;\n' >"$tree/base/error.c"
expect 'no licence' 1 'base/error.c:1: no SPDX'
{
    printf '// SPDX-License-Identifier: Apache-2.0\n'
    printf ';%.0s\n' $(seq 449)
} >"$tree/cli/progress.c"
printf '// SPDX-License-Identifier: Apache-2.0\n#include "base/error.h"\n' >"$tree/base/error.c"
expect 'as long as allowed' 0 '^$'
printf ';\n' >>"$tree/cli/progress.c"
expect 'too long' 1 'cli/progress.c:451: longer'
fresh_tree
for number in $(seq 41); do
    printf '// SPDX-License-Identifier: Apache-2.0\n' >"$tree/cli/part_$number.c"
done
expect 'a hall' 1 'cli:1: holds [0-9]* files; 40 are the most'

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

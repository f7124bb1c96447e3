#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Completion, asked as shells ask: bash itself here; of zsh and fish the scripts are read by them, where they are
# installed. Usage: completion_test.sh QUT QUTC QUT.bash QUTC.bash _QUT _QUTC QUT.fish QUTC.fish
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
qutc=$(readlink -f "$2")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
scripts=()
for script in "${@:3}"; do
    scripts+=("$(readlink -f "$script")")
done
cd "$work"
mkdir folder
: >one.qtrace
: >two.qtrace
: >'with blank.qtrace'
. "${scripts[0]}"
. "${scripts[1]}"

completes() # NAME WANTED PROGRAM WORD...: the last word is completed; WANTED is what comes out, sorted, by blanks
{
    COMP_WORDS=("${@:3}")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    "_$3" "$3" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" || true
    local said
    said=$(printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' ')
    [[ $said =~ $2 ]] && result "$1" 0 || result "$1" 1 "wanted $2, got $said"
}

completes 'commands' '^record report $' qut re
completes 'all commands' '--help .*collect diff export info monitor probe query record report stack' qut ''
completes 'an option' '^--frequency $' qut record --freq
completes 'options' '^--lines $' qut export one.qtrace --li
completes 'not those of others' '^ $' qut report --frequ
completes 'formats' '^pprof $' qut export one.qtrace -f ppr
completes 'formats, after =' '^speedscope $' qut export one.qtrace --format = speed
completes 'all formats' 'chrome collapsed .*perfetto' qut export -f ''
completes 'formats, just after =' 'chrome collapsed .*perfetto' qut export --format =
completes 'a list' '^alloc,lock $' qut record --sync alloc,loc
completes 'processes' "(^| )$$ " qut record -p "$$"
completes 'processes of a long name' "(^| )$$ " qut stack --pid "$$"
completes 'files' '^one.qtrace $' qut info o
completes 'a blank in a name' '^with blank.qtrace $' qut info wi
completes 'a file of an option' '^two.qtrace $' qut record -o tw
completes 'folders' '^folder $' qut record --cache ''
completes 'a number' '^ $' qut record -F ''
completes 'what is to be recorded' '(^| )bash ' qut record -F 100 bas
completes 'behind --' '(^| )bash ' qut record -- bas
completes 'its arguments' '^one.qtrace $' qut record -F 100 cat o
completes 'its options are its own' '^ $' qut record cat --freq
completes 'of qutc' '^compile $' qutc com
completes 'readers' '^libdw libdwarf $' qutc verify --against libd

# Every option of --help, and nothing else.
for program in "$qut" "$qutc"; do
    name=${program##*/}
    for command in $("$program" --help | sed -n 's/^  \([a-z-]*\)  *[a-z].*/\1/p'); do
        wanted=$("$program" "$command" --help | sed -n 's/^  \(-.,\|   \) \(--[a-z-]*\).*/\2/p' | sort | tr '\n' ' ')
        completes "$name $command" "^${wanted}\$" "$name" "$command" --
    done
done

for shell in zsh fish; do
    [ $shell = zsh ] && of=("${scripts[@]:2:2}") || of=("${scripts[@]:4:2}")
    for script in "${of[@]}"; do
        check "${script##*/}: options" grep -q -e 'debug-root' "$script"
        if command -v $shell >/dev/null; then
            check "${script##*/}: $shell" $shell -n "$script"
        else
            skip "${script##*/}" "no $shell"
        fi
    done
done
finish

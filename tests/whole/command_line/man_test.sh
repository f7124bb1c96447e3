#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each command has a manual page, which a formatter takes without a warning and which has every option of --help.
# Usage: man_test.sh QUT QUTC PAGE...
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
qutc=$(readlink -f "$2")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
declare -A pages
for page in "${@:3}"; do
    pages[$(basename "$page")]=$page
done

render() # PAGE: text to $work/text, warnings to $work/warnings
{
    if command -v groff >/dev/null; then
        groff -man -T ascii -ww -P -c -P -b -P -u -r LL=400n "$1" >"$work/text" 2>"$work/warnings" || true
    else
        echo 'SKIP: no groff'
        exit 77
    fi
}

page_of() # PROGRAM FILE COMMAND
{
    local name=${1##*/} option
    [ -n "${pages[$2]:-}" ] || {
        result "$2" 1 'no such page'
        return
    }
    render "${pages[$2]}"
    result "$2: warnings" "$([ -s "$work/warnings" ] && echo 1 || echo 0)" "$(<"$work/warnings")"
    check "$2: its name" grep -q "$name.* - " "$work/text"
    [ -n "$3" ] || return 0
    "$1" "$3" --help >"$work/help"
    mapfile -t options < <(sed -n 's/^  \(-.,\|   \) \(--[a-z-]*\).*/\2/p' "$work/help")
    result "$2: options" "$([ ${#options[@]} -gt 0 ] && echo 0 || echo 1)" "$(<"$work/help")"
    for option in "${options[@]}"; do
        check "$2: $option" grep -q -e "^ *\(-., \)\?$option" "$work/text"
    done
    for section in SYNOPSIS DESCRIPTION OPTIONS 'EXIT STATUS' EXAMPLE; do
        check "$2: $section" grep -qx "$section" "$work/text"
    done
}

for program in "$qut" "$qutc"; do
    page_of "$program" "${program##*/}.1" ''
    "$program" --help >"$work/out"
    mapfile -t commands < <(sed -n 's/^  \([a-z-]*\)  *[a-z].*/\1/p' "$work/out")
    result "${program##*/}: commands" "$([ ${#commands[@]} -gt 5 ] && echo 0 || echo 1)" "$(<"$work/out")"
    for command in "${commands[@]}"; do
        page_of "$program" "${program##*/}-$command.1" "$command"
    done
done
finish

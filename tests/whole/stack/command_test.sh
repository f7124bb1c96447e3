#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `qut` and `qut stack` from outside: usage, exit statuses, which stream says what. Usage: command_test.sh QUT
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
export QUT_CACHE=$work/cache
cd "$work"

expect 'help' 0 'stack .*Example: ' '^$' --help
expect 'version' 0 '^qut [0-9.]+$' '^$' --version
expect 'no command' 2 '^$' 'Usage: qut COMMAND'
expect 'unknown command' 2 '^$' '^qut: frobnicate: not a command' frobnicate
expect 'stack help' 0 'Usage: qut stack .*Example: .*Exit status: ' '^$' stack --help
expect 'unknown option' 2 '^$' '^qut: --frobnicate: not an option' stack --frobnicate
expect 'no target' 2 '^$' '^qut: stack: needs -p PID, --core FILE or --snapshot DIR' stack
expect 'two targets' 2 '^$' 'not several' stack -p 1 --core x
expect 'no number' 2 '^$' '^qut: x: not an argument for --pid' stack -p x
expect 'no process 0' 2 '^$' '^qut: 0: not an argument for --pid' stack -p 0
expect 'bad limit' 2 '^$' '^qut: 0: not an argument for --limit' stack -p 1 --limit 0
expect 'bad tid' 2 '^$' '^qut: -1: not an argument for --tid' stack -p 1 --tid -1
expect 'an operand too many' 2 '^$' '^qut: 12: one argument too many' stack -p 1 12
expect 'an operand too many for a core' 2 '^$' '^qut: b: one argument too many' stack --core c a b
expect 'no-stop of a core' 2 '^$' '^qut: --no-stop: ' stack --core x --no-stop
expect 'cache and none' 2 '^$' '^qut: --no-cache: ' stack --cache a --no-cache -p 1
expect 'option without argument' 2 '^$' '^qut: --limit: needs an argument' stack -p 1 --limit

expect 'no such process' 2 '^$' '^qut: .*no such process' stack -p 2147483646
expect 'no such core' 2 '^$' '^qut: ./missing: .*No such file' stack --core ./missing
expect 'no such snapshot' 2 '^$' '^qut: .*missing' stack --snapshot ./missing
expect 'a name with control characters' 2 '^$' '^qut: a[?]b: No such file' stack --core $'a\nb'
echo nothing >text
expect 'not a core' 2 '^$' '^qut: text: ' stack --core text
expect 'a program is not a core' 2 '^$' '^qut: .*core' stack --core "$qut"
mkdir empty
expect 'a directory without maps' 2 '^$' '^qut: empty.*maps.txt' stack --snapshot empty
expect 'a file is no snapshot' 2 '^$' '^qut: text' stack --snapshot text
# exec keeps the pid: qut is asked for itself.
status=0
sh -c 'exec "$1" stack -p $$' sh "$qut" >"$work/out" 2>"$work/err" || status=$?
check 'itself: status' test "$status" -eq 2
check 'itself: says so' grep -q 'is this process' "$work/err"
finish

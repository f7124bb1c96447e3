#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `qut report` from outside: usage, exit statuses, what it leaves. Usage: command_test.sh QUT RECORDER
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
recorder=$(readlink -f "$2")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
cd "$work"

expect 'help' 0 'Usage: qut report \[FILE\] .*Example: .*Exit status: ' '^$' report --help
expect 'no file' 2 '^$' '^qut: report: needs a FILE' report
expect 'two files' 2 '^$' '^qut: report: needs -o OUT' report a b
expect 'unknown option' 2 '^$' 'not an option' report --frobnicate
expect 'no such file' 2 '^$' '^qut: missing.qtrace: .*No such file' report missing.qtrace
echo nothing >text
expect 'no trace' 2 '^$' '^qut: text: ' report text
check 'no page of no trace' test ! -e text.html

segment=/dev/shm/qut-report-test.$$
trap 'rm -f "$segment"; clean_up' EXIT
if ! "$recorder" "$segment"; then
    echo 'SKIP: nothing can be recorded here'
    exit 77
fi
cp "$segment" app.qtrace
expect 'a report' 0 '^$' '^$' report app.qtrace
check 'it stands beside its trace' test -s app.html
check 'it says that nothing was lost' grep -q 'Nothing was lost' app.html
check 'it says how many samples it has' grep -q 'data-count="present">200<' app.html
check 'names stand in the blocks of data only' sh -c "! grep -q 'answer()' app.html"
check 'it refers to nothing outside' sh -c "! grep -qE '(src|href)=|https?://' app.html"
expect 'to standard output' 0 '<!DOCTYPE html>.*</html>' '^$' report app.qtrace -o -
expect 'elsewhere' 0 '^$' '^$' report -q app.qtrace -o other.html
check 'the same trace gives the same page' cmp app.html other.html
expect 'nowhere' 2 '^$' '^qut: /nonexistent/a.html: ' report app.qtrace -o /nonexistent/a.html
expect 'a full disk' 2 '^$' '^qut: /dev/full: .*No space' report app.qtrace -o /dev/full

# Its beginning only: what there is is shown, and that it is not all.
head -c $((3 << 20)) app.qtrace >cut.qtrace
expect 'a trace that is cut off' 1 '^$' '^qut: cut.qtrace: ' report cut.qtrace
check 'its page says so' grep -q 'has-loss' cut.html

finish

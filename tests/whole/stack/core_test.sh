#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stacks of a core file are those of the process it was. Usage: core_test.sh QUT SUBJECT
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
subject_program=$(readlink -f "$2")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
export QUT_CACHE=$work/cache
cd "$work"

# What the kernel would write, and where, is not ours to choose.
if [[ $(</proc/sys/kernel/core_pattern) == [\|/]* ]] || ! ulimit -c unlimited 2>/dev/null; then
    echo 'SKIP: core files do not land here (core_pattern, or the limit)'
    exit 77
fi

cp "$subject_program" subject
start_subject ./subject threads 2
until_asleep
run stack -p "$subject"
# The bash between has its own ideas of what to say about a death.
{ kill -ABRT "$subject" && wait "$subject"; } 2>/dev/null || true
grep '^  #' out >alive
core=$(find . -maxdepth 1 -name 'core*' | head -n 1)
if [ -z "$core" ]; then
    echo 'SKIP: no core file was written'
    exit 77
fi
expect 'core' 0 '"[^"]*" \(killed by SIGABRT\)' '^$' stack --core "$core"
grep '^  #' out >dead
check 'the same frames as alive' cmp -s alive dead
cp out first
expect 'with its program' 0 '' '^$' stack --core "$core" subject
check 'the same' cmp -s out first
expect 'core as JSON' 0 '"crashed": true' '^$' stack --json --core "$core"
check 'parses' python3 -m json.tool out
# Cut short: an answer or a refusal, but no crash.
head -c 20000 "$core" >short
run stack --core short
check 'a core that is cut short' test "$status" -le 2
finish

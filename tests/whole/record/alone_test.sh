#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `qut record` that ends before what it records, or lacks something: the recorded process sees that, and stops.
# Usage: alone_test.sh QUT SUBJECT
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
s=$(readlink -f "$2")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
# shellcheck source=tests/support/within.sh
. "$here/../../support/within.sh"
export QUT_CACHE=$work/cache
export XDG_RUNTIME_DIR=$work/run
mkdir -m 700 "$XDG_RUNTIME_DIR"
cd "$work"

has_ticks() # PID: whether it has a handler that is not its own (SIGINT), nor libc's (32 and 33)
{
    local caught
    caught=$(sed -n 's/^SigCgt:\t*//p' "/proc/$1/status")
    ((0x$caught & 0x7ffffffd))
}

has_no_ticks() { ! has_ticks "$1"; }
says_pid() { [ -s "$1" ]; }

start() # FILE OPTION...: a recording of one that burns until it is told to end; $recorder, $recorded
{
    local file=$1
    shift
    rm -f pid
    "$qut" record -q -o "$file" "$@" sh -c "echo \$\$ >pid; exec $s interrupted" >said 2>err &
    recorder=$!
    subjects+=("$recorder")
    within 60 says_pid pid
    recorded=$(cat pid)
    subjects+=("$recorded")
    within 60 grep -q ready said
}

# ---- the recording is over, the process is not
# The time may be up before we have a processor to look: then one that is longer.
seen=0
for seconds in 1 5 25; do
    start over --duration "$seconds"
    ! within "$seconds" has_ticks "$recorded" || seen=1
    ((!seen)) || break
    kill -INT "$recorded"
    wait "$recorder" || true
done
check 'ticks come' test "$seen" -eq 1
check 'until the time is up' within 60 has_no_ticks "$recorded"
check 'the recorder waits for it' kill -0 "$recorder"
kill -INT "$recorded"
status=0
wait "$recorder" || status=$?
check 'and ends as it does' test "$status" -eq 42
check 'with a file' "$qut" info over

start killed
check 'ticks come, too' within 60 has_ticks "$recorded"
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null || true
check 'until it sees that its recorder was killed' within 60 has_no_ticks "$recorded"
check 'it goes on' kill -0 "$recorded"
kill -INT "$recorded"

start stopped
within 60 has_ticks "$recorded"
kill -STOP "$recorder"
sleep 7 # longer than the agent's patience
check 'one that is stopped is waited for' has_ticks "$recorded"
kill -CONT "$recorder"
kill -INT "$recorded"
status=0
wait "$recorder" || status=$?
check 'and goes on' test "$status" -eq 42

# ---- too little of something
(
    ulimit -n 32
    # All live until one was refused, however slowly they start.
    # shellcheck disable=SC2016
    "$qut" record -o few sh -c '
        for i in 1 2 3 4 5 6 7 8 9 10; do sleep 60 & children="$children $!"; done
        for i in 1 2 3 4 5 6 7 8 9; do grep -q "is not recorded" err && break; sleep 1; done
        kill $children; wait' >out 2>err || true
)
check 'too few descriptors' grep -q 'too few descriptors for all processes: ulimit -n' err
# What it said instead.
grep -q 'too few descriptors' err || sed 's/^/    said: /' err
mkdir place
expect 'a file that goes away' 1 '^$' 'the file was removed while it was written' \
    record -o place/x sh -c "rm -r place; $s burn 20"
expect 'the name of the file that cannot be made' 2 '^$' '/proc(/x: No such file|: Permission denied)' record -o /proc/x "$s" burn 20

expect 'an agent for a process that has ended' 2 '^$' '^qut: [0-9]*: (has ended|no such process)' \
    record --inject -o none -p "$recorded"
finish

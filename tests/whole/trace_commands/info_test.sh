#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `qut info` and `qut collect` from outside. Usage: command_test.sh QUT SUBJECT
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
program=$(readlink -f "$2")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
cd "$work"
shared=$(mktemp -d /dev/shm/qut-test-XXXXXX)
trap 'rm -rf "$shared"; clean_up' EXIT

expect 'info help' 0 'Usage: qut info .*Example: .*Exit status: ' '^$' info --help
expect 'collect help' 0 'Usage: qut collect .*Example: .*Exit status: ' '^$' collect --help
expect 'info of nothing' 2 '^$' '^qut: info: needs a FILE: there is no qut.qtrace' info
expect 'info: unknown option' 2 '^$' 'not an option' info --frobnicate x
expect 'collect of nothing' 2 '^$' 'needs one of SEGMENT, --pid and --fd' collect -o x
expect 'collect of two' 2 '^$' 'needs one of' collect a --pid 1 -o x
expect 'collect to nowhere' 2 '^$' 'needs -o FILE' collect a
expect 'collect: bad interval' 2 '^$' 'not an argument for --interval' collect a -o x --interval 0
expect 'no such file' 2 '^$' '^qut: ./missing: .*No such file' info ./missing
expect 'a directory' 2 '^$' 'is a directory' info .
echo nothing of the kind, but long enough to have a header of a trace in it, had it been one >text
expect 'no trace' 2 '^$' '^qut: text: .*no trace' info text
: >empty
expect 'an empty file' 2 '^$' 'is empty' info empty
expect 'collect from no segment' 2 '^$' '^qut: text: .*no segment' collect text -o x
check 'and no file was made' test ! -e x
expect 'collect from no process' 2 '^$' 'no such process' collect --pid 2147483646 -o x
expect 'collect from a process without a trace' 2 '^$' 'no trace open' collect --pid $$ -o x

# Starts the subject; waits until it has said `word`.
start() # WORD ARGUMENT...
{
    rm -f pipe
    mkfifo pipe
    "$program" "${@:2}" <pipe >said 2>&1 &
    subject=$!
    subjects+=("$subject")
    exec 9>pipe
    for _ in $(seq 600); do
        if grep -q "^$1" said; then
            return
        fi
        sleep 0.05
    done
    result "the subject ($*)" 1 "did not say $1: $(<said)"
}

# ---- a trace that was closed

start ready overwrite "$shared/closed" 8 50000 0 close
expect 'a closed segment' 0 'no sample was lost.*hits      50000 = .*50000 here' '^$' info "$shared/closed"
expect 'collected' 0 '^$' ' kB, .* chunks' collect "$shared/closed" -o closed.qtrace
expect 'its file' 0 'no sample was lost.*hits      50000 = .*50000 here.*on disk' '^$' info closed.qtrace
expect 'two files' 0 'closed.*closed.qtrace' '^$' info "$shared/closed" closed.qtrace
expect 'as JSON' 0 '"complete":true|"complete": true' '^$' info --json closed.qtrace
check 'which is JSON' python3 -c 'import json,sys; d = json.load(open("out")); assert d["present_samples"] == 50000 and d["balanced"] and d["losses"] == [] and len(d["threads"]) == 3'
expect 'quietly' 0 '^$' '^$' collect "$shared/closed" -o closed.qtrace --quiet
expect 'onto itself' 2 '^$' 'is the segment itself' collect "$shared/closed" -o "$shared/closed"
expect 'the segment is as it was' 0 'hits      50000' '^$' info "$shared/closed"
expect 'onto a device' 2 '^$' 'no regular file' collect "$shared/closed" -o /dev/null
expect 'into a directory that is not there' 2 '^$' 'No such file' collect "$shared/closed" -o nowhere/x
head -c 100000 closed.qtrace >cut.qtrace
expect 'a file cut off' 1 'LOSSES.*no trailer' '^$' info cut.qtrace
head -c -30 closed.qtrace >cut.qtrace # nothing but its trailer
expect 'a file cut off at its end' 1 'LOSSES' '^$' info cut.qtrace
check 'which nobody calls whole' bash -c '! grep "no sample was lost" out'
head -c 6000000 "$shared/closed" >cut.segment
expect 'a segment cut off' 1 'LOSSES.*the file ends after 6000000' '^$' info cut.segment
head -c 3000 "$shared/closed" >cut.segment
expect 'a segment of which little is left' 2 '^$' 'truncated' info cut.segment

# ---- without room

(
    ulimit -f 64
    status=0
    "$qut" collect "$shared/closed" -o small.qtrace 2>small.err || status=$?
    echo "$status" >small.status
)
check 'no room: status' grep -q '^1$' small.status
check 'no room: said' grep -q 'could not be written' small.err
expect 'no room: the file' 1 'LOSSES.*could not be written' '^$' info small.qtrace

# ---- a process that goes on

start ready overwrite - 8 20000 0 hang
expect 'live, by pid' 0 '^$' 'the trace goes on' collect --pid "$subject" -o live.qtrace
expect 'live: all there was' 0 'hits      20000 = .*20000 here' '^$' info live.qtrace
kill -KILL "$subject"
wait "$subject" 2>/dev/null || true

start ready overwrite "$shared/killed" 8 20000 0 hang
kill -KILL "$subject"
wait "$subject" 2>/dev/null || true
expect 'a segment whose process died' 1 'was not closed.*hits      20000 = .*20000 here in [0-9]+ records, 0 overwritten, 0 not' '^$' \
    info "$shared/killed"
expect 'collected from who died' 0 '^$' 'ended without closing' collect "$shared/killed" --follow -o killed.qtrace
expect 'its file' 1 'ended without closing.*hits      20000 = .*20000 here in [0-9]+ records, 0 overwritten, 0 not' '^$' \
    info killed.qtrace

# ---- followed: more than the segment holds

follow() # NAME ARGUMENT...: sets $collector
{
    "$qut" collect --pid "$subject" --follow --interval 2 -o "$1" 2>"$1.err" &
    collector=$!
    subjects+=("$collector")
}

follows() # NAME: waits until it has begun to write
{
    for _ in {1..400}; do
        [ ! -s "$1" ] || return 0
        sleep 0.05
    done
}

start begun stream - 2 400000 2000 close
follow followed.qtrace
status=0
wait "$collector" || status=$?
check 'followed: ends when the trace is closed' test "$status" -eq 0
expect 'followed: all is there' 0 'hits      400000 = ' '^$' info followed.qtrace
check 'followed: more than it holds' python3 -c 'import sys,re; t = open("out").read(); assert int(re.search(r"samples   (\d+) here", t)[1]) > 300000, t'

start begun stream - 2 100000000 2000 close
follow stopped.qtrace
follows stopped.qtrace
sleep 0.2
kill -INT "$collector"
status=0
wait "$collector" || status=$?
check 'stopped: status' test "$status" -eq 0
check 'stopped: said' grep -q 'the trace goes on' stopped.qtrace.err
expect 'stopped: finished properly' 0 'hits ' '^$' info stopped.qtrace
follow died.qtrace
follows died.qtrace
sleep 0.2
kill -KILL "$subject"
wait "$subject" 2>/dev/null || true
status=0
wait "$collector" || status=$?
check 'died: status' test "$status" -eq 0
expect 'died: said' 1 'ended without closing' '^$' info died.qtrace

# The disk is full while it goes on: chunks stay where they are, and what has no room there is counted.
start begun stream - 2 100000 2000 close
(
    ulimit -f 100
    status=0
    "$qut" collect --pid "$subject" --follow --interval 2 -o full.qtrace 2>full.err || status=$?
    echo "$status" >full.status
)
check 'full while followed: status' grep -q '^1$' full.status
check 'full while followed: said' grep -q 'could not be written' full.err
# Whether there was room for the last counts depends on what was written before them. Without: those before hold,
# of a time when nothing was lost yet.
expect 'full while followed: the file' 1 'could not be written|no trailer' '^$' info --json full.qtrace
check 'full while followed: adds up' python3 -c 'import json; d = json.load(open("out")); assert d["balanced"] and not d["complete"] and d["hits"] <= 100000 and (d["lost"] or d["damaged_samples"] or "no trailer" in " ".join(d["losses"])), d'

start begun stream - 2 100000000 2000 close
follow killed_collector.qtrace
follows killed_collector.qtrace
sleep 0.2
kill -KILL "$collector"
wait "$collector" 2>/dev/null || true
expect 'a killed collector: what it had is there' 1 'no trailer.*hits ' '^$' info killed_collector.qtrace
kill -KILL "$subject"
wait "$subject" 2>/dev/null || true

finish

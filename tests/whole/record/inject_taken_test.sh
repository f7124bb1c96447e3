#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An agent that is injected meets what the program has done already, and what it does later: signals that it handles, and
# libraries that it loads.
# Usage: inject_taken_test.sh QUT LATE LIBRARY
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
late=$(readlink -f "$2")
library=$(readlink -f "$3")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
export QUT_CACHE=$work/cache
cd "$work"

begin() # SIGNAL...: $pid, which has its handlers
{
    "$late" "$library" "$@" &
    pid=$!
    subjects+=("$pid")
    until awk '/^SigCgt/ { exit $2 !~ /[1-9a-f]/ }' "/proc/$pid/status"; do sleep 0.01; done
    sleep 0.1
}

record() # OPTION...
{
    rm -f trace*
    "$qut" record --inject -p "$pid" -F 500 -o trace "$@" 2>said || true
}

has_samples() { [ "$("$qut" info --json trace | sed 's/.*"present_samples": \([0-9]*\).*/\1/;q')" -gt 10 ]; }
is_alive() { kill -0 "$pid"; }

# SIGTRAP and SIGSTKFLT: as ART does. 16 is SIGSTKFLT, 27 SIGPROF.
begin 5
record --duration 0.5
check 'one that handles SIGTRAP has ticks' has_samples
check 'nothing is to be said' test "$(grep -c 'ticks come by' said)" -eq 0
begin 5 16
record --duration 0.5
check 'one that handles SIGSTKFLT as well' has_samples
check 'which signal it is' grep -q 'ticks come by signal 27 ' said
check 'also in the file' "$here/trace_says.py" "$qut" trace 'processes[0]["notes"]["tick-signal"] == "PROF"'
begin 5 16 27
record --duration 0.5
check 'one that handles SIGPROF, too' has_samples
check 'and goes on after it' is_alive
begin 5 16
record --duration 0.5 --signal 16
check 'a signal that was asked for is not exchanged' grep -q 'has no ticks: Device or resource busy' said

# The thread that injects has ended before; the table is asked for by libqut's own, which lives on.
begin
"$qut" record --inject -p "$pid" -F 500 -o trace 2>said &
recorder=$!
subjects+=("$recorder")
until grep -q libqut-agent "/proc/$pid/maps" && ! grep -qs qut-inject "/proc/$pid"/task/*/comm; do sleep 0.05; done
kill -USR1 "$pid"
until grep -q "$library" "/proc/$pid/maps"; do sleep 0.05; done
used_ticks() { awk '{ print $14 }' "/proc/$pid/stat"; }
begin_ticks=$(used_ticks)
until [ "$(used_ticks)" -gt $((begin_ticks + 200)) ]; do sleep 0.1; done
kill -TERM "$recorder" # SIGINT is ignored in the background
wait "$recorder" || true
"$qut" export -f collapsed -o stacks trace 2>said || true
whole=$(awk '/;main;(late_burn;)?late_inner / || /;main;late_burn / { sum += $NF } END { print sum + 0 }' stacks)
all=$(awk '/late_(inner|burn) / { sum += $NF } END { print sum + 0 }' stacks)
result 'stacks of what is loaded later reach its callers' $((whole * 2 <= all)) "$whole of $all: $(head -c 1000 stacks)"
finish

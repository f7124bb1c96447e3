#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Storms of signals, forks, programs, libraries, closed descriptors, roots and daemons, recorded in each way: the program's own
# account is as without us, and the recording's is whole.
# Usage: storms_test.sh QUT STORMS [TIMES]: TIMES as much of each (default: 1)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
storms=$(readlink -f "$2")
times=${3:-1}
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
export QUT_CACHE=$work/cache
: >"$work/out"
cd "$work"

outcome() # COMMAND...
{
    local status=0
    "$@" >said 2>&1 </dev/null || status=$?
    printf 'status %d\n' "$status" >>said
}

recorded() # NAME MODE... -- COMMAND...
{
    local name=$1
    shift
    rm -f trace*
    outcome "$qut" record -q -o trace "$@"
    # What it says of a process that it samples from outside is no word of the program's.
    sed -i '/sampled from outside$/d' said
    check "$name" diff plain said
    check "$name: its recording balances" "$here/trace_says.py" "$qut" trace 'len(processes) > 0'
}

storm() # WHAT COUNT
{
    local what=$1 count=$(($2 * times))
    outcome "$storms" "$what" "$count"
    cp said plain
    check "$what: by itself" grep -qx 'status 0' plain
    recorded "$what: ticks" -F 4000 -- "$storms" "$what" "$count"
    recorded "$what: all calls" --sync all --sync-interval 0 -F 1000 -- "$storms" "$what" "$count"
    recorded "$what: by time, without children" --wall --no-children -F 500 -- "$storms" "$what" "$count"
}

storm signals 300
storm forks 40
storm vforks 40
storm execs 12
storm loads 100
storm descriptors 60
storm threads 100
if [ "$(id -u)" -eq 0 ]; then
    storm chroot 20
else
    skip chroot 'not root'
fi

# A daemon outlives its recording, or is waited for: it does its work in both.
for mode in '' --wait-all; do
    rm -f ended
    # shellcheck disable=SC2086 # no word, or one
    outcome "$qut" record -q -o trace-daemon $mode -- "$storms" daemon "$work/ended"
    check "a daemon $mode: its parent's status" grep -qx 'status 0' said
    for ((i = 0; i < 600; i++)); do
        [ ! -s ended ] || break
        sleep 0.1
    done
    check "a daemon $mode: it ends by itself" grep -qx 'the daemon ended by itself' ended
    check "a daemon $mode: its recording balances" "$here/trace_says.py" "$qut" trace-daemon 'len(processes) > 0'
done

printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]

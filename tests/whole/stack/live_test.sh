#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stacks of live processes, and what becomes of those. Usage: live_test.sh QUT SUBJECT SUBJECT_CXX
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
c_subject=$(readlink -f "$2")
cxx_subject=$(readlink -f "$3")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
export QUT_CACHE=$work/cache
cd "$work"

# The names of the functions of the thread whose header matches, innermost first, in one line.
functions_of() # HEADER_PATTERN
{
    awk -v pattern="$1" '/^[0-9]/ { on = $0 ~ pattern } { sub(/ \(deleted\)/, "") } on && /^  #/ && match($0, /\(.*\)/) {
        name = substr($0, RSTART + 1, RLENGTH - 2); sub(/\+[0-9]+$/, "", name); printf "%s ", name }' "$work/out"
}

has_chain() # NAME HEADER_PATTERN REGEX
{
    local functions good=0
    functions=$(functions_of "$2")
    [[ $functions =~ $3 ]] || good=1
    result "$1" "$good" "wanted ($3), got: $functions; output: $(head -c 3000 "$work/out")"
}

state_of() # PID: the letters of all threads
{
    awk '{ sub(/.*\) /, ""); printf "%s", $1 }' /proc/"$1"/task/*/stat
}

runs_on() # PID
{
    [[ $(state_of "$1") != *[tT]* ]] && grep -q '^TracerPid:[[:space:]]*0$' "/proc/$1/status"
}

# Threads.
start_subject "$c_subject" threads
until_asleep
expect 'threads' 0 '' '^$' stack -p "$subject"
check 'four headers' test "$(grep -c '^[0-9]' out)" -eq 4
has_chain 'main' "^$subject " 'read .*wait_in_main main .*_start $'
for tid in "/proc/$subject/task"/*; do
    tid=${tid##*/}
    [ "$tid" = "$subject" ] || has_chain "thread $tid" "^$tid " 'pause wait_inner wait_middle wait_in_thread '
done
check 'a frame is as it should be' grep -Eq '^  #01 pc [0-9a-f]{16}  /.*/subject \(wait_inner\+[0-9]+\)$' out
check 'no stack is cut' bash -c '! grep -q "end:" out'
# A thread that a stop brought out of its system call stands behind it, or before it when it is to begin it anew.
without_innermost()
{
    sed '/^  #00/{s/pc [0-9a-f]*//;s/+[0-9]*)/)/}' "$1"
}
without_innermost out >first
run stack -p "$subject"
result 'the same again' "$(without_innermost out | cmp -s - first; echo $?)" "$(without_innermost out | diff first -)"
check 'goes on' runs_on "$subject"
expect 'verbose' 0 '' 'longer than [0-9.]+ [um]s.*4 threads, 4 walked; 0 tables compiled' stack -v -p "$subject"
expect 'without a cache' 0 '' '4 walked; [1-9][0-9]* tables compiled' stack -v --no-cache -p "$subject"
expect 'a cache of its own' 0 '' '' stack --cache "$work/own" -p "$subject"
check 'is filled' bash -c 'ls own/*.qut'
expect 'one thread' 0 "^$subject [^
]*
  #00 " '^$' stack --tid "$subject" -p "$subject"
check 'one header' test "$(grep -c '^[0-9]' out)" -eq 1
expect 'a thread of others' 2 '^$' '^qut: stack: no thread 1$' stack --tid 1 -p "$subject"
expect 'limit' 0 'end: there are more frames \(--limit\)' '^$' stack --limit 2 -p "$subject"
check 'two frames each' test "$(grep -c '^  #' out)" -eq 8
expect 'no names' 0 '' '^$' stack --no-names -p "$subject"
check 'no parentheses' bash -c '! grep -q "(" out'
expect 'not stopped' 0 '' '^$' stack --no-stop -p "$subject"
has_chain 'not stopped: main' "^$subject " 'read .*wait_in_main main .*_start $'

# JSON says the same. A thread that was looked at begins its system call anew: when it is looked at again it may stand
# before it. The two are of one moment, as it were, in one of some tries.
json_is_text() # NAME ARGUMENT...
{
    local tries good=1
    for ((tries = 0; tries < 20 && good; tries++)); do
        until_asleep
        run stack "${@:2}" -p "$subject"
        cp out text
        until_asleep
        run stack --json "${@:2}" -p "$subject"
        good=0
        python3 "$here/json_as_text.py" out text >differs 2>&1 || good=1
    done
    result "$1" "$good" "$(head -c 3000 differs)"
}
expect 'json' 0 '' '^$' stack --json -p "$subject"
check 'json parses' python3 -m json.tool out
json_is_text 'json is the text'
expect 'grouped json' 0 '' '^$' stack --json --group -p "$subject"
expect 'grouped' 0 '' '^$' stack --group -p "$subject"
json_is_text 'grouped json is the text' --group
stop_subject

start_subject "$c_subject" same 20
until_asleep
expect 'twenty alike' 0 '20 threads "worker": [0-9]+, [0-9]+, ' '^$' stack --group -p "$subject"
check 'two stacks' test "$(grep -c '^  #00' out)" -eq 2
stop_subject

# A signal handler, on a stack of its own.
start_subject "$c_subject" handler
until_asleep
expect 'handler' 0 '\[signal frame\]' '^$' stack -p "$subject"
has_chain 'through the signal frame' '"handling"' \
    'pause wait_inner handler_inner on_signal .*raise_inner handle_in_thread '
check 'nothing is guessed' bash -c '! grep -q guessed out'
stop_subject

# Where being stopped would be noticed.
start_subject "$c_subject" epoll
until_asleep
for round in 1 2 3; do
    expect "epoll, $round" 0 '' '^$' stack -p "$subject"
done
has_chain 'epoll: chain' '"polling"' '^epoll_wait poll_inner poll_in_thread '
check 'epoll: nobody was interrupted' bash -c '! grep -q interrupted\" out'
has_chain 'epoll: for ever' '"framed"' '^epoll_wait poll_in_frame poll_framed '
has_chain 'epoll: without registers' '"timed"' '^epoll_wait poll_in_frame $'
check 'epoll: says why' grep -q \
    '^      end: not stopped: it sleeps in epoll_wait, which stopping would interrupt; --interrupt stops it too' out
expect 'epoll: json' 0 '"asleep_in":[ ]*"epoll_wait"' '^$' stack --json -p "$subject"
json_is_text 'epoll: json is the text'
expect 'epoll, interrupted' 0 '' '^$' stack --interrupt -p "$subject"
has_chain 'epoll: with registers' '"(timed|interrupted)"' '^epoll_wait (poll_inner poll_in_thread|poll_in_frame) [^ ]'
check 'epoll: no stack is cut' bash -c '! grep -q "end:" out'
sleep 0.1
expect 'epoll: they noticed' 0 '"interrupted"' '^$' stack -p "$subject"
expect 'interrupt what is not stopped' 2 '^$' 'contradicts --no-stop' stack --interrupt --no-stop -p "$subject"
stop_subject

# A file that is gone, while its process lives on.
cp "$c_subject" gone
start_subject ./gone threads 1
until_asleep
rm gone
expect 'a file that is gone' 0 '/gone \(deleted\)' '' stack -p "$subject"
if [ "$(id -u)" -eq 0 ]; then # what is mapped is root's to open by /proc/PID/map_files
    expect 'a file that is gone has names' 0 '/gone \(deleted\) \(wait_in_main' '' stack -p "$subject"
    has_chain 'gone: chain' '^'"$subject"' ' 'wait_in_main main .*_start $'
else
    skip 'names of a file that is gone' 'not root'
fi
stop_subject

# C++.
start_subject "$cxx_subject"
until_asleep
expect 'C++' 0 '\(shop::Cart<int>::total\(long, char const\*\)\+[0-9]+\)' '^$' stack -p "$subject"
expect 'C++ as it is in the file' 0 '\(_ZN4shop4CartIiE5totalElPKc\+[0-9]+\)' '^$' stack --raw -p "$subject"
stop_subject

# Of code that runs: no thread sleeps in a system call but main.
start_subject "$c_subject" spin
expect 'running' 0 '' '^$' stack -p "$subject"
has_chain 'running: chain' '"spinning"' '^spin_inner spin_in_thread '

# qut dies at a random moment: its subject goes on.
for signal in KILL INT TERM; do
    good=0
    python3 "$here/kill_rounds.py" "$qut" "$subject" "$signal" 50 >out 2>&1 || good=1
    result "killed by SIG$signal" "$good" "$(head -c 600 out)"
done
expect 'and again' 0 '"spinning"' '^$' stack -p "$subject"
stop_subject
finish

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Counting, shared by the tests of the qut command. Wants $qut; sets $work, removes it at the end together with what was
# started.
: "${qut:?}"
work=$(mktemp -d)
passed=0
failed=0
skipped=0
subjects=()

clean_up()
{
    [ ${#subjects[@]} -eq 0 ] || kill -KILL "${subjects[@]}" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT

result() # NAME 0|1 WHAT...
{
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: %s\n' "$1" "${*:3}"
    fi
}

skip() # NAME WHY
{
    skipped=$((skipped + 1))
    printf 'SKIP: %s: %s\n' "$1" "$2"
}

# Runs qut; its output is in $work/out and $work/err, its status in $status.
run() # ARGUMENT...
{
    status=0
    "$qut" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
}

expect() # NAME STATUS STDOUT_PATTERN STDERR_PATTERN ARGUMENT...
{
    local name=$1 wanted=$2 out_pattern=$3 err_pattern=$4 good=0
    run "${@:5}"
    [ "$status" -eq "$wanted" ] || good=1
    [[ $(<"$work/out") =~ $out_pattern ]] || good=1
    [[ $(<"$work/err") =~ $err_pattern ]] || good=1
    result "$name" "$good" "status $status, wanted $wanted; stdout ($out_pattern):" "$(head -c 1500 "$work/out")" \
        "; stderr ($err_pattern):" "$(head -c 600 "$work/err")"
}

check() # NAME COMMAND...
{
    local good=0
    "${@:2}" >/dev/null 2>&1 || good=1
    result "$1" "$good" "failed: ${*:2}; output: $(head -c 1500 "$work/out")"
}

# Starts a program that says "ready" and waits on its standard input; sets $subject.
start_subject() # PROGRAM ARGUMENT...
{
    local said
    coproc SUBJECT { exec "$@"; }
    subject=$SUBJECT_PID
    subjects+=("$subject")
    read -r said <&"${SUBJECT[0]}"
    [ "$said" = ready ] || result "start of $1" 1 "said '$said'"
}

# What says "ready" may not sleep yet where others have the processors.
until_asleep() # waits until all threads of $subject do
{
    local tries
    for ((tries = 0; tries < 3000; tries++)); do
        # a thread that has just begun or ended may be gone by the time it is read
        [[ $(cat /proc/"$subject"/task/*/stat 2>/dev/null | sed 's/.*) //' | cut -c1 | sort -u) != S ]] || return 0
        sleep 0.01
    done
    result 'all threads sleep' 1 "$(cat /proc/"$subject"/task/*/stat)"
}

stop_subject()
{
    kill -KILL "$subject" 2>/dev/null || true
    wait "$subject" 2>/dev/null || true
}

finish()
{
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ]
}

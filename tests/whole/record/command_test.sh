#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `qut record -- COMMAND` from outside: usage, exit statuses, children, what the command sees, files.
# Usage: command_test.sh QUT SUBJECT
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
subject_program=$(readlink -f "$2")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
export QUT_CACHE=$work/cache
export XDG_RUNTIME_DIR=$work/run
mkdir -m 700 "$XDG_RUNTIME_DIR"
cd "$work"
s=$subject_program

says() # NAME FILE EXPRESSION
{
    local good=0
    "$here/trace_says.py" "$qut" "$2" "$3" >"$work/says" 2>&1 || good=1
    result "$1" "$good" "$(head -c 2000 "$work/says")"
}

# ---- usage
expect 'help' 0 'Usage: qut record .*COMMAND.*Example: .*Exit status: COMMAND' '^$' record --help
expect 'nothing to record' 2 '^$' '^qut: record: needs a COMMAND, or -p PID' record
expect 'both' 2 '^$' 'not both' record -p 1 true
expect 'unknown option' 2 '^$' '^qut: --frobnicate: not an option' record --frobnicate true
expect 'no rate' 2 '^$' '^qut: x: not an argument for --frequency' record -F x true
expect 'rate 0' 2 '^$' '^qut: 0: not an argument for --frequency' record -F 0 true
expect 'rate nan' 2 '^$' 'not an argument for --frequency' record -F nan true
expect 'group' 2 '^$' 'not an argument for --group' record --group main true
expect 'group with a semicolon' 2 '^$' 'not an argument for --group' record --group 'a;b=1' true
expect 'sync' 2 '^$' 'not an argument for --sync' record --sync alloc,frob true
expect 'metrics' 2 '^$' 'not an argument for --metrics' record --metrics x true
expect 'buffer' 2 '^$' 'not an argument for --buffer' record --buffer 10T true
expect 'buffer too small' 2 '^$' 'not an argument for --buffer' record --buffer 1K true
expect 'signal' 2 '^$' 'not an argument for --signal' record --signal 9 true
expect 'duration' 2 '^$' 'not an argument for --duration' record --duration 0 true
expect 'tid alone' 2 '^$' '^qut: --tid: needs -p' record --tid 1 true
expect 'inject alone' 2 '^$' '^qut: --inject: needs -p' record --inject true
expect 'inject by time' 2 '^$' '^qut: --wall: not with --inject' record --wall --inject -p 1
expect 'standard output' 2 '^$' '^qut: -o -: ' record -o - true
expect 'no such process' 2 '^$' 'no such process' record -p 2147483646
expect 'a directory' 2 '^$' '^qut: \.: .*is a directory' record -o . true
expect 'a device' 2 '^$' 'is no regular file' record -o /dev/null true
expect 'no directory' 2 '^$' 'No such file' record -o missing/x true
expect 'no summary on standard output' 2 '^$' '^qut: --json -: needs a FILE' record --json - true
expect 'no summary where none can be' 2 '^$' '^qut: missing/x: No such file' record --json missing/x true
printf 'mine' >same
expect 'no summary over the trace' 2 '^$' '^qut: same: cannot be the trace and its summary' \
    record --json same -o same true
expect 'by whatever name' 2 '^$' '^qut: \./same: cannot be' record --json ./same -o same true
check 'which is left as it was' test "$(cat same)" = mine
expect 'a summary that has no room' 1 '^$' '^qut: /dev/full: No space left' \
    record -q --json /dev/full -o f "$s" burn 20
expect 'no command' 127 '^$' '^qut: frobnicate: command not found' record frobnicate
expect 'no command by path' 127 '^$' '^qut: ./frobnicate: command not found' record ./frobnicate
printf 'x' >plain
expect 'not executable' 126 '^$' '^qut: ./plain: Permission denied' record ./plain
expect 'a directory as command' 126 '^$' '^qut: [^:]*: Is a directory' record "$work"
check 'nothing is left of these' test ! -e qut.qtrace
QUT_AGENT_PATH=/missing expect 'no agent' 2 '^$' '^qut: libqut-agent.so: .*QUT_AGENT_PATH' record true

# ---- statuses
expect 'status 0' 0 '^$' 'samples of 1 threads in 1 processes.*next: qut report a' record -o a "$s" burn 100
says 'its samples' a 't["complete"] and 70 <= due(processes[0]) <= 130 and t["present_samples"] > 5 and len(processes) == 1'
says 'taken when its trace was closed, not when it was gone' a 'processes[0]["notes"]["recording-ended"] == "closed"'
says 'its ticks' a 'processes[0]["notes"]["ticks-due"] >= processes[0]["notes"]["ticks-taken"] == t["present_samples"]'
expect 'status 7' 7 '^$' 'samples' record -o b "$s" burn 20 7
expect 'by a signal' 139 '^$' 'samples' record -o c "$s" raise 11
says 'one that died' c 'len(processes) == 1 and not t["complete"] and processes[0]["end"] == "died"'
expect 'quiet' 0 '^$' '^$' record -q -o d "$s" burn 20
expect 'options of the command are its own' 0 '^-q -o$' '' record -q -o e printf '%s %s' -q -o
expect 'no line of status without a terminal' 0 '^$' '^[^'$'\r'']*$' record -o f "$s" burn 20

# ---- what the summary says
summary() # NAME EXPRESSION, of Python: true of s, the summary in the file json, and of t, what qut info says of its file
{
    local good=0
    "$qut" info --json --top 5 "$(sed 's/^{"file": "\([^"]*\)".*/\1/' json)" >info_json
    /usr/bin/python3 -c "import json; s, t = json.load(open('json')), json.load(open('info_json')); assert $2" \
        2>"$work/says" || good=1
    result "$1" "$good" "$(head -c 300 "$work/says") $(head -c 1500 json)"
}
expect 'top functions' 0 '^$' 'functions by cpu: .*  burn.*next:' record -o top "$s" burn 100
expect 'as JSON' 7 '^$' '^$' record -q --json json -o top "$s" burn 100 7
summary 'the same as that of its file' 's["top"] == t["top"] and s["top"][0]["function"] == "burn" and len(s["top"]) == 5'
summary 'with its counts' 's["command_status"] == 7 and s["samples"] == t["present_samples"] > 5 and s["hits"] == t["hits"]'
summary 'and its mode' 's["mode"] == "command" and s["processes"] == 1 and s["processes_not_followed"] == 0'
expect 'too short for a tick' 0 '^$' ' 0 samples of .*used [0-9.]+ .s of processor time.* a tick comes once in 10\.0 s.*-F [0-9]+.*--wall.*--sync all' \
    record -F 0.1 -o short true
check 'which has nothing to report' bash -c '! grep -q next: "$1"' _ "$work/err"
expect 'from outside no calls are seen' 2 '^$' '^qut: --sync: not with -p' record -p $$ --sync all
expect 'nor from inside, later on' 2 '^$' '^qut: --sync: not with --inject' record -p $$ --inject --sync all
expect 'no counts without an agent' 2 '^$' '^qut: --faults: not with -p' record -p $$ --faults 5
expect 'no groups without an agent' 2 '^$' '^qut: --group: with -p only main' record -p $$ --group 'x=5'
expect 'where there is no sample' 0 '^$' ' 0 samples of .*no samples: there are no ticks' record --no-ticks --sync none --json json -o none "$s" burn 20
summary 'there is nothing to list' '"top" not in s and "top_error" not in s and s["samples"] == 0'

# ---- the file that was there
printf 'mine' >kept
expect 'a file is kept' 0 '^$' 'kept: the file that was there is now kept.1' record -o kept "$s" burn 10
check 'as it was' test "$(cat kept.1)" = mine
expect 'and again' 0 '^$' 'now kept.2' record -o kept "$s" burn 10
check 'the first one stays' test "$(cat kept.1)" = mine
expect 'a command that cannot start' 127 '^$' 'not found' record -o kept.1 frobnicate
check 'touches nothing' test "$(cat kept.1)" = mine
printf '#!/missing/interpreter\n' >script
chmod +x script
expect 'nor one without its interpreter' 127 '^$' '' record -o kept.1 ./script
check 'touches nothing either' test "$(cat kept.1)" = mine

# ---- children
# A child may be hit between fork and exec: that is a part of the trace with the same pid, and no process more.
expect 'fork and exec' 0 '^$' ' in 4 processes' record -o g "$s" spawn 3 50
says 'each has its samples' g \
    'len({p["pid"] for p in processes}) == 4 and sum(due(p) > 25 and p["present_samples"] > 0 for p in processes) == 3 and t["complete"]'
says 'each knows its parent' g 'all(p["parent_pid"] == processes[0]["pid"] for p in processes[1:])'
expect 'fork' 0 '^$' ' in 4 processes' record -o h "$s" forks 3 50
says 'each has its samples, too' h 'len(processes) == 4 and sum(due(p) > 25 and p["present_samples"] > 0 for p in processes) == 3'
expect 'too short for a tick' 0 '^$' 'samples of 4 threads in 4 processes' record -F 1 --json short.json -o short "$s" forks 3 0
says 'is said, and no process of the file' short 'len(processes) == 1 and notes["processes-without-samples"] == 3 and t["complete"]'
check 'also in the summary' grep -q '"processes_without_samples": 3' short.json
limits=$(ulimit -n; "$qut" record -q -o limits sh -c 'ulimit -n')
check 'the command has its own limits' test "$(sed -n 1p <<<"$limits")" = "$(sed -n 2p <<<"$limits")"
check 'many at the same time' bash -c "ulimit -Sn 256; '$qut' record --buffer 2M -o many '$s' forks 120 20 2>&1 | grep -q ' in 121 processes'"
says 'all of them are there' many 'len(processes) == 121 and t["present_samples"] > 0.4 * sum(due(p) for p in processes) > 0'
expect 'exec of itself' 5 '^$' '' record -o i sh -c "exec $s burn 40 5"
says 'both are there' i 'len({p["pid"] for p in processes}) == 1 and due(processes[-1]) > 20 and t["present_samples"] > 0'
expect 'not the children' 0 '^$' ' in 1 processes' record --no-children -o j "$s" spawn 2 50
says 'they are not there' j 'len(processes) == 1'
check 'no folder is left' test ! -e g.parts
expect 'a child that outlives it' 0 '^$' '1 processes had not ended' \
    record -o k sh -c "$s sleeps </dev/zero >awake 2>&1 & echo \$! >sleeper; until grep -q ready awake; do sleep 0.05; done"
says 'is in it as well' k 'any(p["end"] == "stopped" for p in processes) and notes["processes-left-running"] == 1'
kill -KILL "$(cat sleeper)"
expect 'or is waited for' 0 '^$' 'samples' record --wait-all -o l sh -c "$s burn 200 </dev/null >/dev/null 2>&1 &"
says 'to its end' l 'processes[-1]["complete"] and due(processes[-1]) > 100'

# ---- what the command sees
view() # COMMAND...
{
    "$@" "$s" view | sed 's/pipe:.*/pipe/; s,/dev/fd.*,,'
}
view env >seen.plain </dev/null
view "$qut" record -q -o m >seen.recorded </dev/null
check 'descriptors, mask, handlers as without us' cmp seen.plain seen.recorded
(trap '' INT HUP; view env >seen.plain </dev/null; view "$qut" record -q -o n >seen.recorded </dev/null)
check 'what its parent ignores, it ignores' cmp seen.plain seen.recorded
env -u LD_PRELOAD sh -c env | grep -v '^_=' | sort >environment.plain
"$qut" record -q --no-children -o o env | grep -v '^_=' | sort >environment.recorded
check 'the environment of one without children' cmp environment.plain environment.recorded
check 'standard input and output are its own' test "$(echo hello | "$qut" record -q -o p cat)" = hello
check 'LD_PRELOAD of the user stays' \
    bash -c "LD_PRELOAD=libm.so.6 '$qut' record -q -o q cat /proc/self/maps | grep -q libm.so"

# ---- ends
"$qut" record -o r "$s" interrupted >said 2>err &
recorder=$!
subjects+=("$recorder")
until grep -q ready said 2>/dev/null; do sleep 0.05; done
kill -TERM "$recorder"
status=0
wait "$recorder" || status=$?
check 'SIGTERM is passed on' test "$status" -eq 143
says 'and the file is whole' r 't["balanced"] and t["file_bytes"] > 0 and len(processes) == 1'
expect 'duration' 0 '^$' 'the time is up' record --duration 0.6 -o s "$s" burn 1500
says 'no more samples then' s 't["present_samples"] < 1400 and processes[0]["end"] == "stopped"'
"$here/interrupt.py" "$qut" "$s" >said 2>&1 && good=0 || good=$?
if [ "$good" -eq 77 ]; then
    skip 'Ctrl-C on a terminal' "$(cat said)"
else
    result 'Ctrl-C on a terminal' "$good" "$(head -c 1500 said)"
fi

# ---- commands that nothing can be preloaded into
if "${CC:-cc}" -static -O1 -o static "$here/subject.c" 2>/dev/null; then
    expect 'static' 3 '^$' 'static.*sampled from outside.*samples of' record -o t ./static burn 300 3
    says 'its samples, from outside' t 't["present_samples"] > 100'
else
    skip 'static' 'no static libc'
fi
# 126: this kernel runs no such programs.
if command -v i686-linux-gnu-gcc >/dev/null && i686-linux-gnu-gcc -static -O1 -o thirty_two "$here/subject.c" &&
    { ./thirty_two >/dev/null 2>&1 || [ $? -ne 126 ]; }; then
    expect '32-bit' 3 '^$' '32-bit.*sampled from outside.*samples of' record -o u ./thirty_two burn 300 3
    says 'its samples, from outside, too' u 't["present_samples"] > 100'
else
    skip '32-bit' 'no i686-linux-gnu-gcc, or a kernel without 32-bit programs'
fi

# ---- a process that runs
"$s" interrupted >said &
running=$!
subjects+=("$running")
until grep -q ready said 2>/dev/null; do sleep 0.05; done
maps_before=$(cut -d' ' -f1,2,6- "/proc/$running/maps")
expect 'from outside' 0 '^$' 'samples of 1 threads.*stopped [0-9]+ times: median.*functions by .*burn' \
    record -p "$running" --duration 0.4 --json json -o outside
summary 'its summary' 's["mode"] == "outside" and s["top"] == t["top"] and s["stops"] > 10'
says 'its samples' outside 't["complete"] and t["present_samples"] > 0'
expect 'from inside' 0 '^$' 'samples of .*one thread stood still.*functions by cpu.*burn' \
    record -p "$running" --inject --duration 0.4 --json json -o inside
summary 'its summary, too' 's["mode"] == "injected" and s["top"] == t["top"] and s["samples"] > 10'
says 'its samples, too' inside 't["complete"] and t["present_samples"] > 0 and "ticks-due" in processes[0]["notes"]'
check 'its maps are what they were' test "$(cut -d' ' -f1,2,6- "/proc/$running/maps")" = "$maps_before"
kill -INT "$running"
status=0
wait "$running" || status=$?
check 'it went on' test "$status" -eq 42
expect 'a process that is gone, from inside' 2 '^$' 'no such process' record -p 2147483646 --inject -o gone
check 'leaves no file' test ! -e gone

# ---- other surroundings
expect 'a shell that cleans the environment' 0 '^$' ' in 1 processes' record -o y env -i "$s" burn 30
for how in 'unshare --net' 'unshare --pid --fork' 'unshare --mount' 'unshare --user --map-root-user'; do
    if $how true 2>/dev/null; then
        # shellcheck disable=SC2086 # an option each
        expect "$how" 3 '^$' 'samples' record -o z $how "$s" burn 100 3
        says "$how: its samples" z 'sum(due(p) for p in processes) > 50 and t["present_samples"] > 0'
        rm -f z
    else
        skip "$how" 'is not allowed'
    fi
done

# As in a container: the path is another file here.
cp /bin/true other
sorter=$(command -v sort)
in_other_place='mount --bind "$1" "$2" && exec "$2" --parallel=1 -R numbers'
seq 60000 >numbers
if unshare --mount sh -c 'mount --bind "$1" "$2"' sh "$sorter" "$PWD/other" 2>/dev/null; then
    expect 'another file there' 0 '^[0-9]' 'samples' \
        record -o other.trace unshare --mount sh -c "$in_other_place" sh "$sorter" "$PWD/other"
    says 'tables are of the file that ran' other.trace \
        'sum(due(p) for p in processes) > 50 and t["present_samples"] > 10 * sum(t["cut"].values())'
else
    skip 'another file there' 'is not allowed'
fi

# ---- a recording that goes on can be read
mkfifo hold
exec {hold}<>hold
"$qut" record -q -o aa "$s" sleeps <hold >said {hold}>&- &
recorder=$!
subjects+=("$recorder")
until grep -q ready said 2>/dev/null; do sleep 0.05; done
# What it says first of the process may come a moment later.
for ((i = 0; i < 200; i++)); do
    status=0
    "$qut" info aa >out 2>err || status=$?
    ((status > 1)) || break
    sleep 0.05
done
check 'while it goes on' test "$status" -le 1
says 'with what there is' aa 'len(processes) == 1'
exec {hold}>&-
wait "$recorder" || true
says 'and at its end' aa 't["complete"]'

# ---- a disk that is full: the command goes on
if mkdir full && mount -t tmpfs -o size=64k none full 2>/dev/null; then
    dd if=/dev/zero of=full/filler bs=1k count=48 2>/dev/null || true
    expect 'a full disk' 1 '^done$' 'could not be written .*No space left' \
        record -F 5000 --metrics all -o full/v sh -c "$s spawn 4 150 && echo done"
    rm -f full/filler
    # On a busy machine nothing but the head had room.
    check 'what is there can be read' bash -c "'$qut' info full/v; [ \$? -le 1 ] || [ \$(stat -c %s full/v) -le 4096 ]"
    umount full
else
    skip 'a full disk' 'mount is not allowed'
fi

# ---- without a cache
QUT_CACHE=/proc/nowhere expect 'a cache that cannot be' 0 '^$' '/proc/nowhere: .*samples' record -o w "$s" burn 50
says 'tables came another way' w 'due(processes[0]) > 25 and t["present_samples"] > 3 * sum(t["cut"].values())'
expect 'no cache' 0 '^$' 'samples' record --no-cache -o x "$s" spawn 2 50
says 'tables came another way, too' x 'sum(due(p) for p in processes) > 50 and t["present_samples"] > 3 * sum(t["cut"].values())'
check 'nothing is left behind' rmdir "$XDG_RUNTIME_DIR"
finish

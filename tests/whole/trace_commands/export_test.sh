#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# qut export, as it is called: what it writes where, what it says, and how it ends.
#
#     command_test.sh QUT TRACED
set -uo pipefail

qut=$(realpath "$1")
traced=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -w /dev/shm ]; then
    echo 'SKIP: /dev/shm cannot be written to'
    exit 77
fi
folder=$(mktemp -d)
segment=/dev/shm/qut-export-test.$$
trap 'rm -rf "$folder" "$segment" "$segment".*' EXIT
cd "$folder" || exit 1
failed=0

fail()
{
    printf 'FAIL %s\n' "$*"
    failed=1
}

# STATUS WHAT COMMAND...: standard output and error are in out and err.
expect()
{
    local wanted=$1 what=$2 status
    shift 2
    "$@" >out 2>err
    status=$?
    [ "$status" = "$wanted" ] || fail "$what: exit status $status instead of $wanted: $(head -c 300 err)"
}

says() # WHAT TEXT
{
    grep -qF -- "$2" err || fail "$1: does not say \"$2\" but: $(head -c 300 err)"
}

pid=$("$traced" "$segment") || fail 'the traced program failed'
cp "$segment" app.qtrace

# ---- every format, beside the trace, and to standard output the same
for pair in perfetto=perfetto-trace speedscope=speedscope.json pprof=pb.gz collapsed=collapsed.txt \
    nanoscope=nanoscope.txt chrome=trace.json perf-script=perf.txt firefox=firefox.json callgrind=callgrind.out \
    otlp=otlp.pb.gz; do
    format=${pair%%=*} name=app.${pair#*=}
    expect 0 "$format" "$qut" export app.qtrace -f "$format"
    [ ! -s out ] || fail "$format: something on standard output"
    [ -s "$name" ] || fail "$format: there is no $name"
    expect 0 "$format to standard output" "$qut" export app.qtrace -f "$format" -o -
    cmp -s out "$name" || fail "$format: standard output differs from the file"
    expect 0 "$format by the name" "$qut" export app.qtrace -o "other.${pair#*=}"
    cmp -s "other.${pair#*=}" "$name" || fail "$format: the name of the output was not understood"
done
[ -z "$(find . -name '*.part')" ] || fail 'half files are left'

# ---- what was put in: 3 threads with 100 samples each
expect 0 'samples' "$qut" export app.qtrace -f collapsed --weight samples
[ "$(awk '{ sum += $NF } END { print sum }' app.collapsed.txt)" = 300 ] || fail "collapsed: not 300 samples"
grep -q '^traced;outer: "function";even 150$' app.collapsed.txt || fail 'collapsed: a stack of names'
grep -q '^traced;outer: "function";odd;take_samples 150$' app.collapsed.txt ||
    fail "collapsed: a function of the program: $(cat app.collapsed.txt)"
expect 0 'one thread' "$qut" export app.qtrace -f collapsed -o - --weight samples --thread "$pid"
[ "$(awk '{ sum += $NF } END { print sum }' out)" = 100 ] || fail 'one thread: not 100 samples'
expect 0 'processor time' "$qut" export app.qtrace -f collapsed -o - --weight cpu --thread "$pid"
# 99 steps of a millisecond; times are kept in units of 128 ns.
[ "$(awk '{ sum += $NF } END { print (sum > 98999000 && sum < 99001000) }' out)" = 1 ] || fail "processor time: $(cat out)"

# ---- a running or dead process's segment is a trace, too; what was cut off is told
("$traced" "$segment.killed" killed; :) >/dev/null 2>&1
expect 1 'killed' "$qut" export "$segment.killed" -f collapsed --weight samples -o killed.txt
says 'killed' 'not closed'
[ "$(awk '{ sum += $NF } END { print sum }' killed.txt)" = 300 ] || fail 'killed: not 300 samples'
expect 1 'killed, quiet' "$qut" export "$segment.killed" -f collapsed --weight samples -o killed.txt --quiet
[ ! -s err ] || fail "quiet: it says $(cat err)"

# ---- refusals: nothing is written
expect 2 'no file' "$qut" export
expect 2 'no format' "$qut" export app.qtrace
says 'no format' 'needs -f'
expect 2 'no such format' "$qut" export app.qtrace -f dot
says 'no such format' 'one of perfetto, speedscope, pprof, collapsed, nanoscope, chrome, perf-script, firefox, callgrind'
expect 2 'no such weight' "$qut" export app.qtrace -f collapsed --weight gold
expect 2 'two files' "$qut" export app.qtrace app.qtrace -f collapsed
expect 2 'no such thread' "$qut" export app.qtrace -f collapsed -o never --thread 1
says 'no such thread' 'nothing in it fits'
expect 2 'no such file' "$qut" export none.qtrace -f collapsed -o never
echo 'no trace' >text.qtrace
expect 2 'no trace' "$qut" export text.qtrace -f collapsed -o never
expect 2 'no such folder' "$qut" export app.qtrace -f collapsed -o none/never
[ ! -e never ] || fail 'a refusal wrote something'

# ---- no room, no reader: an error, and what was there stays
echo old >kept
expect 2 'disk full' "$qut" export app.qtrace -f chrome -o /dev/full
says 'disk full' 'No space left'
# shellcheck disable=SC2016 # the inner shell expands it
expect 2 'a file limit' bash -c 'ulimit -f 1; exec "$0" export app.qtrace -f chrome -o kept' "$qut"
says 'a file limit' 'File too large'
[ -z "$(find . -name '*.part')" ] || fail 'a file limit: a half file is left'
[ "$(cat kept)" = old ] || fail 'a file limit: what was there is gone'
python3 - "$qut" <<'PYTHON' || fail 'a closed pipe: no error'
import os, subprocess, sys
read, write = os.pipe()
os.close(read)
result = subprocess.run([sys.argv[1], 'export', 'app.qtrace', '-f', 'chrome', '-o', '-'], stdout=write,
                        stderr=subprocess.PIPE)
sys.exit(0 if result.returncode == 2 and b'Broken pipe' in result.stderr else 1)
PYTHON

# ---- a folder of tables
expect 0 'parquet' "$qut" export app.qtrace,host=web1,service='a b' -f parquet
for table in traces samples stacks frames; do
    [ "$(find "app.parquet/$table" -type f -path "*/date=*/service=a%20b/*.parquet" | wc -l)" = 1 ] || fail "parquet: no $table"
done
expect 0 'parquet again' "$qut" export app.qtrace,service='a b' -o app.parquet
[ "$(find app.parquet -type f | wc -l)" = 4 ] || fail 'parquet: the same trace is not the same files'
mkdir others && touch others/thesis
expect 2 'a folder of others' "$qut" export app.qtrace -f parquet -o others
says 'a folder of others' thesis
expect 2 'a file' "$qut" export app.qtrace -f parquet -o others/thesis
expect 2 'a folder to standard output' "$qut" export app.qtrace -f parquet -o -
says 'a folder to standard output' 'no place for a folder'
expect 2 'parquet has all weights' "$qut" export app.qtrace -f parquet --weight wall
says 'parquet has all weights' 'columns'
rm -r others

# ---- labels of a request
expect 0 'labels' "$qut" export app.qtrace,service=shop-front,host=h-one -f otlp -o labelled.otlp.pb.gz
for label in shop-front h-one; do
    python3 -c 'import gzip, sys; sys.exit(sys.argv[2].encode() not in gzip.open(sys.argv[1]).read())' labelled.otlp.pb.gz $label ||
        fail "labels: no $label"
done
expect 0 'labels of a format without' "$qut" export app.qtrace,service=shop-front -f pprof -o labelled.pprof.pb.gz
python3 -c 'import gzip, sys; sys.exit(b"@shop-front" not in gzip.open(sys.argv[1]).read())' labelled.pprof.pb.gz ||
    fail 'labels of a format without: the process is not called by them'
expect 2 'a label that is none' "$qut" export app.qtrace,colour=red -f pprof -o never
expect 2 'otlp of names only' "$qut" export app.qtrace -f collapsed --no-names -o never
says 'otlp of names only' 'pprof and otlp'

expect 0 'help' "$qut" export --help
[ ! -s err ] || fail 'help: not on standard output'
formats='perfetto speedscope pprof collapsed nanoscope chrome perf-script firefox callgrind replay otlp parquet'
[ "$(sed -n 's/^  \([a-z-]\{1,12\}\)  *[^ ].*/\1/p' out | sed '/^-/d' | xargs)" = "$formats" ] || fail "help: $(cat out)"

# ---- several processes in one file
second=$("$traced" "$segment.second") || fail 'the traced program failed'
expect 0 'collected' "$qut" collect --quiet "$segment" -o first.qtrace
expect 0 'collected' "$qut" collect --quiet "$segment.second" -o second.qtrace
cat first.qtrace second.qtrace >both.qtrace
for format in ${formats% replay otlp parquet} otlp; do # replay is of exact calls: calls_test.sh
    expect 0 "two processes: $format" "$qut" export both.qtrace -f "$format" --weight samples -o "both.$format"
done
grep -q '^traced;traced;outer: "function";even 300$' both.collapsed || fail "two processes: $(cat both.collapsed)"
expect 0 'info of two processes' "$qut" info both.qtrace
grep -q "process   $pid" out && grep -q "process   $second" out || fail "info of two processes: $(cat out)"
expect 0 'a table of functions' "$qut" info both.qtrace --top 2 --weight samples --blocked --locks
grep -q ' 50.00 % +- 4.00 .* take_samples$' out || fail "a table of functions: $(cat out)"
expect 2 'no rows' "$qut" info both.qtrace --top 0
mkdir both.qtrace.parts
expect 0 'an interrupted recording' "$qut" info both.qtrace
grep -q 'both.qtrace.parts' out || fail 'an interrupted recording: not said'
expect 0 'info of two processes, as JSON' "$qut" info --json both.qtrace --top 2 --blocked --locks
python3 -B - "$here/../../support" "$pid" "$second" <<'PYTHON' || fail 'two processes: a format does not tell them apart'
import json, re, sys
sys.path.insert(0, sys.argv[1])
import export_formats as formats
pids = {int(pid) for pid in sys.argv[2:]}
info = json.load(open('out'))
assert {process['pid'] for process in info['processes']} == pids and len(info['top']) == 2, info['processes']
assert {thread['pid'] for thread in info['threads']} == pids and info['blocked'] == info['locks'] == []
assert {sample['labels']['pid'] for sample in formats.read_pprof('both.pprof')['samples']} == pids
assert {int(pid) for pid in re.findall(r'^\S+ (\d+)/\d+ ', open('both.perf-script').read(), re.M)} == pids
assert {event['pid'] for event in json.load(open('both.chrome'))['traceEvents']} == pids
names = [profile['name'] for profile in json.load(open('both.speedscope'))['profiles']]
assert len(names) == 6 and {int(re.match(r'traced \((\d+)\): ', name)[1]) for name in names} == pids, names
PYTHON
head -c $(($(stat -c %s first.qtrace) + $(stat -c %s second.qtrace) / 2)) both.qtrace >cut.qtrace
expect 1 'the second one cut off' "$qut" export cut.qtrace -f collapsed --weight samples -o cut.txt
[ "$(awk '{ sum += $NF } END { print (sum >= 300) }' cut.txt)" = 1 ] || fail 'the second one cut off: the first is not whole'

# ---- real traces are what the formats are
python3 -B - "$here/../../support" <<'PYTHON' || fail 'a format does not read'
import sys
sys.path.insert(0, sys.argv[1])
import export_formats as formats
assert sum(sample['values'][0] for sample in formats.read_pprof('app.pb.gz')['samples']) == 300
assert len(formats.read_perf_script('app.perf.txt')) == 300
assert len(formats.read_speedscope('app.speedscope.json')['profiles']) == 3
assert sum(stack.entered for stack in formats.read_chrome('app.trace.json')[0].values()) > 300
formats.read_nanoscope('app.nanoscope.txt')
PYTHON

[ "$failed" = 0 ] && echo 'qut export: all as it should be'
exit "$failed"

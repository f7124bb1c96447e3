#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The qutc command from outside: exit statuses, which stream says what, and what happens to files that are not what they
# should be. Usage: cli_test.sh QUTC
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qutc=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export QUT_CACHE=$work/cache
unset XDG_CACHE_HOME
passed=0
failed=0

elf=./subject
cp "$qutc" "$elf"
other=$(readlink -f /bin/sh)

result() # NAME 0|1 WHAT...
{
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: %s\n' "$1" "${*:3}"
    fi
}

# Runs qutc; its output is in ./out and ./err, its status in $status.
run() # ARGUMENT...
{
    status=0
    "$qutc" "$@" >out 2>err </dev/null || status=$?
}

expect() # NAME STATUS STDOUT_PATTERN STDERR_PATTERN ARGUMENT...
{
    local name=$1 wanted=$2 out_pattern=$3 err_pattern=$4 good=0
    run "${@:5}"
    [ "$status" -eq "$wanted" ] || good=1
    [[ $(<out) =~ $out_pattern ]] || good=1
    [[ $(<err) =~ $err_pattern ]] || good=1
    result "$name" "$good" "status $status, wanted $wanted; stdout ($out_pattern):" "$(head -c 600 out)" \
        "; stderr ($err_pattern):" "$(head -c 600 err)"
}

check() # NAME COMMAND...
{
    local good=0
    "${@:2}" >/dev/null 2>&1 || good=1
    result "$1" "$good" "failed: ${*:2}"
}

overwrite() # FILE OFFSET BYTES
{
    # shellcheck disable=SC2059
    printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

is_json()
{
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$1"
}

json_is() # EXPRESSION, with the parsed output as d
{
    python3 -c 'import json, sys; d = json.load(open("out")); sys.exit(not eval(sys.argv[1]))' "$1"
}

# Usage.
expect 'help' 0 'Example: ' '^$' --help
expect 'version' 0 '^qutc [0-9.]+$' '^$' --version
expect 'no command' 2 '^$' 'Usage: '
expect 'unknown command' 2 '^$' '^qutc: frobnicate: not a command' frobnicate
for command in compile dump lookup stat verify lint pack unpack list; do
    expect "$command --help" 0 'Usage: qutc '"$command"'.*Example: qutc ' '^$' "$command" --help
    expect "$command: unknown option" 2 '^$' '^qutc: --frobnicate: not an option' "$command" --frobnicate
    expect "$command: unknown letter" 2 '^$' '^qutc: -Z: not an option' "$command" -Z
done
for command in compile dump lookup stat verify lint pack unpack; do
    expect "$command: no operand" 2 '^$' 'too few arguments' "$command"
done
for command in compile dump stat verify lint unpack; do
    expect "$command: missing file" 2 '^$' '^qutc: ./missing: .*No such file' "$command" ./missing
done
expect 'option without argument' 2 '^$' '^qutc: --output: needs an argument' compile "$elf" --output
expect 'no jobs' 2 '^$' '^qutc: 0: not an argument for --jobs' compile -j 0 "$elf"
expect 'bad pid' 2 '^$' '^qutc: x: not an argument for --pid' compile --pid x
expect 'bad reader' 2 '^$' '^qutc: gdb: not an argument for --against' verify --against gdb "$elf"
expect 'dump of two' 2 '^$' 'one argument too many' dump "$elf" "$elf"

# Compile: where tables go.
expect 'compile to a file' 0 '^./subject: ./a.qut: rows=[0-9]+ ' '^$' compile -o ./a.qut "$elf"
check 'the file is there' test -s a.qut
expect 'quiet' 0 '^$' '^$' compile --quiet -o quiet.qut "$elf"
check 'the same bytes again' cmp a.qut quiet.qut
check 'no temporary files are left' bash -c '! ls ./*.tmp'
mkdir directory
expect 'compile to an existing directory' 0 'directory/subject-[0-9a-f]+\.qut' '^$' compile -o directory "$elf"
expect 'compile to a directory by its slash' 0 'new/deep/subject-[0-9a-f]+\.qut' '^$' compile -o new/deep/ "$elf"
expect 'several inputs go to a directory' 0 'total: 2 compiled' '^$' compile -o several "$elf" "$other"
check 'two tables' bash -c '[ "$(ls several/*.qut | wc -l)" -eq 2 ]'
expect 'several inputs do not fit a file' 2 '^$' 'not a directory|File exists' compile -o a.qut "$elf" "$other"
expect 'not writable' 2 '^$' '^qutc: ./subject: cannot read or write: .*nowhere/x.qut' compile -o nowhere/x.qut "$elf"
expect 'small' 0 'bytes=' '^$' compile --small -o small.qut "$elf"
expect 'compile of a table' 2 '^$' 'a table already' compile a.qut
expect 'compile JSON' 0 '"status": "compiled"' '^$' compile --json -o j.qut "$elf"
check 'compile JSON parses' is_json out

# The cache.
expect 'compile into the cache' 0 'cache/[a-z0-9_]+-[0-9a-f]+\.qut: rows=' '^$' compile "$elf"
expect 'the cache keeps it' 0 ': up to date' '^$' compile "$elf"
expect 'unless forced' 0 'rows=' '^$' compile --force "$elf"
expect 'a small one is another' 0 'rows=' '^$' compile --small "$elf"
expect 'which is kept too' 0 ': up to date' '^$' compile --small "$elf"
expect 'until a plain one is asked for' 0 'rows=' '^$' compile "$elf"
cached=$(echo cache/*.qut)
overwrite "$cached" 300 'spoiled'
expect 'a spoiled table in the cache is made again' 0 'rows=' '^$' compile "$elf"
check 'and is sound' cmp a.qut "$cached"
expect 'list the cache' 0 '^[a-z0-9_]+-[0-9a-f]+\.qut [a-z0-9_]+ text=[0-9]+ rows=[0-9]+ bytes=[0-9]+ identity=' '^$' list
QUT_CACHE=$work/none expect 'list a cache that is not there' 0 '^$' '^$' list
(
    unset QUT_CACHE
    HOME=$work/home XDG_CACHE_HOME='' "$qutc" compile -q "$elf"
    HOME=$work/home XDG_CACHE_HOME=$work/xdg "$qutc" compile -q "$elf"
)
check 'below HOME' bash -c 'ls home/.cache/qut/tables/*.qut'
check 'below XDG_CACHE_HOME' bash -c 'ls xdg/qut/tables/*.qut'

# A batch with broken files goes on.
mkdir -p batch/inner
cp "$elf" batch/inner/good
head -c 3000 "$elf" >batch/cut
printf 'text' >batch/readme
expect 'a batch with a broken file' 1 'total: 1 compiled.* 1 failed' '^qutc: batch/cut: ' compile -o b batch
expect 'the same in JSON' 1 '"error": "' '^qutc: batch/cut: ' compile --json -o b batch
check 'JSON with an error parses' json_is 'len(d) == 2 and sum("error" in x for x in d) == 1'
expect 'a missing file in a batch' 1 'total: 1 compiled' '^qutc: ./missing: ' compile -o b ./missing "$elf"
expect 'nothing but broken files' 2 '' 'qutc: batch/cut: ' compile -o b batch/cut batch/readme
mkdir empty
expect 'an empty directory' 2 '^$' 'no ELF files' compile -o b empty
expect 'one worker' 1 'total: 1 compiled' '' compile -j 1 -o b batch
expect 'more workers than files' 1 'total: 1 compiled' '' compile -j 64 -o b batch
expect 'not ELF' 2 '^$' '^qutc: batch/readme: not an ELF file' compile batch/readme
sleep 60 &
sleeper=$!
# Not before it has become what it will be, with its libraries.
for _ in $(seq 200); do
    case $(readlink "/proc/$sleeper/exe") in
    */sleep | */coreutils) grep -q 'r-xp.*libc[.]so' "/proc/$sleeper/maps" && break ;;
    esac
    sleep 0.05
done
run compile --pid "$sleeper" -o process
kill "$sleeper"
check 'a live process' bash -c "[ $status -eq 0 ] && [ \"\$(ls process/*.qut | wc -l)\" -ge 2 ]"

# Dump and lookup.
row='^0x[0-9a-f]+-0x[0-9a-f]+ (cfa=.* ra=.* fp=|refused: [A-Z_]+)'
expect 'dump' 0 "$row" '^$' dump a.qut
cp out dump.txt
check 'every line is a row' bash -c "! grep -vE '$row' dump.txt"
expect 'dump of the ELF' 0 "$row" '^$' dump "$elf"
check 'is the same' cmp out dump.txt
expect 'dump of the small table' 0 "$row" '^$' dump small.qut
check 'says the same' cmp out dump.txt
expect 'dump --all' 0 ' hole' '^$' dump --all a.qut
mapfile -t addresses < <(sed 's/-.*//' dump.txt | awk 'NR % 97 == 1' | head -40)
expect 'lookup in the table' 0 "^${addresses[0]} cfa=" '^$' lookup a.qut "${addresses[@]}"
cp out lookup.txt
check 'one line an address' bash -c "[ \"\$(wc -l <lookup.txt)\" -eq ${#addresses[@]} ]"
expect 'lookup in the ELF' 0 "^${addresses[0]} cfa=" '^$' lookup "$elf" "${addresses[@]}"
check 'gives the same' cmp out lookup.txt
check 'and is what dump says' bash -c "sed 's/-0x[0-9a-f]*//' dump.txt | grep -Fxf lookup.txt | sort -u |
    cmp - <(sort -u lookup.txt)"
printf '%s\n' "${addresses[@]}" >addresses.txt
check 'addresses from standard input' bash -c "'$qutc' lookup a.qut - <addresses.txt | cmp - lookup.txt"
decimal=$((addresses[0]))
expect 'decimal' 0 "^$decimal cfa=" '^$' lookup a.qut "$decimal"
expect 'a hole' 1 '^0x0 hole$' '^$' lookup a.qut 0x0
expect 'the last address there is' 1 'hole' '^$' lookup a.qut 0xffffffffffffffff
for bad in 0x 12ab x '' 0x10000000000000000 -5; do
    expect "not an address: $bad" 2 '^$' 'not an address|not an option' lookup a.qut "$bad"
done

# Stat.
expect 'stat' 0 'rows +[0-9]+, [0-9]+ distinct rules' '^$' stat a.qut
expect 'stat JSON' 0 '' '^$' stat --json a.qut "$elf"
check 'both agree' json_is 'all(d[0][k] == d[1][k] for k in ("rows", "rules", "table_bytes", "source_bytes", "covered_bytes"))'
check 'bytes of the text add up' json_is \
    'd[0]["covered_bytes"] + d[0]["refused_bytes"] + d[0]["hole_bytes"] == d[0]["text_bytes"]'
check 'times of the ELF only' json_is '"compile_ms" in d[1] and "compile_ms" not in d[0]'
expect 'stat with one bad file' 1 'distinct rules' '^qutc: ./missing: ' stat a.qut ./missing
expect 'the same in JSON' 1 '"error": "' '^qutc: ./missing: ' stat --json a.qut ./missing
check 'parses' json_is 'len(d) == 2 and d[0]["file"] == "./missing" and d[1]["rows"] > 0'
expect 'nothing but a bad file in JSON' 2 '^\[\{"file": "./missing", "error": "' '^qutc: ./missing: ' stat --json ./missing
nasty=$'na"s\\ty\n\xff'
cp "$elf" "$nasty"
expect 'stat JSON of a nasty name' 0 '' '^$' stat --json "$nasty"
check 'parses' is_json out
expect 'a nasty name in an error' 2 '^$' '^qutc: x\?y: ' stat $'x\ny'

# Verify.
numbers='rows=[0-9]+ exact=[0-9]+ refused=[0-9]+ wrong=0'
expect 'verify' 0 "(^|"$'\n'")./subject: $numbers\$" '^$' verify "$elf"
expect 'verify quiet' 0 "^./subject: $numbers\$" '^$' verify --quiet "$elf"
expect 'verify the given table' 0 "^./subject: $numbers\$" '^$' verify --quiet --table small.qut "$elf"
expect 'verify two' 0 "total: files=2 $numbers" '^$' verify --quiet --against libdw "$elf" "$other"
expect 'verify JSON' 0 '"wrong": 0' '^$' verify --json "$elf"
check 'verify JSON parses' is_json out
expect 'a table of another file' 2 '^$' '^qutc: ./subject: table refused: made for another file' verify --table \
    "$(echo several/"$(basename "$other")"-*.qut)" "$elf"
expect '--table with two files' 2 '^$' 'exactly one ELF' verify --table a.qut "$elf" "$other"
python3 "$here/spoil_rules.py" a.qut wrong.qut
expect 'wrong rules' 1 ': wrong: 0x[0-9a-f]+-0x.* exact=[0-9]+ refused=[0-9]+ wrong=[1-9][0-9]*$' '^$' verify \
    --table wrong.qut "$elf"
expect 'wrong rules in JSON' 1 '"kind": "wrong"' '^$' verify --json --table wrong.qut "$elf"

# Tables that are not what they should be.
size=$(stat -c %s a.qut)
refused() # NAME PATTERN
{
    expect "$1: stat" 2 '^$' "^qutc: ./bad.qut: table refused: $2: at 0x" stat ./bad.qut
    expect "$1: dump" 2 '^$' "^qutc: ./bad.qut: table refused: $2: at 0x" dump ./bad.qut
    expect "$1: lookup" 2 '^$' "^qutc: ./bad.qut: table refused: $2: at 0x" lookup ./bad.qut 0x1000
    expect "$1: pack" 2 '^$' "^qutc: ./bad.qut: table refused: $2: at 0x" pack -o bad.qutz ./bad.qut
    cp a.qut bad.qut
}
cp a.qut bad.qut
overwrite bad.qut $((size / 2)) 'XYXYXYXY'
refused 'one byte changed' 'checksum mismatch'
truncate -s $((size / 2)) bad.qut
refused 'half a table' 'not as long as its header says'
truncate -s 20 bad.qut
refused 'a stump' 'too short for a table'
truncate -s 0 bad.qut
refused 'an empty table' 'too short for a table'
printf 'more' >>bad.qut
refused 'more than a table' 'not as long as its header says'
overwrite bad.qut 8 '\x63'
refused 'a later version' 'made by a newer QUT: use that one, or make it again with qutc compile'
overwrite bad.qut 8 '\x00'
refused 'an earlier version' 'made by an older QUT: make it again with qutc compile'
overwrite bad.qut 0 'Z'
refused 'not a table by its first byte' 'not a QUT table'

# Bundles.
expect 'pack' 0 '^all.qutz: tables=2 bytes=' '^$' pack -o all.qutz several
expect 'pack without -o' 2 '^$' '-o BUNDLE is missing' pack several
expect 'unpack' 0 'unpacked/' '^$' unpack -o unpacked all.qutz
check 'gives the same tables' diff -r several unpacked
name=$(basename several/subject-*.qut)
expect 'unpack one' 0 "^one/$name\$" '^$' unpack -o one all.qutz "$name"
expect 'unpack one that is not there' 2 '^$' '^qutc: nothing.qut: not in this bundle' unpack -o one all.qutz nothing.qut
expect 'list a bundle' 0 "$name [a-z0-9_]+ text=" '^$' list all.qutz
cp out bundle.txt
expect 'list a directory' 0 "$name" '^$' list several
check 'says the same' cmp out bundle.txt
expect 'list JSON' 0 '' '^$' list --json all.qutz
check 'list JSON parses' json_is 'len(d) == 2 and d[0]["rows"] > 0'
expect 'two tables of one name' 2 '^$' 'two tables with the name a.qut' pack -o x.qutz a.qut ./a.qut
expect 'a bundle is no table' 2 '^$' 'a bundle; take tables out' stat all.qutz
expect 'a table is no bundle' 2 '^$' 'not a bundle' list a.qut
head -c 3000 all.qutz >cut.qutz
expect 'half a bundle' 2 '^$' 'not as long as its header says' unpack cut.qutz
cp all.qutz bad.qutz
overwrite bad.qutz 70 'XY'
expect 'a spoiled directory' 2 '^$' 'checksum mismatch' unpack bad.qutz
cp all.qutz bad.qutz
overwrite bad.qutz $(($(stat -c %s bad.qutz) - 2000)) 'XYXYXYXYXYXYXYXYXYXY'
expect 'a spoiled frame costs its table only' 1 '^rest/' '^qutc: .*: ' unpack -o rest bad.qutz

# What is no file stays what it is.
mkfifo pipe
timeout 60 cat pipe >through &
expect 'into a pipe' 0 '' '^$' compile -q -o pipe "$qutc"
wait "$!"
expect 'into a file' 0 '' '^$' compile -q -o beside.qut "$qutc"
check 'a pipe stays a pipe' test -p pipe
check 'the same bytes' cmp through beside.qut

# Standard output.
status=0
"$qutc" dump a.qut 2>err >/dev/full || status=$?
result 'a full disk' $((status != 2)) "status $status" "$(<err)"
check 'is said' grep -q '^qutc: standard output: cannot write' err
"$qutc" dump a.qut 2>err | head -n 1 >out || true
check 'a closed pipe is no error' test ! -s err -a -s out

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

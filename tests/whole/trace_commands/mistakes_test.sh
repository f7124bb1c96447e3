#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What people do wrong with collect, info, export and report: each gets one line that says what, exit status 2, and
# nothing is written or lost. Usage: mistakes_test.sh QUT TRACED
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
traced=$(readlink -f "$2")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
cd "$work"
segment=/dev/shm/qut-mistakes-test.$$
trap 'rm -f "$segment"; clean_up' EXIT
"$traced" "$segment" >/dev/null || {
    echo 'SKIP: nothing can be recorded here'
    exit 77
}
expect 'collected' 0 '^$' ' kB, ' collect "$segment" -o app.qtrace
cp app.qtrace kept.qtrace
mkdir folder
: >empty
echo 'no trace of anything, but longer than a magic number' >text
mkfifo pipe

files()
{
    local all=(*)
    printf '%s ' "${all[@]}"
}

# Fails with one line, "qut: NAME: WHY", and leaves everything as it was. Where help is may be a second one.
refuses() # NAME WHAT_IS_SAID ARGUMENT...
{
    local before lines
    : >out
    : >err
    before=$(files)
    expect "$1" 2 '^$' "^qut: $2" "${@:3}"
    mapfile -t lines <err
    [ ${#lines[@]} -lt 2 ] || [[ ${lines[1]} == *--help && ${#lines[@]} -eq 2 ]] || result "$1: one line" 1 "$(<err)"
    result "$1: nothing is written" "$([ "$before" = "$(files)" ] && cmp -s app.qtrace kept.qtrace && echo 0 || echo 1)" \
        "$before became $(files)"
}

# ---- what is to be read
for command in 'info' 'export -f collapsed' 'report'; do
    read -ra words <<<"$command"
    refuses "$command: no such file" 'none.qtrace: .*No such file' "${words[@]}" none.qtrace
    refuses "$command: a directory" 'folder: .*is a directory' "${words[@]}" folder
    refuses "$command: an empty file" 'empty: .*is empty' "${words[@]}" empty
    refuses "$command: something else" 'text: .*no trace' "${words[@]}" text
    refuses "$command: a pipe" 'pipe: .*is no regular file' "${words[@]}" pipe
    refuses "$command: a device" '/dev/zero: .*is no regular file' "${words[@]}" /dev/zero
    refuses "$command: no file" '.*needs a FILE: there is no qut\.qtrace' "${words[@]}"
    refuses "$command: an option of another" '--fd: not an option of this command' "${words[@]}" --fd 1 app.qtrace
done
refuses 'collect: no such file' 'none: .*No such file' collect none -o new
refuses 'collect: a directory' 'folder: .*is a directory' collect folder -o new
refuses 'collect: an empty file' 'empty: .*is empty' collect empty -o new
refuses 'collect: something else' 'text: .*no segment' collect text -o new
refuses 'collect: a pipe' 'pipe: .*is no regular file' collect pipe -o new
refuses 'collect: what was collected' 'app.qtrace: .*is a .qtrace file already' collect app.qtrace -o new
refuses 'collect: a closed descriptor' 'descriptor 77: .*Bad file descriptor' collect --fd 77 -o new
refuses 'collect: an option of another' '--thread: not an option of this command' collect "$segment" --thread 1 -o new

# ---- where it is to be written
for command in 'export -f collapsed' 'export -f pprof' 'report'; do
    read -ra words <<<"$command"
    refuses "$command: onto itself" './app.qtrace: is the trace itself' "${words[@]}" app.qtrace -o ./app.qtrace
    ln app.qtrace link
    refuses "$command: onto itself by a link" 'link: is the trace itself' "${words[@]}" app.qtrace -o link
    rm link
    refuses "$command: a directory" 'folder: .*[Ii]s a directory' "${words[@]}" app.qtrace -o folder
    refuses "$command: no such directory" 'none/new: .*No such file' "${words[@]}" app.qtrace -o none/new
    refuses "$command: below a file" 'text/new: .*Not a directory' "${words[@]}" app.qtrace -o text/new
    refuses "$command: no room" '/dev/full: .*No space left' "${words[@]}" app.qtrace -o /dev/full
done
refuses 'collect: a directory' 'folder: .*[Ii]s a directory' collect "$segment" -o folder
refuses 'collect: no such directory' 'none/new: .*No such file' collect "$segment" -o none/new
refuses 'collect: a device' '/dev/null: .*is no regular file' collect "$segment" -o /dev/null
refuses 'collect: standard output' '-o -: is no file' collect "$segment" -o -
refuses 'export: no such format' 'dot: not an argument for --format: .*perf-script' export app.qtrace -f dot
refuses 'export: nearly a format' '.*did you mean collapsed\? See qut export --help' export app.qtrace -f colapsed
refuses 'report: nearly an option' '.*did you mean --output\? See' report app.qtrace --outptu new
refuses 'nearly a command' 'reprot: not a command; did you mean report\? See qut --help' reprot app.qtrace
refuses 'no command at all' 'frobnicate: not a command; see qut --help' frobnicate
refuses 'export: a name that tells nothing' 'export: needs -f FORMAT: the name' export app.qtrace -o new

# ---- without a FILE: what qut record made last here, which is said
cp app.qtrace qut.qtrace
expect 'info of the last recording' 0 '^qut.qtrace:' '^qut: info of qut.qtrace$' info
expect 'report of the last recording' 0 '^$' '^qut: report of qut.qtrace' report
check 'is beside it' test -s qut.html
expect 'export of the last recording' 0 '^..*$' '^$' export -f collapsed -o - -q
rm qut.qtrace qut.html

# ---- a file that is there is replaced, with its links, and keeps what it had where that fails
echo old >target
ln -s target link
expect 'through a link' 0 '^$' '' export app.qtrace -f collapsed -o link -q
check 'the link stays' test -L link
check 'what it names is new' grep -q 'outer' target
"$qut" export app.qtrace -f pprof -o - -q | cat >profile
check 'pprof to a pipe' test -s profile
rm profile
expect 'lines' 0 . '' export app.qtrace -f collapsed -o - --lines --no-lines -q
expect 'lines of a report' 0 . '' report app.qtrace -o - --no-lines --lines -q

# ---- a terminal
terminal() # ARGUMENT...: standard output is a terminal
{
    python3 - "$qut" "$@" >out <<'PYTHON'
import os, pty, subprocess, sys
try:
    ours, theirs = pty.openpty()
except OSError as error:
    print(f'no terminal: {error}')
    sys.exit()
command = subprocess.Popen(sys.argv[1:], stdout=theirs, stderr=subprocess.PIPE)
os.close(theirs)
try:
    while piece := os.read(ours, 65536):
        sys.stdout.write(piece.decode())
except OSError:  # all was read
    pass
said = command.communicate()[1].decode()
print(command.returncode, said, end='')
PYTHON
}
export TERM=xterm
terminal info --blocked app.qtrace
bold=$'\033[1m' plain=$'\033[0m'
if ! grep -q '^no terminal' out; then
    check 'heads in bold on a terminal' grep -qF "  $bold    total ms" out
    check 'which ends' grep -qF "innermost first$plain" out
    NO_COLOR=1 terminal info --blocked app.qtrace
    check 'not where NO_COLOR says no' bash -c '! grep -q "$1" out' _ $'\033'
    TERM=dumb terminal info --blocked app.qtrace
    check 'nor on one that knows none' bash -c '! grep -q "$1" out' _ $'\033'
    expect 'nor to a file' 0 '^[^[:cntrl:]]*:' '^$' info app.qtrace
fi
terminal export app.qtrace -f collapsed -o - --quiet
if grep -q '^no terminal' out; then
    skip 'to a terminal' "$(cat out)"
else
    check 'text to a terminal' grep -q '^0 $' out
    for format in pprof perfetto; do
        terminal export app.qtrace -f $format -o -
        check "$format to a terminal" grep -q '^2 qut: standard output: is a terminal' out
    done
fi

# ---- what needs other file systems, and another user
if [ "$(id -u)" -ne 0 ] || ! unshare --mount true 2>/dev/null; then
    skip 'full and read-only file systems' 'needs root'
    finish
    exit
fi
mkdir disk
export qut segment
# shellcheck disable=SC2016 # the inner shell expands it
unshare --mount bash -c '
    mount -t tmpfs -o size=16k none disk || exit 77
    head -c 15360 /dev/zero >disk/filler
    "$qut" collect "$segment" -o disk/full.qtrace 2>collect.err; echo $? >collect.status
    cp disk/full.qtrace full.qtrace
    rm disk/*
    head -c 8192 /dev/zero >disk/filler
    echo old >disk/kept
    "$qut" report app.qtrace -o disk/kept 2>report.err; echo $? >report.status
    ls disk >report.list
    cp disk/kept report.kept
    mount -o remount,ro disk
    "$qut" export app.qtrace -f chrome -o disk/new 2>export.err; echo $? >export.status
    "$qut" collect "$segment" -o disk/new 2>again.err; echo $? >again.status
' || true
if [ ! -s again.status ]; then
    skip 'full and read-only file systems' 'mounting is not allowed'
else
    check 'collect, no room' grep -q 'could not be written.*No space left' collect.err
    check 'collect, no room: status' grep -qx 1 collect.status
    expect 'collect, no room: the file' 2 '^$' 'is empty' info full.qtrace
    check 'report, no room' grep -q '^qut: disk/kept: .*No space left' report.err
    check 'report, no room: status' grep -qx 2 report.status
    check 'report, no room: what was there stays' grep -qx old report.kept
    check 'report, no room: nothing else' test "$(<report.list)" = $'filler\nkept'
    check 'export, read-only' grep -q '^qut: disk/new: .*Read-only file system' export.err
    check 'export, read-only: status' grep -qx 2 export.status
    check 'collect, read-only' grep -q '^qut: disk/new: .*Read-only file system' again.err
    check 'collect, read-only: status' grep -qx 2 again.status
fi
# Without /proc a file has a name from the start.
rm -f target link
# shellcheck disable=SC2016
if unshare --mount bash -c 'umount -l /proc && [ ! -e /proc/self/fd ] && echo old >named &&
    "$qut" export app.qtrace -f collapsed -o named -q && "$qut" export app.qtrace -f collapsed -o fresh -q' 2>unshare.err; then
    check 'without /proc' cmp named fresh
    check 'without /proc: nothing else' test -z "$(find . -name '*.part')"
else
    skip 'without /proc' "$(head -n 1 unshare.err)"
fi
if command -v setpriv >/dev/null; then
    chmod 755 "$work"
    chmod 644 app.qtrace
    cp app.qtrace secret.qtrace
    chmod 600 secret.qtrace
    other=(setpriv --reuid=65534 --regid=65534 --clear-groups "$qut")
    if "${other[@]}" info app.qtrace >/dev/null 2>&1; then
        for command in 'info' 'export -f collapsed' 'report'; do
            read -ra words <<<"$command"
            status=0
            "${other[@]}" "${words[@]}" secret.qtrace >out 2>err || status=$?
            check "$command: not readable" grep -q '^qut: secret.qtrace: .*Permission denied' err
            check "$command: not readable: status" test $status -eq 2
        done
        status=0
        "${other[@]}" report app.qtrace -o folder/new.html 2>err || status=$?
        check 'report: not writable' grep -q '^qut: folder/new.html: .*Permission denied' err
        check 'report: not writable: status' test $status -eq 2
    else
        skip 'files of others' "$qut cannot be run by others"
    fi
fi
finish

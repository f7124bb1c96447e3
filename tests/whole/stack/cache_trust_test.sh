#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What another user's process says of itself spoils no table of anybody else: a program with libc's build-id, looked at by
# root; folders and tables that another user may write. Usage: cache_trust_test.sh QUT QUTC SUBJECT
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1") qutc=$(readlink -f "$2") subject_program=$(readlink -f "$3")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
cd "$work"
nobody=65534
if [ "$(id -u)" -ne 0 ] || ! setpriv --reuid $nobody --regid $nobody --clear-groups true 2>/dev/null; then
    echo 'SKIP: needs root and setpriv, to be two users'
    exit 77
fi
chmod 755 "$work"
libc=$(ldd "$subject_program" | sed -n 's/.*libc\.so[^ ]* => \([^ ]*\) .*/\1/p')
id=$(readelf -n "$libc" | sed -n 's/.*Build ID: //p')
own_id=$(readelf -n "$subject_program" | sed -n 's/.*Build ID: //p')
if [ -z "$id" ] || [ ${#id} -ne ${#own_id} ]; then
    echo "SKIP: build-ids of libc ($id) and of a program here ($own_id) are not of one length"
    exit 77
fi
name=$(uname -m)-$id.qut

claim() # FILE OWNER MODE: a program that says that it is libc
{
    python3 - "$subject_program" "$1" "$own_id" "$id" <<'END'
import sys
source, target, own, other = sys.argv[1:]
data = open(source, "rb").read()
assert data.count(bytes.fromhex(own)) == 1
open(target, "wb").write(data.replace(bytes.fromhex(own), bytes.fromhex(other)))
END
    chmod "$3" "$1"
    chown "$2" "$1"
}

# Its pid in $pid.
begin() # FILE UID
{
    mkfifo "in-$1"
    setpriv --reuid "$2" --regid "$2" --clear-groups "./$1" <"in-$1" >"out-$1" &
    pid=$!
    subjects+=("$pid")
    # shellcheck disable=SC2034 # it is held open
    exec {hold}>"in-$1"
    until grep -q ready "out-$1"; do sleep 0.05; done
}

look() # NAME CACHE
{
    run stack -p "$pid" --cache "$2"
    result "$1: a look" $((status == 0 ? 0 : 1)) "status $status" "$(head -c 600 "$work/err")"
}

cp "$subject_program" honest
begin honest 0
honest=$pid
look 'before' clean
check "libc's table is there" test -s "clean/$name"
cp "$work/out" true-stacks

same_stacks() # NAME
{
    local good=0
    diff <(sed -n 's/.* in //p; s/^ *#[0-9]* *0x[0-9a-f]* //p' true-stacks) \
        <(sed -n 's/.* in //p; s/^ *#[0-9]* *0x[0-9a-f]* //p' "$work/out") >difference || good=1
    result "$1: stacks" $good "differ: $(head -5 difference)"
}

# ---- what a file says of itself

claim evil $nobody 755
"$qutc" compile -q -o evil.qut evil
begin evil $nobody
look 'a liar' cache
result 'a liar: nothing under the name that it claims' "$([ ! -e "cache/$name" ] && echo 0 || echo 1)" "cache/$name is there"
check "a liar: filed with its owner's" test -s "cache/of-$nobody/$name"
inode=$(stat -c %i "cache/of-$nobody/$name" || true)
look 'a liar, again' cache
check 'a liar, again: found' test "$inode" = "$(stat -c %i "cache/of-$nobody/$name")"
pid=$honest
look 'behind a liar' cache
check "behind a liar: libc's table" cmp "cache/$name" "clean/$name"
same_stacks 'behind a liar'

claim loose 0 757
begin loose $nobody
look 'a file that others may write' cache-loose
result 'a file that others may write: not kept' "$([ -z "$(find cache-loose -name "$name")" ] && echo 0 || echo 1)" 'kept'

claim gone $nobody 755
begin gone $nobody
rm gone
look 'a file that is gone' cache-gone
result 'a file that is gone: not under the name that it claims' "$([ ! -e "cache-gone/$name" ] && echo 0 || echo 1)" 'it is there'

export QUT_CACHE=$work/cache-named
"$qutc" compile -q evil
check 'a file that root names: with its owner' test -s "cache-named/of-$nobody/$name"
"$qutc" warm-up -q evil -o cache-warm >/dev/null 2>&1 || true
result 'warm-up: not under the name that it claims' "$([ ! -e "cache-warm/$name" ] && echo 0 || echo 1)" "it is there"
unset QUT_CACHE

# ---- folders and tables of others

mkdir anothers open-to-all
cp evil.qut "anothers/$name"
cp evil.qut "open-to-all/$name"
chown -R $nobody anothers
chmod 777 open-to-all
pid=$honest
look 'a folder of another user' anothers
same_stacks 'a folder of another user'
check 'a folder of another user: it is said' grep -q 'belongs to another user' "$work/err"
look 'a folder for all' open-to-all
same_stacks 'a folder for all'
check 'a folder for all: it is said' grep -q 'others may put tables' "$work/err"

mkdir mixed
cp evil.qut "mixed/$name"
chown $nobody "mixed/$name"
look "a table of another user's" mixed
same_stacks "a table of another user's"
check "a table of another user's: made anew" cmp "mixed/$name" "clean/$name"

# ---- the home that sudo leaves

mkdir -p home/.cache/qut/tables
for folder in home/.cache/qut/tables home/.cache/qut; do cp evil.qut "$folder/left-by-nobody.qut"; done
chown -R $nobody home
for variable in HOME XDG_CACHE_HOME; do
    value=$work/home
    [ $variable = HOME ] || value=$work/home/.cache
    env -u QUT_CACHE -u XDG_CACHE_HOME "$variable=$value" "$qutc" list >listed 2>&1 || true
    result "$variable of another user" "$(grep -q left-by-nobody listed && echo 1 || echo 0)" "$(head -3 listed)"
done
check 'of the user itself' bash -c \
    "env -u QUT_CACHE -u XDG_CACHE_HOME HOME=$work/home setpriv --reuid $nobody --regid $nobody --clear-groups '$qutc' list | grep -q left-by-nobody"

printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed -eq 0 ]

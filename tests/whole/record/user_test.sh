#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs that become another user, or find that the agent's file is gone: followed where they can be, else left alone
# without a word from the loader.
# Usage: user_test.sh QUT SUBJECT AGENT
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
s=$(readlink -f "$2")
agent=$(readlink -f "$3")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
export QUT_CACHE=$work/cache
cd "$work"
chmod 711 "$work" # made by mktemp, for us alone
mkdir -m 700 home
mkdir -m 755 open place
export TMPDIR=$work/place
unset XDG_RUNTIME_DIR
cp "$agent" home/
cp "$agent" "$s" open/
subject=$work/open/$(basename "$s")

says() { "$here/trace_says.py" "$qut" trace "$1"; }
said_nothing() { [ ! -s words ]; }
left_over() { ls place; }
record() # COMMAND...: `out`, `words` of all but the recorder, `trace`
{
    rm -f trace*
    "$qut" record -q -o trace -- "$@" >out 2>words || true
}

# ---- a file that is taken away
export QUT_AGENT_PATH=$work/open/libqut-agent.so
for how in execv posix_spawn; do
    cp "$agent" open/
    record sh -c "$subject start execv /bin/true; rm $QUT_AGENT_PATH; exec $subject start $how $subject"
    check "$how: the loader says nothing" said_nothing
    check "$how: the program ran" grep -q 'status ' out
    check "$how: and is counted" says 'notes.get("not-followed-unreadable", 0) >= 1'
done

# ---- another user
if [ "$(id -u)" -ne 0 ]; then
    skip 'another user' 'not root'
    finish
    exit
fi
become='setpriv --reuid 65534 --clear-groups'
export QUT_AGENT_PATH=$work/home/libqut-agent.so
# shellcheck disable=SC2086
record $become "$subject" works
check 'the loader says nothing' said_nothing
check 'the program ran' grep -q "done" out
check 'and is recorded' says 'any("works" in p["command"] and p["present_samples"] > 0 for p in processes)'

# The copy is gone, and its functions have names all the same.
# shellcheck disable=SC2086
rm -f trace* && sleep 1 | "$qut" record -q --sync all -o trace -- $become "$subject" sleeps >out 2>words || true
"$qut" export -f collapsed --kind io -o stacks trace 2>>words
check 'its calls have names' grep -q ";read " stacks
check 'all of them' test "$(grep -c 'libqut-agent.so+0x' stacks)" -eq 0

# What it may load it may not change, nor put another file in its place.
cat >open/try <<'END'
PATH=/usr/bin:/bin # ours may lie where that user may not go
file=$(echo "$LD_PRELOAD" | tr ':' '\n' | grep libqut-agent)
folder=${file%/*}
unset LD_PRELOAD
(echo x >"$file") 2>/dev/null && echo written
chmod 777 "$file" 2>/dev/null && echo changed
rm -f "$file" 2>/dev/null && echo removed
mv "$folder" "${folder}x" 2>/dev/null && echo moved
touch "$folder/x" 2>/dev/null && echo added
ls "$folder" >/dev/null 2>&1 && echo listed
stat -c '%a %u' "$file" "$folder"
END
# shellcheck disable=SC2086
record $become sh "$work/open/try"
check 'another user cannot change it' test "$(tr '\n' ' ' <out)" = '444 0 711 0 '

# A place that another user could replace is none; nor is one that not all can reach.
mkdir -m 777 wide
for place in wide home; do
    # shellcheck disable=SC2016
    TMPDIR=$work/$place record sh -c 'echo $LD_PRELOAD'
    check "$place is no place for it" test "$(grep -c "$work" out)" -eq 0
done

# One that needs no copy gets none.
QUT_AGENT_PATH=$work/open/libqut-agent.so
cp "$agent" open/
# shellcheck disable=SC2016
record sh -c 'echo $LD_PRELOAD'
check 'one that all may read stays where it is' grep -qx "$QUT_AGENT_PATH" out

# ---- the copy goes with the recorder; but what lives on, and begins another program, is not to hear of it
check 'nothing stays behind' test -z "$(left_over)"
QUT_AGENT_PATH=$work/home/libqut-agent.so
rm -f trace*
# What was forked in a recorder's last moment, and has not said that it is there, hears of it all the same.
"$qut" record -q -o trace -- sh -c "(until [ -e go ]; do sleep 0.05; done; exec $subject works) >later 2>&1 & sleep 0.3" || true
touch go
check 'what lives on runs' timeout 60 sh -c 'until grep -q done later; do sleep 0.05; done'
check 'and hears nothing' test "$(cat later)" = 'done'
QUT_AGENT_PATH=$work/open/libqut-agent.so
record true
check 'the next recorder takes it away' test -z "$(left_over)"
finish

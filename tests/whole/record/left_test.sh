#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs that the agent cannot come along to: they run as without us, and are counted, with the reason.
# Usage: left_test.sh QUT SUBJECT
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
s=$(readlink -f "$2")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
export QUT_CACHE=$work/cache
cd "$work"

counts() # NAME EXPRESSION COMMAND...: of notes; and the command's own output is what it is without us
{
    local good=0
    "${@:3}" >plain 2>&1 || true
    "$qut" record -q -o trace "${@:3}" >recorded 2>&1 || true
    cmp plain recorded >"$work/says" 2>&1 || good=1
    "$here/trace_says.py" "$qut" trace "$2" >>"$work/says" 2>&1 || good=1
    result "$1" "$good" "$(head -c 1500 "$work/says")" "$(head -c 300 recorded)"
    rm -f trace*
}

one() # REASON
{
    printf 'notes["processes-not-followed"] == notes.get("not-followed-%s") == 1' "$1"
}
none='notes["processes-not-followed"] == 0'

cat >hello.c <<'END'
#include <stdio.h>
int main(void)
{
    puts("hello");
    return 7;
}
END
cc() { "$@" 2>/dev/null; }
cc gcc hello.c -o dynamic
printf '#!%s/thirty_two\n' "$work" >script
chmod +x script
ways='posix_spawn posix_spawnp execv execvp execle fexecve execveat empty'
for how in $ways; do
    counts "$how: one that is followed" "$none" "$s" start "$how" ./dynamic
    counts "$how: one that is not there" "$none" "$s" start "$how" ./missing
done
counts 'a path that is no pointer' "$none" "$s" start nowhere ./dynamic
counts 'an environment of its own' "$(one environment)" "$s" start clean ./dynamic

if cc gcc -static hello.c -o static; then
    for how in $ways; do
        counts "$how: static" "$(one static)" "$s" start "$how" ./static
    done
    counts 'found in PATH' "$(one static)" env PATH="$work:$PATH" "$s" start execvp static
    expect 'said at the end' 0 '^hello' ': 2 processes were not followed: 2 static' \
        record -o two sh -c './static; ./static; true'
    expect 'not without children' 0 '^hello' 'in 1 processes' \
        record --no-children -o alone sh -c './static; true'
    exec {writing}>>static
    for how in $ways; do
        counts "$how: one that exec refuses" "$none" "$s" start "$how" ./static
    done
    exec {writing}>&-
else
    skip 'static' 'no static libc'
fi
# The loader must be there as well: else there is no such message.
if cc i686-linux-gnu-gcc hello.c -o thirty_two && ./thirty_two >out || [ $? -eq 7 ]; then
    for how in $ways; do
        counts "$how: 32-bit" "$(one machine)" "$s" start "$how" ./thirty_two
    done
    counts 'a script of it' "$(one machine)" "$s" start execv ./script
    counts 'from a shell' "$(one machine)" sh -c './thirty_two; true'
else
    skip '32-bit' 'no i686-linux-gnu-gcc, or no loader'
fi
if cc musl-gcc hello.c -o musl; then
    counts 'another C library' "$(one libc)" "$s" start execv ./musl
else
    skip 'musl' 'no musl-gcc'
fi
if [ "$(id -u)" -eq 0 ]; then
    cp dynamic privileged
    chown 65534 privileged
    chmod 4755 privileged
    counts 'set-uid' "$(one privileged)" "$s" start execv ./privileged
    # Dropped in part, it is kept from programs that are not set-uid as well.
    counts 'another real user' "$(one privileged)" setpriv --ruid 65534 "$work/dynamic"
else
    skip 'set-uid' 'not root'
fi
counts 'a limit on the size of files' "$(one file-limit)" sh -c 'ulimit -f 1; ./dynamic; true'
counts 'one that wants no other thread' "$(one one-thread)" sh -c './dynamic --type=zygote; true'
finish

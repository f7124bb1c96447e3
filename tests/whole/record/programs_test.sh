#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs that look at what they are loaded with: recorded, each ends and says the same as without us.
# Usage: programs_test.sh QUT
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"
export QUT_CACHE=$work/cache
: >"$work/out"
cd "$work"

outcome() { "$@" >>said 2>&1 </dev/null && echo "status 0" >>said || echo "status $?" >>said; }

same() # NAME COMMAND...: sed's script in $but takes out what differs between two runs
{
    local name=$1
    shift
    : >said && outcome "$@"
    sed "${but:-}" said >plain
    : >said && outcome "$qut" record -q -o trace --sync all -F 1000 -- "$@"
    sed "${but:-};/sampled from outside/d" said >recorded
    check "$name" diff plain recorded
    # Status 1: some process was killed, as gdb's subject may be.
    check "$name: its recording" bash -c "'$qut' info trace >$work/said_info; [ \$? -le 1 ]"
}

cat >burn.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
    volatile double sum = 0;
    for (int i = 0; i < 30000000; i++)
        sum += i;
    char *text = strdup("said");
    puts(text);
    free(text);
    return 7;
}
END
gcc -O1 burn.c -o burn
same 'a program' ./burn

# ---- another C library: its loader would end the program over what it does not have
if command -v musl-gcc >/dev/null; then
    musl-gcc -O1 burn.c -o burn-musl
    same 'musl' ./burn-musl
    same 'musl, started by another' sh -c './burn-musl; echo $?'
else
    skip "musl" "no musl-gcc"
fi

# ---- sanitizers want to be first
if gcc -O1 -fsanitize=address burn.c -o burn-asan 2>/dev/null; then
    export ASAN_OPTIONS=detect_leaks=0 # it needs ptrace
    same 'AddressSanitizer' ./burn-asan
    same 'AddressSanitizer, started by another' sh -c './burn-asan; echo $?'
    # shellcheck disable=SC2016
    check 'its options are as they were without children' \
        test "$("$qut" record -q --no-children -o trace sh -c 'echo $ASAN_OPTIONS')" = "$ASAN_OPTIONS"
    unset ASAN_OPTIONS
else
    skip "AddressSanitizer" "gcc has none"
fi

# ---- a program that may have one thread only
cat >zygote.c <<'END'
#include <stdio.h>
#include <sys/stat.h>
int main(void)
{
    struct stat status;
    if (stat("/proc/self/task", &status) == 0)
        printf("%d threads\n", (int)status.st_nlink - 2);
    return 0;
}
END
gcc -O1 zygote.c -o zygote
same 'a zygote has one thread' sh -c './zygote --type=zygote; echo $?'

# ---- a debugger stops at signals
if command -v gdb >/dev/null && gdb -nx -batch -ex run ./burn 2>/dev/null </dev/null | grep -q 'exited with code 07'; then
    but='/^\[/!d;/Inferior/!d;s/(process [0-9]*)//' same 'under gdb' gdb -nx -batch -ex run ./burn
else
    skip "gdb" "none that can run a program"
fi

# ---- a limit on the size of files is one on memory that processes share, too: not recorded, but not killed either
same 'a limit on the size of files' sh -c 'ulimit -f 1; ./burn; echo $?'

# ---- rights
if [ "$(id -u)" -eq 0 ]; then
    cp burn burn-user
    chown 65534 burn-user
    chmod 4755 burn-user
    same 'set-uid, of another user' ./burn-user
    command -v setpriv >/dev/null && same 'a user is changed' setpriv --reuid 65534 --regid 65534 --clear-groups id -u
else
    skip "set-uid" "not root"
fi

finish

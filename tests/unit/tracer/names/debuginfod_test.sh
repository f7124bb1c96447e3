#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real server of debug files, on this machine: a program that is not there any more gets all its names from it.
#
#   debuginfod_test.sh DUMP PROGRAM
set -euo pipefail

dump=$1 program=$2
command -v debuginfod >/dev/null || {
    echo 'SKIP: no debuginfod'
    exit 77
}
ldconfig -p | grep -q 'libdebuginfod\.so\.1' || {
    echo 'SKIP: no libdebuginfod.so.1'
    exit 77
}
work=$(mktemp -d)
server=
finish()
{
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    wait || true
    rm -rf "$work"
}
trap finish EXIT

mkdir "$work/files"
objcopy --only-keep-debug "$program" "$work/files/program.debug"
objdump -d --no-show-raw-insn -j .text "$program" | sed -n 's/^ *\([0-9a-f]*\):.*/\1/p' | awk 'NR % 20 == 0' \
    >"$work/addresses"
"$dump" "$program" <"$work/addresses" >"$work/right"

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
debuginfod -F -d "$work/db" -p "$port" "$work/files" >"$work/log" 2>&1 &
server=$!
export DEBUGINFOD_URLS=http://127.0.0.1:$port HOME=$work
# The server reads its files first. What it did not have the client does not ask for again: a new cache each time.
for attempt in {1..60}; do
    DEBUGINFOD_CACHE_PATH=$work/cache$attempt "$dump" --debuginfod "$program" <"$work/addresses" >"$work/ours"
    if cmp -s "$work/right" "$work/ours"; then
        echo "$(wc -l <"$work/addresses") addresses, named from a server"
        exit 0
    fi
    sleep 0.5
done
diff "$work/right" "$work/ours" | head -20
tail -5 "$work/log"
exit 1

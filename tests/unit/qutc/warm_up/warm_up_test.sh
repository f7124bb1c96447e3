#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# qutc warm-up: killed at any moment, two at once, caches that are full, old or read-only. Usage: warm_up_test.sh QUTC
set -euo pipefail

# shellcheck source=tests/support/within.sh
. "$(dirname "$0")/../../../support/within.sh"
qutc=$(readlink -f "$1")
work=$(mktemp -d)
background=
cleanup()
{
    [ -z "$background" ] || kill -9 "$background" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
cd "$work"
unset XDG_CACHE_HOME QUT_CACHE
passed=0 failed=0 skipped=0

check() # NAME COMMAND...
{
    if "${@:2}"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: status %s; stdout: %s; stderr: %s\n' "$1" "${status-}" "$(head -c 400 out)" "$(head -c 400 err)"
    fi
}

run() # ARGUMENT...
{
    status=0
    "$qutc" warm-up --no-debug-files "$@" >out 2>err </dev/null || status=$?
}

# A number of the JSON object in ./out.
number() # KEY
{
    sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p" out | tail -n 1
}

is() # KEY VALUE
{
    [ "$(number "$1")" = "$2" ]
}

is_sleep() # PID: and no longer the shell that it begins as
{
    [[ $(readlink "/proc/$1/exe") == */*sleep ]]
}

tables() # CACHE
{
    find "$1" -name '*.qut' | wc -l
}

are_sound() # CACHE
{
    local count
    count=$("$qutc" list --json "$1" | grep -o '"rows"' | wc -l) && [ "$count" -eq "$(tables "$1")" ]
}

bytes_of() # CACHE
{
    find "$1" -name '*.qut' -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }'
}

mkdir libraries
for library in libc.so.6 libm.so.6 libcrypto.so.3 libssl.so.3 libstdc++.so.6 libgcc_s.so.1 libpcre2-8.so.0 libz.so.1 \
    liblzma.so.5 libzstd.so.1 libselinux.so.1 libtinfo.so.6 libacl.so.1 libattr.so.1 libcap.so.2 libgmp.so.10 \
    libgnutls.so.30 libp11-kit.so.0 libunistring.so.2 libsystemd.so.0 libudev.so.1 libgcrypt.so.20 libdw.so.1 \
    libelf.so.1 libblkid.so.1 libmount.so.1 libbz2.so.1.0 libffi.so.8 libidn2.so.0 libhogweed.so.6; do
    for folder in /lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu; do
        [ -f "$folder/$library" ] && [ ! -f "libraries/$library" ] && cp -L "$folder/$library" libraries/
    done
done
count=$(find libraries -type f | wc -l)
if [ "$count" -lt 10 ]; then
    printf 'SKIP: only %d libraries here\n0 passed, 0 failed, 1 skipped\n' "$count"
    exit 77
fi

# ---- what it does
run --json -o all libraries
check 'all compiled' [ "$status" -eq 0 ]
check 'each once' is compiled "$count"
check 'libc comes first' grep -q '^{"files": \[{"file": "libraries/libc.so.6"' out
check 'the tables are sound' are_sound all
check 'json is json' sh -c 'command -v python3 >/dev/null || exit 0; python3 -m json.tool <out >/dev/null'
run --json -o all libraries
check 'nothing twice' is compiled 0
check 'all known' is up_to_date "$count"
"$qutc" compile -q --no-debug-files -o plain.qut libraries/libm.so.6
check 'the same table as compile makes' cmp -s plain.qut "all/$(ls all | while read -r name; do
    cmp -s plain.qut "all/$name" && echo "$name"; done)"

sleep 600 &
background=$!
within 60 is_sleep "$background"
run -o mapped --pid "$background" libraries
kill "$background"
background=
check 'what is mapped comes first' sh -c 'head -n 3 out | grep -q "ld-linux" && head -n 6 out | grep -q /sleep:'

name=$(basename "$(find all -name '*.qut' | sort | head -n 1)")
printf 'no table' >"all/$name"
run --json -o all libraries
check 'a spoiled table is made again' is compiled 1
check 'and sound' are_sound all

run --json -o poor --memory 1M libraries
check 'memory: all too large' is too_large "$count"
check 'memory: status' [ "$status" -eq 1 ]
run --json -o some --memory 5M libraries
check 'memory: some fit' sh -c "[ $(number too_large) -gt 0 ] && [ $(number compiled) -gt 0 ]"

run --json -o slow --cpu-share 20 libraries
check 'the processor is left to others' awk -v all="$(number seconds)" -v own="$(number processor_seconds)" \
    'BEGIN { exit !(all > 2.5 * own) }'

# ---- killed
for attempt in $(seq 25); do
    # Between nothing at all and about everything.
    delay=$(awk -v seed="$RANDOM$attempt" 'BEGIN { srand(seed); printf "%.3f", 0.005 + rand() * 0.06 }')
    "$qutc" warm-up -q --no-debug-files -o killed libraries >/dev/null 2>&1 &
    sleep "$delay"
    kill -KILL $! 2>/dev/null || true
    { wait $! || true; } 2>/dev/null # it is gone then, and what it left behind is known to have no owner
    if [ $((attempt % 5)) -eq 0 ] && [ -n "$(find killed -name '*.qut' 2>/dev/null)" ]; then
        check "killed $attempt times: sound" are_sound killed
        cp -r killed "resumed$attempt"
        had=$(tables "resumed$attempt")
        run --json -o "resumed$attempt" libraries
        check "killed $attempt times: the rest alone is compiled" is compiled $((count - had))
        rm -rf "resumed$attempt"
    fi
    # Half of the way is enough, or there would be nothing left to be killed at.
    [ ! -d killed ] || [ "$(tables killed)" -lt $((count / 2)) ] || rm -rf killed
done
run --json -o killed libraries
check 'killed: whole in the end' [ "$(tables killed)" -eq "$count" ]
check 'killed: nothing half-written is left' sh -c '! ls killed | grep -q tmp'

mkdir -p temporary
sleep 600 &
background=$!
touch temporary/x86_64-00.qut.99999999-0.tmp "temporary/x86_64-00.qut.$background-0.tmp"
touch -d '2 days ago' "temporary/x86_64-00.qut.$background-1.tmp"
run -q -o temporary libraries/libm.so.6
check 'of writers that are gone nothing is left' [ ! -e temporary/x86_64-00.qut.99999999-0.tmp ]
check 'others write on' [ -e "temporary/x86_64-00.qut.$background-0.tmp" ]
check 'but not for days' [ ! -e "temporary/x86_64-00.qut.$background-1.tmp" ]
kill "$background"
background=

mkdir -p suspicious
echo libraries/libc.so.6 >suspicious/warm-up.lock
run -o suspicious libraries
check 'what a run died at comes last' sh -c 'grep libraries out | tail -n 1 | grep -q libc.so.6'
check 'and is no suspect after that' [ ! -s suspicious/warm-up.lock ]

# ---- two at once
"$qutc" warm-up -q --no-debug-files --cpu-share 1 -o two libraries >/dev/null 2>&1 &
background=$!
within 60 test -s two/warm-up.lock
run -o two libraries
check 'the second leaves' [ "$status" -eq 1 ]
check 'and says why' grep -q 'another warm-up' err
kill -9 "$background"
wait "$background" 2>/dev/null || true
background=
run --json -o two libraries
check 'the dead one holds no lock' [ "$status" -eq 0 ]
check 'all are there' [ "$(tables two)" -eq "$count" ]

# ---- stale tables
cp -r all stale
find stale -name '*.qut' -exec touch -d '40 days ago' {} +
run --json -o stale --max-age 30 libraries/libm.so.6
check 'old ones go' is dropped $((count - 1))
check 'but not one that is needed' [ "$(tables stale)" -eq 1 ]
run --json -o stale --max-age 30 libraries/libm.so.6
check 'which counts as new then' is dropped 0

rm -rf stale
cp -r all stale
age=0
while read -r file; do touch -d "$((++age)) hours ago" "$file"; done < <(find stale -name '*.qut' | sort)
oldest=$(find stale -name '*.qut' -printf '%T@ %f\n' | sort -n | head -n 1 | cut -d' ' -f2)
newest=$(find stale -name '*.qut' -printf '%T@ %f\n' | sort -n | tail -n 1 | cut -d' ' -f2)
budget=$(($(bytes_of stale) / 1024 / 2))
run --json -o stale --budget "${budget}K" libraries/libm.so.6
check 'budget: kept' [ "$(bytes_of stale)" -le $((budget * 1024)) ]
check 'budget: the oldest go first' sh -c "[ ! -e stale/$oldest ] && [ -e stale/$newest ]"
run --json -o stale --budget 100K libraries
check 'budget: too small for all: status' [ "$status" -eq 1 ]
check 'budget: too small for all: some are left' [ "$(number left)" -gt 0 ]
check 'budget: too small for all: kept' [ "$(bytes_of stale)" -le 102400 ]
check 'budget: said' grep -q 'are needed already' err

# ---- nowhere to write
if unshare -rm true 2>/dev/null; then
    mkdir -p full readonly
    status=0
    unshare -rm sh -c 'mount -t tmpfs -o size=200k none full && { "$0" warm-up -q --no-debug-files -o full libraries
        echo "status $?"; ls full; "$0" list full >/dev/null && echo sound; }' "$qutc" >out 2>err || status=$?
    check 'full: status' grep -q '^status 2' out
    check 'full: why' grep -q 'No space left' err
    check 'full: no ruins' sh -c '! grep -q tmp out'
    check 'full: what is there is sound' grep -q '^sound' out
    unshare -rm sh -c 'mount -t tmpfs -o ro none readonly && { "$0" warm-up -q -o readonly libraries
        echo "status $?"; }' "$qutc" >out 2>err || true
    check 'read-only: status' grep -q '^status 2' out
    check 'read-only: why' grep -q 'Read-only file system' err
else
    printf 'SKIP: no mounts here: full and read-only caches\n'
    skipped=$((skipped + 1))
fi
touch file
run -o file/cache libraries
check 'no directory: status' [ "$status" -eq 2 ]

# ---- bad input
run -o bad nothing-here
check 'no such file' sh -c "[ $status -eq 2 ] && grep -q nothing-here err"
run -o bad nothing-here libraries/libm.so.6
check 'no such file, and another' sh -c "[ $status -eq 1 ] && [ $(tables bad) -eq 1 ]"
run -o bad --pid 99999999
check 'no such process' [ "$status" -eq 2 ]
head -c 3000 libraries/libm.so.6 >cut.so
run -o cut cut.so
check 'cut off' [ "$status" -eq 1 ]
for bad in '--cpu-share 0' '--cpu-share 101' '--cpu-share x' '--memory 0' '--memory 5X' '--budget' '--budget -5M' \
    '--max-age 0' '--jobs 2' ''; do
    # shellcheck disable=SC2086 # several words
    run $bad
    check "bad usage: $bad" [ "$status" -eq 2 ]
done
status=0
"$qutc" warm-up --help >out 2>err || status=$?
check 'help' sh -c "[ $status -eq 0 ] && grep -q -- --cpu-share out"

printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]

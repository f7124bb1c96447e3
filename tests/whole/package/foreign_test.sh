#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A tool that walks stacks itself and feeds them to the store, built with nothing but what is installed; what it stored
# is read back.
# Usage: foreign_test.sh BUILD_DIRECTORY READ_BACK
set -euo pipefail

build=$1
read_back=$2
here=$(dirname "$0")
tree=$(mktemp -d)
segment=/dev/shm/qut-foreign-$$
trap 'rm -rf "$tree" "$segment"' EXIT
passed=0
failed=0
export LC_ALL=C

for tool in pkg-config meson cc; do
    if ! command -v "$tool" >/dev/null 2>&1; then
        echo "SKIP: no $tool"
        exit 77
    fi
done
if [ "$(uname -m)" != x86_64 ] || ! getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
    echo 'SKIP: the example is for x86-64 and glibc'
    exit 77
fi

check() # NAME COMMAND...
{
    local name=$1
    shift
    if "$@" >"$tree/said" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: %s\n' "$name" "$*"
        tail -n 20 "$tree/said" | sed 's/^/    /'
    fi
}

meson install -C "$build" --no-rebuild --quiet --destdir "$tree" >/dev/null
libdir=$(dirname "$(dirname "$(find "$tree" -name qut.pc)")")
PKG_CONFIG_LIBDIR=$libdir/pkgconfig:$(pkg-config --variable pc_path pkg-config)
export PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR=$tree

# shellcheck disable=SC2046 # words
check 'it is built' cc -D_GNU_SOURCE -O2 -fno-omit-frame-pointer -Wall -Wextra -Werror -o "$tree/tracer" $(pkg-config --cflags qut) \
    "$here/foreign_tracer.c" $(pkg-config --libs qut)
status=0
LD_LIBRARY_PATH=$libdir "$tree/tracer" "$segment" >"$tree/stack" || status=$?
check 'it runs' test "$status" -eq 0
check 'it is read back' sh -c '"$0" "$1" >"$2"' "$read_back" "$segment" "$tree/records"

# The one stack that is known, its kind and what it carries; frames of all others.
check 'the known stack is there' grep -qxF "sample 1 64 2 $(cat "$tree/stack")" "$tree/records"
check 'the kind has its name' grep -qx 'kind 64 toy tick' "$tree/records"
check 'all marks are there' test "$(grep -cx 'mark 1 [0-9]* request' "$tree/records")" -eq 4000 \
    -a "$(grep -cx 'mark 2 [0-9]* request' "$tree/records")" -eq 4000
outermost=$(sed 's/.*;//' "$tree/stack")
check 'ticks were stored' test "$(grep -c '^sample' "$tree/records")" -gt 10
# In code without frame pointers it does not come to the end, and says so.
check 'they end where they should' sh -c '[ "$(grep "^sample" "$1" | grep -vc ";\($2\|end [0-9]*\)\$")" -eq 0 ]' - \
    "$tree/records" "$outermost"
check 'interpreted frames are above native ones' grep -q '^sample [0-9]* 64 2 toy leaf;toy work;toy main;0x' "$tree/records"
check 'the balance is exact' awk '$1 == "balance" { exit !($2 == $3 + $4 && $5 == 0 && $6 == 0) }' "$tree/records"
sed -n 's/^balance/# balance/p' "$tree/records"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]

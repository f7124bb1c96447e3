#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `meson install` leaves is enough to build and run programs with pkg-config: shared, static, C and C++.
# Usage: installed_test.sh BUILD_DIRECTORY
set -euo pipefail

build=$1
here=$(dirname "$0")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
passed=0
failed=0
skipped=0
export LC_ALL=C

for tool in pkg-config meson cc; do
    if ! command -v "$tool" >/dev/null 2>&1; then
        echo "SKIP: no $tool"
        exit 77
    fi
done

meson install -C "$build" --no-rebuild --quiet --destdir "$tree" >/dev/null
libdir=$(dirname "$(dirname "$(find "$tree" -name qut.pc)")")
PKG_CONFIG_LIBDIR=$libdir/pkgconfig:$(pkg-config --variable pc_path pkg-config)
export PKG_CONFIG_LIBDIR
# As if the tree's folder were "/".
export PKG_CONFIG_SYSROOT_DIR=$tree

check() # NAME COMMAND...
{
    local name=$1
    shift
    if "$@" >"$tree/said" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: %s\n' "$name" "$*"
        sed 's/^/    /' "$tree/said"
    fi
}

program() # NAME COMPILER SOURCE LINK_ARGUMENT...
{
    local name=$1 compiler=$2 source=$3
    shift 3
    if ! command -v "$compiler" >/dev/null 2>&1; then
        echo "SKIP: $name: no $compiler"
        skipped=$((skipped + 1))
        return
    fi
    # shellcheck disable=SC2046 # words
    check "$name is built" "$compiler" -O1 -Wall -Wextra -o "$tree/program" $(pkg-config --cflags qut qutc) "$source" "$@"
    [ -x "$tree/program" ] || return 0
    check "$name runs" env LD_LIBRARY_PATH="$libdir" "$tree/program"
    readelf -d "$tree/program" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >"$tree/needed" || true
    mv "$tree/program" "$tree/last"
}

for header in qut/qut.h qut/base.h qut/compiler.h qut/frame.h qut/local.h qut/sample.h qut/target.h qut/trace.h qutc/provide.h qutc/servers.h; do
    check "$header is installed" test -f "$tree"/*/*/include/"$header" -o -f "$tree"/usr/include/"$header"
done
check 'the shared library has its names' test -e "$libdir/libqut.so.0" -a -e "$libdir/libqut.so" -a -f "$libdir/libqut.a"

# An archive has no border but names: none of ours meets those of a program.
for archive in libqut.a libqut-probes.a libqutc.a libqutc-servers.a; do
    strange=$(nm -g --defined-only "$libdir/$archive" 2>/dev/null | awk 'NF == 3 && $3 !~ /^qutc?_/ { print $3 }' | head -n 5)
    check "$archive: names begin with qut_ or qutc_" test -z "$strange"
done

# shellcheck disable=SC2046 # words
{
    program 'C, shared' cc "$here/walks.c" $(pkg-config --libs qut)
    check 'it needs libqut.so.0' grep -qx 'libqut\.so\.0' "$tree/needed"
    cp "$here/walks.c" "$tree/walks.cc"
    program 'C++, shared' c++ "$tree/walks.cc" -I"$here" $(pkg-config --libs qut)
    program 'C, libqut.a' cc "$here/walks.c" $(pkg-config --libs-only-L qut) -l:libqut.a
    check 'it does not need libqut.so.0' sh -c "! grep -q libqut '$tree/needed'"
    program 'C, -static' cc "$here/walks.c" -static $(pkg-config --static --libs qut)
    program 'the compiler, libqut.so' cc "$here/compiles.c" $(pkg-config --libs qutc)
    check 'it needs libqut.so.0' grep -qx 'libqut\.so\.0' "$tree/needed"
    # The documentation's monitor, as it stands there.
    sed -n '/^```c$/,/^```$/p' "$here/../../../docs/embedding.md" | sed '/^```/d' >"$tree/monitor.c"
    program 'the monitor of docs/embedding.md' cc "$tree/monitor.c" $(pkg-config --libs qutc) -pthread
    program 'the compiler, libqut.a' cc "$here/compiles.c" $(pkg-config --libs qutc | sed 's/-lqut\b/-l:libqut.a/g')
    program 'the compiler and servers' cc "$here/asks.c" $(pkg-config --libs qutc-servers)
    # Programs compiled before, with the headers of 0.1: objects that no later change may fail. They are never made anew.
    before=$here/../../support/golden_files/v0.1
    if [ "$(uname -m)" = x86_64 ]; then
        program 'walks, compiled before' cc "$before-walks-x86_64.o" $(pkg-config --libs qut)
        program 'walks, compiled before, libqut.a' cc "$before-walks-x86_64.o" $(pkg-config --libs-only-L qut) -l:libqut.a
        program 'the compiler, called from before' cc "$before-compiles-x86_64.o" $(pkg-config --libs qutc)
        check 'a tracer, compiled before, is linked' cc -o "$tree/tracer" "$before-foreign_tracer-x86_64.o" $(pkg-config --libs qut)
        segment=/dev/shm/qut-before.$$
        check 'it runs' env LD_LIBRARY_PATH="$libdir" "$tree/tracer" "$segment"
        rm -f "$segment"
    else
        echo 'SKIP: programs compiled before: they are for x86_64'
        skipped=$((skipped + 1))
    fi
}
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]

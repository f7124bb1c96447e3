# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the scripts of bench and bench/compile share: the root, options, and the build. Sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# A build directory that exists, configured by its owner, or our own.
build=${QUT_BENCH_BUILD:-$root/build/bench}

die() # TEXT
{
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 2
}

# Release, with assertions as in every build we ship; figures of any other build are worth nothing.
build_bench() # TARGET...
{
    local log
    log=$(mktemp)
    # shellcheck disable=SC2064
    trap "rm -f '$log'" RETURN
    if [ ! -f "$build/build.ninja" ]; then
        meson setup "$build" "$root" --buildtype=release >"$log" 2>&1 || {
            cat "$log" >&2
            die "cannot configure; what is missing: tools/setup build"
        }
    fi
    ninja -C "$build" "$@" >"$log" 2>&1 || {
        cat "$log" >&2
        die 'cannot build'
    }
}

# Which machine: figures without it mean little.
print_machine()
{
    printf '%s; %s processors; Linux %s; %s; load %s\n' \
        "$(awk -F ': *' '/^model name/ { print $2; exit }' /proc/cpuinfo)" "$(getconf _NPROCESSORS_ONLN)" \
        "$(uname -r)" "$(cc --version | head -n 1)" "$(cut -d ' ' -f 1 /proc/loadavg)"
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs in which every function is patched that has room for a jump do what they did before.
# usage: everywhere_test.sh EVERYWHERE_LIBRARY [--long]
set -euo pipefail
library=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -m 700 "$work/cache"
cat >"$work/thrower.cc" <<'END'
#include <iostream>
#include <map>
#include <regex>
#include <thread>
int main()
{
    std::map<std::string, int> seen;
    for (int i = 0; i < 1000; i++) {
        try {
            if (i % 3 == 0)
                throw std::runtime_error("x" + std::to_string(i));
            seen[std::to_string(i)] = i;
        } catch (std::exception &error) {
            seen[error.what()]++;
        }
    }
    int sum = 0;
    std::thread thread([&] {
        std::regex pattern("([a-z]+)([0-9]+)");
        for (auto &entry : seen)
            sum += std::regex_match(entry.first, pattern) ? entry.second : 1;
    });
    thread.join();
    std::cout << sum << ' ' << seen.size() << '\n';
}
END

failed=0
same()
{
    local name=$1
    shift
    if ! command -v "$1" >/dev/null; then
        echo "SKIP: there is no $1"
        return
    fi
    "$@" >"$work/expected" 2>&1
    : >"$work/report"
    local status=0
    LD_PRELOAD=$library PLAN_CACHE=$work/cache PLAN_REPORT=$work/report "$@" >"$work/now" 2>&1 || status=$?
    if [[ $status -eq 0 ]] && cmp -s "$work/expected" "$work/now" && [[ -s $work/report ]]; then
        echo "$name: the same, $(sort -rn "$work/report" | head -1)"
    else
        echo "$name: not the same: status $status"
        diff "$work/expected" "$work/now" | head -5 || true
        failed=1
    fi
}

# A folder of our own: packages may come and go meanwhile.
mkdir "$work/files"
(cd "$work/files" && touch file{1..500} && ln -s file1 link)
same files ls -la "$work/files"
same sort bash -c 'for i in {1..300}; do echo $((i * 7919 % 311)); done | sort -n | md5sum'
same perl perl -e 'my %h; $h{$_ % 17} .= "x$_" for 1..5000; print join(",", map { length $h{$_} } sort keys %h), "\n"'
same python /usr/bin/python3 -c 'import json, re, hashlib, decimal
print(json.dumps([re.sub("[aeiou]+", "-", "the quick brown fox"), hashlib.sha256(b"x" * 99).hexdigest(), str(decimal.Decimal(2).sqrt())]))
def gen():
    try: yield from range(9)
    except ValueError as e: yield str(e)
print(list(gen()), 2 ** 400 % 10007)'
g++ -O1 -pthread -o "$work/thrower" "$work/thrower.cc"
same thrower "$work/thrower"
same openssl openssl dgst -sha512 /usr/bin/python3.11
if [[ ${2-} == --long ]]; then
    same node node -e 'let s = 0; for (let i = 0; i < 3e6; i++) s += Math.sqrt(i);
        console.log(s, require("zlib").gzipSync("hello hello").length, [..."abc"].map((x) => x + x))'
    same compiler g++ -O1 -pthread -o "$work/thrower" "$work/thrower.cc"
    same git git -C "$QUT_SOURCE_ROOT" log --stat -n 50
    same gdb gdb -batch -ex 'print 6 * 7' -ex 'info files' /usr/bin/git
fi
exit "$failed"

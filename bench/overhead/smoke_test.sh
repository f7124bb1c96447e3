#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# That points and run say what they should, and what run makes of figures. What the figures are is not asked.
set -euo pipefail

here=$(dirname "$0") points=$1
# shellcheck source=bench/smoke.sh
. "$here/../smoke.sh"
results=$(mktemp) fake=$(mktemp -d)
trap 'rm -rf "$output" "$results"* "$fake"' EXIT

run 0 0 "$points" 1
for what in throttled scope taken-30 taken-100; do
    expect "^$what( -?[0-9]+\.[0-9]){3}\$"
done
run 2 2 "$points" 0
expect '^points: 1 to 101 rounds'
run 0 0 "$here/run" --help
expect '^usage: bench/overhead/run'
run 2 2 "$here/run" --only nothing --built /nowhere
expect '^overhead: no such program'
run 2 2 "$here/run" --only sort --built /nowhere
expect '^overhead: /nowhere/tracer/qut: is not there'

# Three rounds in which recording takes 0.5 % at 100 Hz and $1 at 1 kHz; $2 of 1000 samples do not reach the root, qut fails as
# $3 says. A peer's death is a result.
figures()
{
    python3 - "$@" >"$results" <<'END'
import json, sys

def taken(cpu_s, hz=0, cut=0):
    count = int(10 * hz)
    return {"wall_s": 10, "cpu_s": cpu_s, "user_s": 10, "switches": 100, "requests": 1, "start_cpu_s": 0, "said": "", "found": {
        "samples": count, "cut": {"no row": cut} if cut else {}, "due": count, "taken": count, "late": 0, "kernel": 0, "lost": 0,
        "triggers": ["task-clock"], "eintr": 0} if hz else {}}

more, cut, failure = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
names = {"by itself": 0, "by itself, again": 0, "100 Hz": 100, "1 kHz": 1000, "silent": 1000, "dead": 1000}
rounds = []
for plain in (10, 11, 12):  # the machine becomes slower: neither the least nor the pairs may see it
    rounds.append({"by itself": taken(plain), "by itself, again": taken(plain * 1.02), "100 Hz": taken(plain * 1.005, 100, cut),
                   "1 kHz": taken(plain * (1 + more), 1000), "silent": taken(plain, 0.001)})
json.dump({"scale": 1, "load_before": 0, "reasons": [], "ways": [
    {"name": name, "hz": hz, "is_ours": name not in ("silent", "dead")} for name, hz in names.items()], "programs": {"sort": {
        "name": "sort", "rounds": rounds, "failed": {"dead": "died: SIGPROF"} | ({"1 kHz": failure} if failure else {})}}}, sys.stdout)
END
}

figures 0.029 5 ''
run 0 0 "$here/run" --show --results "$results"
expect '^\| sort \| \+2\.0 % \(.*\) \| \+0\.5 % \(.*\) \| \+2\.9 % \(.*\) \|'
expect '^\| sort \| \+2\.0 % \(\+2\.0 to \+2\.0\) \| -0\.5 % \(.*\) \| \+1\.9 % \(.*\) \| does not record \| died: SIGPROF \|$'
expect '^PASS  sort at 100 Hz: 99\.50 % of samples reach the root'
expect 'no row 15 '
figures 0.031 6 ''
run 1 1 "$here/run" --show --results "$results"
expect '^MISS  sort at 100 Hz: 99\.40 % of samples reach the root'
figures 0.01 0 'no samples in the trace'
run 2 2 "$here/run" --show --results "$results"
expect '^ERROR sort, 1 kHz: no samples in the trace'

# A recorder that runs the command and records nothing, and one that does: each as its trace says.
mkdir "$fake/tracer"
fake_qut() # SAMPLES
{
    cat >"$fake/tracer/qut" <<END
#!/bin/sh
if [ "\$1" = info ]; then
    echo '{"balanced": true, "damaged_samples": 0, "damaged_blocks": 0, "stored": $1, "merged": 0, "cut": {}, "processes": []}'
    exit 0
fi
while [ "\$1" != -- ]; do shift; done
shift
exec "\$@"
END
    chmod +x "$fake/tracer/qut"
}
measure=("$here/run" --quick --rounds 1 --scale 0.005 --only sort --no-peers --built "$fake" --results "$results")
fake_qut 0
run 2 2 "${measure[@]}"
expect '^ERROR sort, 1 kHz: no samples in the trace'
fake_qut 7
run 0 1 "${measure[@]}"
expect '^\| sort \| 1 kHz \|.*\| 7 \| 100\.00 % \|'
run 0 1 "${measure[@]}" --rounds 2 --resume
expect '^Medians \(quartiles\) of 2 rounds'
expect 'sort: round 2 of 2'

# Ways side by side: the recording's settings are those of the ways, ticks that never came are an error, and 2 % more work is
# told from none whatever the machine does meanwhile.
run 0 0 "$here/switch" --help
expect '^usage: bench/overhead/switch'
run 2 2 "$here/switch" --only nothing
expect '^overhead: no such program'
run 2 2 "$here/switch" --only loop --built /nowhere
expect '^overhead: /nowhere/tracer/qut: is not there'
fake_qut 7
sed -i '2i export QUT_AGENT="v=1;T=0;p=1000000;s=255;x=" LD_PRELOAD=' "$fake/tracer/qut"
run 2 2 "$here/switch" --only loop --built "$fake" --minutes 0 --least-blocks 2 --scale 0.005 --ways 1000
expect '^\| program \| blocks \| minutes \| off, again \| 1 kHz \| recorder \| ticks due \|'
expect '^ERROR loop: '
run 0 2 "$here/switch" --prove --built "$fake" --minutes 0 --least-blocks 2 --scale 0.005
expect '^\| loop \| 2 \| .* % \(.*\) \| - \| - \|'
cat >"$fake/figures.py" <<'END'
import importlib.machinery, importlib.util, random, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
loader = importlib.machinery.SourceFileLoader("switch", f"{sys.argv[1]}/switch")
switch = importlib.util.module_from_spec(importlib.util.spec_from_loader("switch", loader))
loader.exec_module(switch)
source = random.Random(1)
blocks = []
for _ in range(200):
    speed = source.uniform(0.5, 2)  # of the machine, which the ways of one block share
    blocks.append({way: {"cpu_s": speed * more * source.gauss(1, 0.01), "requests": 1}
                   for way, more in (("off", 1), ("again", 1), ("1000", 1.06), ("empty", 1.04), ("100", 1.005))})
for way, logs in sorted(switch.figures_of(blocks).items()):
    median, low, high = switch.interval(logs, random.Random(1))
    truth = {"again": 0, "1000": 6, "empty": 4, "100": 0.5, "beyond": 1.92}[way]
    print(way, "holds" if low <= truth <= high and high - low < 1 else f"{low} {high}, not {truth}")
recording = switch.Recording.__new__(switch.Recording)
recording.environment = {"QUT_AGENT": "v=1;t=ab;T=0;p=1000000;s=3;x=1", "LD_PRELOAD": "agent"}
print(*(recording.in_way(way, "e") for way in ("off", "100", "empty", "itself")))
END
run 0 0 python3 "$fake/figures.py" "$here"
for way in again 1000 empty 100 beyond; do
    expect "^$way holds\$"
done
expect "T=4;p=1000000;s=0;x=1', 'LD_PRELOAD': 'agent'.*T=0;p=10000000;s=3;x=1.*T=4;.*agent:e.* \\{\\}\$"

# What forks cost is asked of a recording that was made; the figures are what they are.
run 0 0 "$here/begin" --help
expect '^usage: bench/overhead/begin'
run 2 2 "$here/begin" --built /nowhere
expect '^begin: /nowhere/tracer/qut: is not there'
mkdir -p "$fake/bench/overhead"
ln -sf "$(dirname "$(realpath "$points")")/bench_overhead_forks" "$fake/bench/overhead/"
run 2 2 "$here/begin" --rounds 1 --forks 2 --built "$fake"
expect '^begin: (recorded without tables: none was made|the forks were not recorded)'
run 0 2 "$here/begin" --rounds 1 --forks 2 --built "$(dirname "$points")/../.."
expect '^\| recorded, tables in the cache \| [0-9.]+, [+-][0-9.]+ \| [0-9.]+, [+-][0-9.]+ \| [0-9.]+, [+-][0-9.]+ \|$'
expect '^(PASS|MISS)  begin: a fork that goes on recording: -?[0-9.]+ ms \(target <= 0\.3\)'

run 0 0 "$here/kernel" --help
expect '^usage: bench/overhead/kernel'
run 2 2 "$here/kernel" --built /nowhere
expect '^kernel: /nowhere/tracer/qut: not there'
run 2 2 "$here/kernel" --built "$fake" --only nothing
expect '^not measured: nothing: nothing is missing'
cat >"$fake/calls.py" <<'END'
import importlib.machinery, importlib.util, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
loader = importlib.machinery.SourceFileLoader("kernel", f"{sys.argv[1]}/kernel")
kernel = importlib.util.module_from_spec(importlib.util.spec_from_loader("kernel", loader))
loader.exec_module(kernel)
print(*(kernel.call_of(symbols) for symbols in (["copy", "ksys_read", "do_syscall_64"], ["__x64_sys_futex", "do_syscall_64"],
      ["do_syscall_64"], ["clear", "exc_page_fault"], ["tick", "sysvec_apic"])))
print(kernel.is_within("far", 0.3, 0.01, 0.5, 1000), kernel.is_within("near", 0.47, 0.02, 0.5, 1000))
END
run 0 0 python3 "$fake/calls.py" "$here"
expect '^read futex entry page fault interrupt$'
expect '^False True$'

finish

# SPDX-License-Identifier: Apache-2.0
"""The tables and the targets of bench/walk/run."""
from figures import SCENARIOS, WALKERS

CODES = {"fp": "code with frame pointers", "nofp": "code without"}
COLUMNS = [name for name in SCENARIOS if name not in ("fresh-process", "signal")]
HEADS = {"same": "same", "top1": "top 1", "top3": "top 3", "top5": "top 5", "top9": "top 9", "middle": "middle", "all": "all",
         "known3": "3 known", "known5": "5 known", "known": "all known", "diverse": "diverse", "cold-l2": "L2-cold", "cold-memory": "DRAM-cold", "fresh-thread": "thread"}

# Ratio to the plain chase of the same round, by depth.
TARGETS = {
    "same": {18: 0.85, 60: 0.58, 200: 0.48},
    "top3": {18: 1.7, 60: 0.9, 200: 0.6},
    "top5": {18: 2.0, 60: 1.0, 200: 0.7},
    "all": {18: 1.9, 60: 1.8, 200: 3},
    "known5": {60: 1.6},
    "known": {18: 5, 60: 4.6, 200: 4.6},
    "diverse": {18: 13, 60: 15, 200: 16},
    "fresh-thread": {18: 40, 60: 40, 200: 40},
}
# ns a frame at depth 60: what the table alone costs. In the first, most frames' rules are looked up anew.
TABLE_TARGETS = {("diverse", "qut-linked"): 20, ("same", "qut-table"): 30}
# What a walk of the same stack costs beside its frames, in frames of the chase (4 cycles each): 18 cycles.
ENTERING_TARGET = 4.5
# Times faster than the walkers that read exception tables, at depth 60.
EH_TARGETS = {"same": 100, "all": 60, "diverse": 8}
EH_WALKERS = ("libgcc", "aosp-direct")


def number(value):
    if value >= 9999.5:
        return f"{value / 1000:.0f}k"
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


class Cells:
    def __init__(self, summary):
        self.by_key = {(c["scenario"], c["depth"], c["code"], c["walker"]): c for c in summary["cells"]}
        self.depths = sorted({c["depth"] for c in summary["cells"]})

    def get(self, scenario, depth, code, walker, what="ratio"):
        cell = self.by_key.get((scenario, depth, code, walker))
        return cell.get(what) if cell else None

    def has(self, scenario, depth):
        return any(key[0] == scenario and key[1] == depth for key in self.by_key)


def row(name, values, width):
    print(f"{name:26}" + "".join(f"{value:>{width}}" for value in values))


def ratio_text(spread):
    """The median, and how far the 10th and the 90th percentile are from each other."""
    if not spread:
        return "-"
    return f"{number(spread[1])} ±{50 * (spread[2] - spread[0]) / spread[1]:.0f}%"


def depth_tables(cells, depth, code):
    columns = [name for name in COLUMNS if cells.has(name, depth)]
    walkers = [name for name in WALKERS if not name.startswith("signal-") and
               any(cells.get(scenario, depth, code, name) for scenario in columns)]
    if not walkers:
        return
    print(f"\nDepth {depth}, {CODES[code]}: ratio to the plain chase of frame pointers (median, half of p10 to p90)")
    row("", [HEADS[name] for name in columns], 11)
    for walker in walkers:
        row(WALKERS[walker], [ratio_text(cells.get(name, depth, code, walker)) for name in columns], 11)
    print("  ns per walk")
    for walker in walkers:
        spreads = [cells.get(name, depth, code, walker, "ns") for name in columns]
        row(WALKERS[walker], [number(spread[1]) if spread else "-" for spread in spreads], 11)


def process_table(cells):
    depths = [depth for depth in cells.depths if cells.has("fresh-process", depth)]
    if not depths:
        return
    print("\nFirst and second walk of a fresh process: ns, and ratio to the chase's first")
    row("", [f"{depth}, {code}" for depth in depths for code in CODES], 26)
    for walker, name in WALKERS.items():
        texts = []
        for depth in depths:
            for code in CODES:
                first = cells.get("fresh-process", depth, code, walker, "ns")
                second = cells.get("fresh-process", depth, code, walker, "second_ns")
                ratio = cells.get("fresh-process", depth, code, walker)
                texts.append(f"{number(first[1])} {number(second[1])} ({number(ratio[1]) if ratio else '?'} x)" if first else "-")
        if any(text != "-" for text in texts):
            row(name, texts, 26)


def signal_table(cells):
    for depth in cells.depths:
        if not cells.has("signal", depth):
            continue
        print(f"\nA signal raised, handled and returned from, depth {depth}: ns in all; of the walk; its share of the signal")
        row("", list(CODES.values()), 34)
        for walker, name in WALKERS.items():
            texts = []
            for code in CODES:
                time = cells.get("signal", depth, code, walker, "ns")
                empty = cells.get("signal", depth, code, "signal-nothing", "ns")
                if not walker.startswith("signal-") or not time:
                    texts.append("-")
                elif walker == "signal-nothing":
                    texts.append(number(time[1]))
                else:
                    walk_ns = time[1] - empty[1]
                    texts.append(f"{number(time[1])}  {walk_ns:.0f}  {100 * walk_ns / time[1]:.1f} %")
            if any(text != "-" for text in texts):
                row(name, texts, 34)


def tables(summary):
    cells = Cells(summary)
    print(f"{summary['machine']}; {summary['rounds']} rounds; {summary['dropped_rounds']} of {summary['all_rounds']} in all "
          "shared the core with somebody and were dropped")
    if summary.get("cut"):
        print(summary["cut"])
    if summary.get("shared_rounds"):
        print(f"{summary['shared_rounds']} more shared it and are in these figures, for want of others: they are too high")
    for depth in cells.depths:
        for code in CODES:
            depth_tables(cells, depth, code)
    process_table(cells)
    signal_table(cells)


def judge(values, target, at_most, text):
    """The worse code decides. Returns 1 where it misses."""
    worst = (max if at_most else min)(values, key=values.get)
    met = values[worst] <= target if at_most else values[worst] >= target
    each = ", ".join(f"{code} {number(value)}" for code, value in values.items())
    print(f"{'PASS' if met else 'MISS'}  walk: {text.format(number(values[worst]))} "
          f"(target {'<=' if at_most else '>='} {target:g}; {each})")
    return 0 if met else 1


def a_frame_ns(cells, scenario, code, walker):
    spread = cells.get(scenario, 60, code, walker, "ns")
    return spread and spread[1] / 60


def entering(cells, code):
    """By the shallowest and the deepest stack, between which both grow evenly."""
    low, high = cells.depths[0], cells.depths[-1]
    walks = [cells.get("same", depth, code, "qut", "ns") for depth in (low, high)]
    chases = [cells.get("same", depth, "fp", "chase", "ns") for depth in (low, high)]
    if low == high or not all(walks + chases):
        return None
    frame_ns, chased_ns = ((deep[1] - shallow[1]) / (high - low) for shallow, deep in (walks, chases))
    return (walks[0][1] - low * frame_ns) / chased_ns if chased_ns > 0 else None


def cost_verdicts(cells):
    """Of figures that are no ratios to a chase; of what was not measured, nothing. Returns how many miss."""
    misses = 0
    for (scenario, walker), target in TABLE_TARGETS.items():
        values = {code: a_frame_ns(cells, scenario, code, walker) for code in CODES}
        if all(values.values()):
            misses += judge(values, target, True, f"{WALKERS[walker]}, {SCENARIOS[scenario]}, depth 60: {{}} ns a frame")
    values = {code: entering(cells, code) for code in CODES}
    if all(values.values()):
        misses += judge(values, ENTERING_TARGET, True, "entering and leaving, same stack: {} frames of the chase")
    return misses


def times_faster(cells, scenario, code, walker):
    """In the same round where both were in one process, else by way of the chases."""
    spread = cells.get(scenario, 60, code, walker, "to_qut")
    if spread:
        return spread[1]
    theirs, ours = cells.get(scenario, 60, code, walker), cells.get(scenario, 60, code, "qut")
    return theirs[1] / ours[1] if theirs and ours else None


def verdicts(summary):
    """Prints them; the exit status."""
    cells, misses, unknown = Cells(summary), 0, 0
    print()
    for scenario, by_depth in TARGETS.items():
        for depth, target in by_depth.items():
            if not cells.has(scenario, depth):
                continue
            spreads = {code: cells.get(scenario, depth, code, "qut") for code in CODES}
            values = {code: spread[1] for code, spread in spreads.items() if spread}
            if len(values) < len(CODES):
                print(f"not measured: walk: {SCENARIOS[scenario]}, depth {depth}")
                unknown += 1
                continue
            misses += judge(values, target, True, f"{SCENARIOS[scenario]}, depth {depth}: {{}} x the chase")
    misses += cost_verdicts(cells)
    for scenario, target in EH_TARGETS.items():
        if not cells.has(scenario, 60):
            continue
        for walker in EH_WALKERS:
            if summary.get("walkers") and walker not in summary["walkers"]:
                continue
            values = {code: times_faster(cells, scenario, code, walker) for code in CODES}
            if not all(values.values()):
                print(f"not measured: walk: {SCENARIOS[scenario]}, depth 60, against {WALKERS[walker]}")
                unknown += 1
                continue
            misses += judge(values, target, False,
                            f"{SCENARIOS[scenario]}, depth 60: {{}} x faster than {WALKERS[walker]}")
    return 2 if unknown else 1 if misses else 0

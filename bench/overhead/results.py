# SPDX-License-Identifier: Apache-2.0
"""What bench/overhead/run measured, as tables and verdicts. All is in one JSON object: programs -> rounds -> way -> run."""
import random
import statistics

from recorders import AGAIN, EMPTY, PLAIN

OURS = ("100 Hz", "1 kHz", "1 kHz, sync all")
ROOTS_TARGET = 99.5


def middle(values):
    """(median, first quartile, third)"""
    if len(values) < 2:
        return values[0], values[0], values[0]
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return statistics.median(values), first, third


def spread(values):
    return "{:+.1f} % ({:+.1f} to {:+.1f})".format(*(100 * value for value in middle(values))) if values else "-"


def of_one(run, key):
    return run[key] / run["requests"]


def ratios(rounds, way, key):
    """What a way costs more than the program by itself, in each round where both are there."""
    found = []
    for runs in rounds:
        if way in runs and PLAIN in runs:
            plain = of_one(runs[PLAIN], key)
            if way != AGAIN and AGAIN in runs:
                plain = (plain + of_one(runs[AGAIN], key)) / 2
            found.append(of_one(runs[way], key) / plain - 1)
    return found


def least_ratio(program, rounds, way):
    """What a way costs more processor time than the program by itself, by the least of each: whatever else the machine does
    makes a run longer, never shorter. What a command's start-up adds is taken off, as work is short."""
    both = [runs for runs in rounds if way in runs and PLAIN in runs]  # as many draws of either
    plain, own = ([of_one(runs[one], "cpu_s") for runs in both] for one in (PLAIN, way))
    if not plain or not own:
        return None
    more_s = program.get("startup_more_s", 0) if way in OURS else 0
    return (min(own) - more_s) / min(plain) - 1


def least(program, way):
    """That ratio, and 5 and 95 % of what other draws of the rounds would have given."""
    rounds, chance = program["rounds"], random.Random(1)
    drawn = sorted(value for value in (least_ratio(program, chance.choices(rounds, k=len(rounds)), way) for _ in range(400))
                   if value is not None)
    value = least_ratio(program, rounds, way)
    return (value, drawn[len(drawn) // 20], drawn[-1 - len(drawn) // 20]) if drawn and value is not None else None


def least_text(program, way):
    found = least(program, way)
    return "{:+.1f} % ({:+.1f} to {:+.1f})".format(*(100 * value for value in found)) if found else "-"


def recorded_share(rounds, way, hz):
    """How many samples there are of those that user mode's processor time stands for."""
    shares = [runs[way]["found"]["samples"] / (runs[way]["user_s"] * hz) for runs in rounds
              if way in runs and runs[way]["user_s"] > 0]
    return statistics.median(shares) if shares else 0


def cell(program, way, key, notes):
    """Of a table of ratios; what is to be said of it goes to `notes`."""
    name, failure = way["name"], program["failed"].get(way["name"])
    values = ratios(program["rounds"], name, key)
    if failure and not values:
        return failure.split("\n")[0][:60]
    if values and not way["is_ours"] and name != EMPTY:
        share = recorded_share(program["rounds"], name, way["hz"])
        lost = sum(runs[name]["found"].get("lost_chunks", 0) for runs in program["rounds"] if name in runs)
        if key == "cpu_s" and (share < 0.8 or lost):
            notes.append(f"{program['name']}, {name}: it has {100 * share:.0f} % of the samples that user mode's processor time "
                         f"stands for" + (f", and lost {lost} pieces of its buffer" if lost else ""))
        if share < 0.02:
            return "does not record"
    return spread(values)


def table(heads, rows):
    yield "| " + " | ".join(heads) + " |"
    yield "|---|" + "---:|" * (len(heads) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def total(rounds, way, key):
    return sum(runs[way]["found"][key] for runs in rounds if way in runs)


def median_of(rounds, way, value):
    found = [value(runs[way]) for runs in rounds if way in runs]
    return statistics.median(found) if found else 0


def amount(program):
    """How much work, and how fast it is done by the program itself."""
    rounds = program["rounds"]
    wall_s = median_of(rounds, PLAIN, lambda run: run["wall_s"])
    each_us = median_of(rounds, PLAIN, lambda run: 1e6 * of_one(run, "cpu_s"))
    rate = median_of(rounds, PLAIN, lambda run: run["requests"] / run["wall_s"])
    if median_of(rounds, PLAIN, lambda run: run["requests"]) == 1:
        return f"{wall_s:.1f} s", f"{each_us / 1e6:.2f} s", "-"
    return f"{wall_s:.1f} s", f"{each_us:.1f} us a request", f"{rate:,.0f}"


def switches(rounds, way):
    return f"{median_of(rounds, way, lambda run: run['switches'] / run['wall_s']):,.0f}"


def tick_us(rounds, way):
    """Processor time of one tick, all in all."""
    found = []
    for runs in rounds:
        if way in runs and PLAIN in runs and runs[way]["found"]["taken"]:
            plain = [of_one(runs[one], "cpu_s") for one in (PLAIN, AGAIN) if one in runs]
            more = of_one(runs[way], "cpu_s") - statistics.mean(plain)
            found.append(1e6 * more * runs[way]["requests"] / runs[way]["found"]["taken"])
    return "{:.0f} ({:.0f} to {:.0f})".format(*middle(found)) if found else "-"


def accounts(program, way):
    rounds = program["rounds"]
    due = total(rounds, way, "due") or 1
    samples = total(rounds, way, "samples") or 1
    cut = {}
    for runs in rounds:
        for key, count in runs.get(way, {"found": {"cut": {}}})["found"]["cut"].items():
            cut[key] = cut.get(key, 0) + count
    roots = 100 * (1 - sum(cut.values()) / samples)
    shares = [f"{100 * total(rounds, way, key) / due:.2f} %" for key in ("taken", "late", "kernel", "lost")]
    return shares, roots, ", ".join(f"{key} {count}" for key, count in sorted(cut.items()))


def costs(ways, programs):
    notes = []
    heads = ["program"] + [way["name"] for way in ways]
    yield "Processor time for the same work, the least of all rounds beside the least by itself (5 to 95 % of other draws of rounds):\n"
    yield from table(heads, [[one["name"]] + [least_text(one, way["name"]) for way in ways] for one in programs])
    yield "\nProcessor time for the same work, beside the program by itself:\n"
    yield from table(heads, [[one["name"]] + [cell(one, way, "cpu_s", notes) for way in ways] for one in programs])
    yield "\nReal time for the same work (of a server: for a request, both on processors of their own):\n"
    yield from table(heads, [[one["name"]] + [cell(one, way, "wall_s", notes) for way in ways] for one in programs])
    if notes:
        yield ""
        yield from notes


def by_themselves(programs):
    yield "By itself, and what a tick costs; switches: of threads, a second:\n"
    rows = []
    for one in programs:
        rounds = one["rounds"]
        rows.append([one["name"], *amount(one), switches(rounds, PLAIN), switches(rounds, "1 kHz"), tick_us(rounds, "100 Hz"),
                     tick_us(rounds, "1 kHz")])
    yield from table(["program", "real time", "processor time", "requests a second", "switches", "at 1 kHz", "us a tick, 100 Hz",
                      "us a tick, 1 kHz"], rows)


def ticks(programs):
    yield "Ticks and stacks, all recordings:\n"
    rows = []
    for one in programs:
        rounds = one["rounds"]
        for way in OURS:
            if any(way in runs for runs in rounds):
                shares, roots, cut = accounts(one, way)
                trigger = ", ".join(sorted({name for runs in rounds if way in runs for name in runs[way]["found"]["triggers"]}))
                rows.append([one["name"], way, trigger, f"{total(rounds, way, 'due'):,}", *shares,
                             f"{total(rounds, way, 'samples'):,}", f"{roots:.2f} %", cut or "-"])
    yield from table(["program", "at", "trigger", "ticks due", "taken", "late", "in the kernel", "lost", "samples", "to the root",
                      "others"], rows)


def beginnings(programs):
    yield ("Start-up, of a program that does nothing: processor time, real time, and what recording adds; processor time of a "
           "server\nuntil it answers. In the figures above it is for what is no server, but for those of the least.\n")
    rows = []
    for one in programs:
        begun = one.get("startup", {})
        before = [median_of(one["rounds"], way, lambda run: 1000 * run["start_cpu_s"]) for way in (PLAIN, "1 kHz")]
        rows.append([one["name"], *(begun.get(key, "-") for key in ("plain", "warm", "cold")),
                     f"{before[0]:.0f}, {before[1]:.0f} ms" if before[0] else "-"])
    yield from table(["program", "by itself", "recorded, tables in the cache", "recorded, no tables yet",
                      "server, by itself and at 1 kHz"], rows)


def lines(results):
    """The text of it, line by line."""
    ways = sorted((way for way in results["ways"] if way["name"] != PLAIN), key=lambda way: way["name"] != AGAIN)
    programs = [program for program in results["programs"].values() if program["rounds"]]
    yield (f"Medians (quartiles) of {max((len(one['rounds']) for one in programs), default=0)} rounds; load average "
           f"{results['load_before']:.2f} before.\n")
    for part in (costs(ways, programs), by_themselves(programs), ticks(programs), beginnings(programs)):
        yield from part
        yield ""
    yield from results["reasons"]


def verdicts(results):
    """(passed, text), of what rounds one after the other can decide: costs are for bench/overhead/switch."""
    for name, program in results["programs"].items():
        rounds = program["rounds"]
        for way in OURS:
            if any(way in runs for runs in rounds):
                _, roots, _ = accounts(program, way)
                yield roots >= ROOTS_TARGET, f"{name} at {way}: {roots:.2f} % of samples reach the root, at least {ROOTS_TARGET} %"


def errors(results):
    """What could not be measured, and should have been."""
    peers = {way["name"] for way in results["ways"] if not way["is_ours"]}
    for name, program in results["programs"].items():
        for way, why in program["failed"].items():
            if way not in peers:
                yield f"{name}, {way}: {why}"

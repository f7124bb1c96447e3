# SPDX-License-Identifier: Apache-2.0
"""What bench_walk prints, gathered: for each scenario, depth, code and walker, ratios to the chase of the same round."""
import statistics

SCENARIOS = {
    "same": "same stack",
    "top1": "top 1 changed",
    "top3": "top 3 changed",
    "top5": "top 5 changed",
    "top9": "top 9 changed",
    "middle": "middle changed",
    "all": "all changed",
    "known3": "top 3 random, known",
    "known5": "top 5 random, known",
    "known": "all random, known",
    "diverse": "diverse",
    "cold-l2": "L2-cold",
    "cold-memory": "DRAM-cold",
    "fresh-thread": "fresh thread",
    "fresh-process": "fresh process",
    "signal": "from a signal",
}
TOGETHER = ("same", "top1", "top3", "top5", "top9", "middle", "all", "known3", "known5", "known", "fresh-thread")
WALKERS = {
    "chase": "frame pointers, plain",
    "chase-checked": "frame pointers, checked",
    "qut": "QUT, all tiers",
    "qut-linked": "QUT, linked cache",
    "qut-table": "QUT, table only",
    "glibc": "glibc backtrace",
    "libgcc": "libgcc _Unwind_Backtrace",
    "nongnu-backtrace": "nongnu unw_backtrace",
    "nongnu-step": "nongnu unw_step",
    "llvm-step": "LLVM unw_step",
    "aosp-direct": "libunwindstack, direct",
    "aosp": "libunwindstack",
    "signal-nothing": "signal, empty handler",
    "signal-chase": "... frame pointers",
    "signal-qut": "... QUT, all tiers",
    "signal-qut-linked": "... QUT, linked cache",
    "signal-qut-table": "... QUT, table only",
}
# A round in which the core took so much longer than ever for the same work shared it with another program.
NEIGHBOUR = 1.15
NEED_FRAME_POINTERS = ("chase", "chase-checked", "signal-chase")


def spread(values):
    """The 10th percentile, the median, the 90th; between the nearest two, as in measure.c."""
    values = sorted(values)

    def at(share):
        place = share * (len(values) - 1)
        below = int(place)
        above = min(below + 1, len(values) - 1)
        return values[below] + (place - below) * (values[above] - values[below])

    return [round(at(share), 4) for share in (0.1, 0.5, 0.9)]


class Figures:
    def __init__(self):
        self.missing = []
        self.cut = ""  # why there are fewer rounds than were asked for
        self.ratios, self.times_ns = {}, {}  # by (scenario, depth, code, walker): lists
        self.seconds_ns, self.firsts_ns = {}, {}
        self.against = {}  # by (scenario, depth, code, walker): its time to QUT's in the same round
        self.rounds = []  # of all processes: how long the core took for the same work, and the times
        self.dropped_count = self.shared_count = 0  # rounds that shared the core: dropped, or kept for want of others

    def add(self, lines):
        """The lines of one process. Returns how many rounds had the core for themselves."""
        rounds, core_ns = {}, {}
        for line in lines:
            kind, scenario, depth, code, walker, *values = line.split()
            key = (scenario, int(depth), code, walker)
            if kind == "first":
                self.firsts_ns.setdefault(key, []).append(float(values[0]))
                self.seconds_ns.setdefault(key, []).append(float(values[1]))
            elif kind == "walk":
                rounds.setdefault(int(values[0]), {})[key] = float(values[1])
            elif kind == "core":
                core_ns[int(values[0])] = float(values[1])
        self.rounds += [(core_ns[number], times_ns) for number, times_ns in rounds.items()]
        return sum(core_ns[number] <= self.limit_ns() for number in rounds)

    def limit_ns(self):
        return NEIGHBOUR * min((core_ns for core_ns, _ in self.rounds), default=0)

    def gather(self):
        """The rounds that had the core for themselves; all of those of which too few had."""
        calm, disturbed = {}, {}
        for core_ns, times_ns in self.rounds:
            kept = calm if core_ns <= self.limit_ns() else disturbed
            kept.setdefault(frozenset(times_ns), []).append(times_ns)
        for keys in set(calm) | set(disturbed):
            rounds = calm.get(keys, [])
            if len(rounds) < 3:
                rounds = rounds + disturbed.get(keys, [])
                self.shared_count += len(disturbed.get(keys, []))
            else:
                self.dropped_count += len(disturbed.get(keys, []))
            for times_ns in rounds:
                self.gather_round(times_ns)

    def gather_round(self, times_ns):
        chase_ns = [time for key, time in times_ns.items() if key[3] == "chase"]
        for key, time_ns in times_ns.items():
            if key[3] == "nothing":
                continue
            self.times_ns.setdefault(key, []).append(time_ns)
            if chase_ns:
                self.ratios.setdefault(key, []).append(time_ns / chase_ns[0])
            qut_ns = times_ns.get(key[:3] + ("qut",))
            if qut_ns:
                self.against.setdefault(key, []).append(time_ns / qut_ns)

    def summary(self, machine, rounds):
        self.gather()
        cells = []
        for key, times_ns in self.times_ns.items():
            cell = dict(zip(("scenario", "depth", "code", "walker"), key))
            cell["ns"] = spread(times_ns)
            if key in self.ratios:
                cell["ratio"] = spread(self.ratios[key])
            if key in self.against:
                cell["to_qut"] = spread(self.against[key])
            cells.append(cell)
        for key, firsts_ns in self.firsts_ns.items():
            cell = dict(zip(("scenario", "depth", "code", "walker"), key))
            chase = self.firsts_ns.get(key[:2] + ("fp", "chase"))
            cell["ns"], cell["second_ns"] = spread(firsts_ns), spread(self.seconds_ns[key])
            if chase:
                cell["ratio"] = [round(value / statistics.median(chase), 4) for value in cell["ns"]]
            cells.append(cell)
        return {"machine": machine, "rounds": rounds, "missing": self.missing, "cells": cells,
                "dropped_rounds": self.dropped_count, "shared_rounds": self.shared_count,
                "all_rounds": len(self.rounds), "cut": self.cut}

# SPDX-License-Identifier: Apache-2.0
"""The figures of bench/walk/run as a picture: one panel a scenario, bars from 1 (the chase of frame pointers), log scale."""
import math
from xml.sax.saxutils import escape

import report

DEPTH = 60
PANELS = {
    "same": ("same stack again", ""),
    "top5": ("5 innermost frames", "changed"),
    "all": ("all frames changed,", "code seen before"),
    "diverse": ("random path through", "4096 functions"),
    "cold-l2": ("same stack,", "level-2 cache cold"),
    "fresh-thread": ("first walk", "of a thread"),
}
ROWS = {
    "chase": ("frame pointers, followed", "chase"),
    "qut": ("QUT, all tiers", "qut"),
    "qut-linked": ("QUT, linked rule cache", "part"),
    "qut-table": ("QUT, table only", "part"),
    "nongnu-backtrace": ("libunwind unw_backtrace", "peer"),
    "libgcc": ("libgcc _Unwind_Backtrace", "peer"),
    "glibc": ("glibc backtrace", "peer"),
    "aosp-direct": ("AOSP libunwindstack ¹", "peer"),
    "llvm-step": ("LLVM libunwind unw_step", "peer"),
    "nongnu-step": ("libunwind unw_step", "peer"),
}
COLOURS = {"chase": "#4b5563", "qut": "#1d4ed8", "part": "#8fb0f5", "peer": "#d1a074"}
LEFT, TOP, PANEL, GAP, ROW, BAR, MARGIN = 200, 118, 160, 12, 25, 13, 20
LOW, HIGH = 0.2, 12000  # of the scale: room for the labels on both sides
FONT = "font-family=\"system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif\""


def text(x, y, words, size=12, anchor="start", colour="#1f2937", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" '
            f'font-weight="{weight}">{escape(words)}</text>')


def place(value):
    """From a ratio to pixels within a panel."""
    return PANEL * math.log(value / LOW) / math.log(HIGH / LOW)


def worse(cells, scenario, walker):
    """Of code with and without frame pointers."""
    spreads = [cells.get(scenario, DEPTH, code, walker) for code in report.CODES]
    values = [spread[1] for spread in spreads if spread]
    return max(values) if values else None


def panel(cells, scenario, left):
    head, second = PANELS[scenario]
    bottom = TOP + ROW * len(ROWS)
    parts = [text(left + PANEL / 2, TOP - 34, head, 12.5, "middle", weight="600"),
             text(left + PANEL / 2, TOP - 19, second, 12.5, "middle", weight="600")]
    for value in (1, 10, 100, 1000):
        x = left + place(value)
        parts.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}" '
                     f'stroke="{"#6b7280" if value == 1 else "#e5e7eb"}"/>')
        parts.append(text(x, bottom + 15, f"{value}", 10.5, "middle", "#6b7280"))
    for index, (walker, (_, kind)) in enumerate(ROWS.items()):
        value, middle = worse(cells, scenario, walker), TOP + ROW * index + ROW / 2
        if value is None:
            parts.append(text(left + place(1) + 4, middle + 4, "not measured", 10.5, colour="#9ca3af"))
            continue
        begin, end = sorted((left + place(1), left + place(min(max(value, LOW), HIGH))))
        parts.append(f'<rect x="{begin:.1f}" y="{middle - BAR / 2:.1f}" width="{max(end - begin, 1.5):.1f}" height="{BAR}" '
                     f'fill="{COLOURS[kind]}"/>')
        label = report.number(value)
        weight = "700" if kind == "qut" else "normal"
        parts.append(text(end + 4, middle + 4, label, 11.5, weight=weight))
    return parts


def draw(summary):
    cells = report.Cells(summary)
    width = LEFT + len(PANELS) * (PANEL + GAP) - GAP + MARGIN
    bottom = TOP + ROW * len(ROWS)
    height = bottom + 74
    title = "Time of a stack walk, as a multiple of following frame pointers"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
             f'role="img" aria-label="{escape(title)}" {FONT}>', f"<title>{escape(title)}</title>",
             f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="#ffffff" stroke="#d1d5db"/>',
             text(MARGIN, 30, title, 18, weight="700"),
             text(MARGIN, 51, f"{DEPTH} frames, x86-64, logarithmic scale; left of the line is faster than frame pointers. "
                  "Of code built with and without frame pointers, the worse.", 12.5, colour="#4b5563")]
    for index, (label, kind) in enumerate(ROWS.values()):
        middle = TOP + ROW * index + ROW / 2
        parts.append(text(LEFT - 10, middle + 4, label, 12.5, "end", weight="700" if kind == "qut" else "normal"))
    for index, scenario in enumerate(PANELS):
        parts += panel(cells, scenario, LEFT + index * (PANEL + GAP))
    processor = summary["machine"].split(";")[0]
    notes = [f"Measured by bench/walk/run on {processor}, medians of {summary['rounds']} rounds; every pc of every walk compared "
             "with what the functions themselves read as return addresses."]
    slower = [worse(cells, "same", walker) for walker in ("aosp", "aosp-direct")]
    if all(slower):
        notes.append("¹ made to read memory directly. As Debian has it, it reads by system calls: on the same stack "
                     f"{slower[0] / slower[1]:.0f} times as long.")
    parts += [text(MARGIN, bottom + 42 + 16 * index, note, 10.5, colour="#6b7280") for index, note in enumerate(notes)]
    parts.append("</svg>")
    return "\n".join(parts) + "\n"

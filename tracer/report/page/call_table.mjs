// SPDX-License-Identifier: Apache-2.0
// Exact calls by function, as a table: how many, how long, how the durations lie, and how calls were closed. These are
// sums of all calls, those included that had no room in the page.
import { formatCount, formatTime } from './format.mjs';
import { foldTemplates } from './names.mjs';

const HOW = ['returned', 'tail call', 'unwound', 'open', 'end lost']; // enum call_times_how
const TIMES = ['total', 'self', 'min', 'max'];
const ROWS_AT_ONCE = 100, BAR = 4, CHART = 16;

// Columns of pack.h, as numbers: a row for each function, those of several processes added up.
export function callSums({ func, counted, how, times, histogram, recorded }) {
    const rows = new Map();
    for (let i = 0, at = 0; i < func.length; i++) {
        const row = rows.get(func[i]) || { func: func[i], calls: 0, counted: 0, how: HOW.map(() => 0), total: 0, self: 0, min: Infinity, max: 0, histogram: new Map(), thinned: 0, recorded: 0 };
        const ended = how.slice(5 * i, 5 * i + 3).reduce((sum, count) => sum + count, 0);
        rows.set(func[i], row);
        row.counted += counted[i];
        row.thinned += recorded[i] ? counted[i] : 0;
        row.recorded += recorded[i] ? recorded[i] - 1 : 0;
        HOW.forEach((_, k) => {
            row.how[k] += how[5 * i + k];
            row.calls += how[5 * i + k];
        });
        const [total, self, min, max] = TIMES.map((_, k) => times[4 * i + k]);
        row.total += total;
        row.self += self;
        row.min = ended ? Math.min(row.min, min) : row.min;
        row.max = Math.max(row.max, max);
        for (let left = histogram[at++]; left > 0; left--, at += 2) {
            row.histogram.set(histogram[at], (row.histogram.get(histogram[at]) || 0) + histogram[at + 1]);
        }
    }
    return [...rows.values()];
}

// For how many calls each recorded one of a thinned function stands: as qut info --calls has it. '': it is not thinned.
export function ratioText({ thinned, recorded }) {
    const [one, of] = recorded ? [1, Math.floor((thinned + Math.floor(recorded / 2)) / recorded) + 1] : [0, thinned];
    return thinned ? `[${one} of ${formatCount(of)}]` : '';
}

export function howText({ how, calls, counted }) {
    const parts = HOW.map((name, i) => (how[i] ? `${name} ${formatCount(how[i])}` : '')).filter(Boolean);
    return [how[0] === calls && calls ? 'all returned' : parts.join(', '), counted ? `${formatCount(counted)} only counted` : ''].filter(Boolean).join('; ');
}

// From the shortest bucket that has calls to the longest, each bar twice as long as the one before it.
export function barsOf({ histogram }) {
    const buckets = [...histogram.keys()], low = Math.min(...buckets), high = Math.max(...buckets), most = Math.max(...histogram.values());
    return buckets.length ? Array.from({ length: high - low + 1 }, (_, i) => {
        const count = histogram.get(low + i) || 0;
        return { from: low + i ? 2 ** (low + i) : 0, count, height: count ? Math.max(1, Math.round(CHART * count / most)) : 0 };
    }) : [];
}

const compares = {
    calls: (a, b) => b.calls + b.counted - a.calls - a.counted,
    total: (a, b) => b.total - a.total || b.calls - a.calls,
    self: (a, b) => b.self - a.self,
    max: (a, b) => b.max - a.max,
};

function make(name, className, text) {
    const made = document.createElement(name);
    made.className = className;
    made.textContent = text;
    return made;
}

// Numbers alone stand in the markup, which knows what svg is: a namespace's name would look like something outside.
function chartOf(row) {
    const bars = barsOf(row), made = document.createElement('template');
    made.innerHTML = `<svg class="durations" role="img" width="${BAR * bars.length}" height="${CHART}"><title></title>${
        bars.map(({ height }, i) => `<rect x="${BAR * i}" y="${CHART - height}" width="${BAR - 1}" height="${height}"/>`).join('')}</svg>`;
    const chart = made.content.firstChild;
    chart.firstChild.textContent =
        bars.filter(({ count }) => count).map(({ from, count }) => `from ${formatTime(from)}: ${formatCount(count)}`).join('\n');
    return chart;
}

export class CallTable {
    // parts: {section, table, more}
    constructor(parts, trace) {
        Object.assign(this, { parts, trace, sortBy: 'total', shown: ROWS_AT_ONCE });
        parts.section.hidden = trace.callSums.length === 0;
        this.headers = [...parts.table.querySelectorAll('th[data-sort]')];
        for (const header of this.headers) {
            header.querySelector('button').addEventListener('click', () => {
                this.sortBy = header.dataset.sort;
                this.fill();
            });
        }
        parts.more.addEventListener('click', () => {
            this.shown += 5 * ROWS_AT_ONCE;
            this.fill();
        });
        this.fill();
    }
    fill() {
        const rows = [...this.trace.callSums].sort((a, b) => compares[this.sortBy](a, b) || a.func - b.func);
        this.parts.table.tBodies[0].replaceChildren(...rows.slice(0, this.shown).map((row) => this.makeRow(row)));
        this.headers.forEach((header) => header.setAttribute('aria-sort', header.dataset.sort === this.sortBy ? 'descending' : 'none'));
        const hidden = Math.max(0, rows.length - this.shown);
        this.parts.more.hidden = hidden === 0;
        this.parts.more.textContent = `Show more (${hidden} not shown)`;
    }
    makeRow(one) {
        const row = document.createElement('tr'), has = one.calls > 0, isEnded = one.min !== Infinity;
        const time = (isKnown, ns) => make('td', 'number', isKnown ? formatTime(ns) : '–');
        const ratio = ratioText(one), name = make('td', 'stack', `${foldTemplates(this.trace.functionName(one.func))} ${ratio}`.trim()), chart = make('td', '', '');
        name.title = this.trace.functionName(one.func) + (ratio && '\nall calls are counted; its times are of those that are recorded');
        chart.append(chartOf(one));
        row.append(make('td', 'number', formatCount(one.calls + one.counted)), time(has, one.total), time(has, one.self), time(isEnded, one.min),
            time(isEnded, one.max), chart, name, make('td', 'faint', this.trace.moduleName(one.func)), make('td', 'faint', howText(one)));
        return row;
    }
}

// SPDX-License-Identifier: Apache-2.0
// The page of qut diff: a flame graph in red and blue, and all functions as a table.
import { FlameView } from '../page/flame_view.mjs';
import { formatAmount, formatCount, formatTime } from '../page/format.mjs';
import { loadBytes } from '../page/load.mjs';
import { pathButtons, showTooltip } from '../page/pointed.mjs';
import { element, nameButton } from '../page/stack_list.mjs';
import { amountsOf, changeOf, colourOf, isTold, sorted, treeOf } from './diff_model.mjs';

const get = (id) => document.getElementById(id);
const ROWS_AT_ONCE = 100;
const unitOf = (told) => ({ nanoseconds: 'ns', bytes: 'bytes' }[told.unit] || '');
const percent = (share) => `${(100 * share).toFixed(2)} %`;
const signed = (value, text) => `${value < 0 ? '−' : '+'}${text}`;

class DiffPage {
    constructor(told) {
        this.told = told;
        const { frames, share, self } = treeOf(told);
        Object.assign(this, { share, self, rows: told.functions || [], sortBy: 'self', isReversed: false, shown: ROWS_AT_ONCE, search: '' });
        this.rowOf = new Map(this.rows.map((row) => [row.index, row]));
        this.trace = { frames, functionName: (func) => told.tree_functions[func] };
        this.isDark = false;
        const colours = { grey: '#9aa3b0', frame: (frame) => this.colour(frame) };
        this.flame = new FlameView(get('flame-host'), get('flame-canvas'), this.trace, colours, {
            onPoint: (frame, event) => this.point(frame, event),
            onPick: (frame) => this.point(frame),
            onZoom: (frame) => get('breadcrumb').replaceChildren(...pathButtons(this.trace, frame, (at) => this.flame.zoom(at))),
        });
        this.listen();
        this.setDark(matchMedia('(prefers-color-scheme: dark)').matches);
        this.setWidths();
        this.fill();
        this.fillCalls();
    }
    colour(frame) {
        const row = this.rowOf.get(this.trace.frames.func[frame]);
        return frame === 0 ? colourOf(0, false, this.isDark)
            : colourOf(changeOf(this.share[0][frame], this.share[1][frame]), Boolean(row) && isTold(row), this.isDark);
    }
    setDark(isDark) {
        this.isDark = isDark;
        document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
        get('theme').textContent = isDark ? 'Light' : 'Dark';
        this.flame.refreshTheme();
    }
    setWidths() {
        this.flame.setTree(this.trace.frames, { total: this.share[get('widths').value === 'a' ? 0 : 1] });
        get('flame-host').style.height = `${Math.max(120, Math.min(420, this.flame.wantedHeight + 4))}px`;
        get('flame').hidden = this.rows.length === 0;
        get('functions').hidden = this.rows.length === 0;
    }
    listen() {
        get('theme').addEventListener('click', () => this.setDark(!this.isDark));
        get('widths').addEventListener('change', () => this.setWidths());
        get('told-only').addEventListener('change', () => this.fill());
        get('search').addEventListener('input', () => this.find(get('search').value));
        get('more').addEventListener('click', () => {
            this.shown += 5 * ROWS_AT_ONCE;
            this.fill();
        });
        for (const header of get('diff-table').querySelectorAll('th[data-sort]')) {
            header.querySelector('button').addEventListener('click', () => this.sort(header.dataset.sort));
        }
        document.addEventListener('keydown', (event) => {
            if (event.target.tagName !== 'INPUT' && !event.ctrlKey && !event.metaKey && !event.altKey) {
                if (event.key === '/') {
                    get('search').focus();
                    event.preventDefault();
                } else if (event.key === 't') {
                    this.setDark(!this.isDark);
                }
            }
        });
    }
    sort(column) {
        this.isReversed = column === this.sortBy && !this.isReversed;
        this.sortBy = column;
        this.fill();
    }
    find(text) {
        this.search = text.toLowerCase();
        this.flame.setMatches(this.search ? this.told.tree_functions.map((name) => name.toLowerCase().includes(this.search)) : null);
        this.fill();
    }
    // ---- what is pointed at
    point(frame, event) {
        const is = frame >= 0 && frame < this.trace.frames.count;
        get('status').textContent = is ? [this.heading(frame), ...this.lines(frame)].join(' · ') : '';
        showTooltip(get('tooltip'), is && event ? { heading: this.heading(frame), lines: this.lines(frame) } : null, event);
    }
    heading(frame) {
        return frame === 0 ? 'all' : this.trace.functionName(this.trace.frames.func[frame]);
    }
    lines(frame) {
        const both = (name, [a, b]) => `${name}: ${percent(a[frame])} before, ${percent(b[frame])} now (${signed(b[frame] - a[frame], (100 * Math.abs(b[frame] - a[frame])).toFixed(2))})`;
        const row = this.rowOf.get(this.trace.frames.func[frame]);
        return [both('here', this.share), both('by itself', this.self),
            frame !== 0 && row ? `the function: self ${row.self.verdict}, total ${row.total.verdict}` : ''].filter(Boolean);
    }
    // ---- tables
    value(value) {
        return this.told.by === 'share' ? percent(value) : formatAmount(value, unitOf(this.told));
    }
    addItem(row, item) {
        const error = item.error === undefined ? '' : ` ±${this.told.by === 'share' ? (100 * item.error).toFixed(2) : this.value(item.error)}`;
        const change = this.told.by === 'share' ? (100 * Math.abs(item.change)).toFixed(2) : this.value(Math.abs(item.change));
        row.append(element('td', 'number', this.value(item.a)), element('td', 'number', this.value(item.b)),
            element('td', 'number', signed(item.change, change) + error), this.verdict(item));
    }
    verdict(item) {
        const words = { more: 'more', less: 'less', 'cannot tell': '–' }, cell = element('td', item.verdict === 'cannot tell' ? 'faint' : `diff-${item.verdict}`, words[item.verdict]);
        cell.title = `chance ${item.chance.toPrecision(3)}, corrected ${item.chance_corrected.toPrecision(3)}`;
        return cell;
    }
    fill() {
        const { told } = this, isOnly = get('told-only').checked;
        const wanted = this.rows.filter((row) => (!isOnly || isTold(row)) && row.function.toLowerCase().includes(this.search));
        const rows = sorted(told, wanted, this.sortBy, this.isReversed);
        get('diff-table').tBodies[0].replaceChildren(...rows.slice(0, this.shown).map((row) => this.makeRow(row)));
        for (const header of get('diff-table').querySelectorAll('th[data-sort]')) {
            const ascending = (header.dataset.sort === 'name') !== this.isReversed;
            header.setAttribute('aria-sort', header.dataset.sort !== this.sortBy ? 'none' : ascending ? 'ascending' : 'descending');
        }
        const hidden = Math.max(0, rows.length - this.shown);
        get('more').hidden = hidden === 0;
        get('more').textContent = `Show more (${hidden} not shown)`;
        get('found').textContent = this.search ? `${wanted.length} found` : '';
        const count = this.rows.filter(isTold).length;
        get('functions-count').textContent = `${formatCount(count)} of ${formatCount(this.rows.length)} told; of 20 that are told, one may be chance`;
    }
    makeRow(one) {
        const row = element('tr'), [a, b] = amountsOf(this.told, one), unit = unitOf(this.told), name = element('td', 'name');
        this.addItem(row, one.self);
        this.addItem(row, one.total);
        name.append(nameButton(one.function, 'plain', 'Search for it', () => {
            get('search').value = one.function;
            this.find(one.function);
        }));
        row.append(element('td', 'number', signed(b - a, formatAmount(Math.abs(b - a), unit))), name, element('td', 'faint', one.library));
        return row;
    }
    fillCalls() {
        const calls = this.told.calls || [];
        get('exact').hidden = calls.length === 0;
        get('exact-table').tBodies[0].replaceChildren(...calls.slice(0, 5 * ROWS_AT_ONCE).map((one) => {
            const row = element('tr'), mean = [0, 1].map((side) => (one.with_events[side] ? one.total_ns[side] / one.with_events[side] : 0));
            const pair = (values, format) => row.append(...values.map((value) => element('td', 'number', format(value))));
            pair(one.calls, formatCount);
            pair(one.total_ns, formatTime);
            pair(one.self_ns, formatTime);
            pair(mean, formatTime);
            const change = mean[0] && mean[1] ? mean[1] / mean[0] - 1 : null;
            row.append(element('td', 'number', change === null ? '–' : signed(change, `${Math.abs(100 * change).toFixed(1)} %`)), this.verdict(one.mean_ns),
                element('td', 'name', one.function));
            return row;
        }));
    }
}

async function start() {
    const told = JSON.parse(new TextDecoder().decode(await loadBytes(document.querySelectorAll('script.data'))));
    get('loading').hidden = true;
    get('main').hidden = false;
    new DiffPage(told);
    document.documentElement.dataset.ready = 'true';
}

start().catch((error) => {
    get('loading').hidden = false;
    get('loading').textContent = `This page cannot be shown: ${error.message}`;
    console.error(error);
});

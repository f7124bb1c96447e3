// SPDX-License-Identifier: Apache-2.0
// The functions as a table that can be sorted: a real one, some hundred rows at a time.
import { formatAmount, formatSureShare } from './format.mjs';
import { nameButton } from './stack_list.mjs';

const ROWS_AT_ONCE = 100;

const compares = {
    name: (a, b, names) => (names(a.func) < names(b.func) ? -1 : 1),
    module: (a, b, names, modules) => (modules(a.func) < modules(b.func) ? -1 : modules(a.func) > modules(b.func) ? 1 : b.self - a.self),
    self: (a, b) => b.self - a.self || b.total - a.total || a.func - b.func,
    total: (a, b) => b.total - a.total || b.self - a.self || a.func - b.func,
};

function cell(row, className, text) {
    const element = document.createElement('td');
    element.className = className;
    element.textContent = text;
    row.append(element);
    return element;
}

export class TableView {
    // events: onFunction(func)
    constructor(table, more, trace, colours, events) {
        this.body = table.tBodies[0];
        this.headers = [...table.querySelectorAll('th[data-sort]')];
        this.more = more;
        this.trace = trace;
        this.colours = colours;
        this.events = events;
        this.sortBy = 'self';
        this.isReversed = false;
        this.rows = [];
        this.shown = ROWS_AT_ONCE;
        for (const header of this.headers) {
            header.querySelector('button').addEventListener('click', () => this.sort(header.dataset.sort));
        }
        more.addEventListener('click', () => {
            this.shown += 5 * ROWS_AT_ONCE;
            this.fill();
        });
    }
    // rows of functionTable, `all`: what everything weighs; certainty as of aggregate.
    setRows(rows, all, unit, certainty) {
        Object.assign(this, { rows, all, unit, certainty, shown: ROWS_AT_ONCE });
        this.order();
    }
    setMatches(matches) {
        this.matches = matches;
        this.fill();
    }
    sort(column) {
        this.isReversed = column === this.sortBy && !this.isReversed;
        this.sortBy = column;
        this.order();
    }
    order() {
        const { functionName, moduleName } = this.trace, sign = this.isReversed ? -1 : 1;
        this.rows.sort((a, b) => sign * compares[this.sortBy](a, b, functionName, moduleName));
        for (const header of this.headers) {
            const isText = header.dataset.sort === 'name' || header.dataset.sort === 'module';
            const ascending = isText !== this.isReversed;
            header.setAttribute('aria-sort', header.dataset.sort !== this.sortBy ? 'none' : ascending ? 'ascending' : 'descending');
        }
        this.fill();
    }
    fill() {
        const rows = this.matches ? this.rows.filter(({ func }) => this.matches[func]) : this.rows;
        this.body.replaceChildren(...rows.slice(0, this.shown).map((row) => this.makeRow(row)));
        const hidden = rows.length - Math.min(rows.length, this.shown);
        this.more.hidden = hidden === 0;
        this.more.textContent = `Show more (${hidden} not shown)`;
    }
    makeRow({ func, self, total, told, totalTold }) {
        const row = document.createElement('tr');
        this.amount(row, self, told, 'self');
        this.amount(row, total, totalTold, 'total');
        const name = this.trace.functionName(func);
        cell(row, 'name', '').append(nameButton(name, 'plain', 'Callers, callees and lines', () => this.events.onFunction(func)));
        const module = cell(row, 'module', this.trace.moduleName(func));
        const swatch = document.createElement('span');
        swatch.className = 'swatch';
        swatch.style.backgroundColor = this.colours.module(this.trace.functions.module[func]);
        module.prepend(swatch);
        const file = this.trace.fileName(func);
        cell(row, 'file', file).title = file;
        return row;
    }
    amount(row, value, told, className) {
        cell(row, `number ${className}`, formatAmount(value, this.unit)).dataset.value = value;
        const share = cell(row, 'number share', formatSureShare(value, this.all, this.certainty, told));
        share.style.setProperty('--share', `${this.all ? Math.min(100, 100 * value / this.all) : 0}%`);
    }
}

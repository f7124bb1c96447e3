// SPDX-License-Identifier: Apache-2.0
// One function: its callers, its callees, its lines, each with what it weighs.
import { linesOf, neighboursOf } from './callers.mjs';
import { formatAmount, formatSureShare } from './format.mjs';
import { foldTemplates } from './names.mjs';
import { element, nameButton } from './stack_list.mjs';

const ROWS_SHOWN = 12;

export class FunctionView {
    // parts: {section, title, facts, lists, close}. events: onFunction(func), onClose().
    constructor(parts, trace, segments, repeats, events) {
        Object.assign(this, { parts, trace, segments, repeats, events, func: -1 });
        parts.close.addEventListener('click', () => events.onClose());
    }
    // What there is to show of the chosen one; null: none is.
    * compute(sums, choice) {
        const { trace, func } = this;
        return func < 0 ? null : { ...(yield* neighboursOf(trace, this.repeats, sums, func)),
            lines: yield* linesOf(trace, this.segments, choice, func), sums, unit: choice.weight.unit };
    }
    set(found) {
        const { parts, trace, func } = this;
        parts.section.hidden = !found;
        if (!found) {
            return;
        }
        const { sums, unit } = found, file = trace.fileName(func);
        const amount = (value) => `${formatAmount(value, unit)} (${formatSureShare(value, sums.total[0], sums.certainty)})`;
        const name = trace.functionName(func), folded = foldTemplates(name), whole = element('details');
        parts.title.textContent = folded;
        parts.title.title = name;
        whole.append(element('summary', '', 'whole name'), name);
        parts.facts.replaceChildren(...[['self', amount(found.self)], ['total', amount(found.total)], ['module', trace.moduleName(func)], ['file', file]]
            .filter(([, value]) => value).map(([name, value]) => {
                const box = element('div');
                box.append(element('dt', '', name), element('dd', '', value));
                return box;
            }), name === folded ? '' : whole);
        const byFunction = (key) => (key < 0 ? element('span', 'faint', 'no caller: the stack begins here')
            : nameButton(trace.functionName(key), 'plain', 'Its callers and callees', () => this.events.onFunction(key)));
        const short = file.replace(/.*\//, '');
        parts.lists.replaceChildren(this.list('Callers', found.callers, found, byFunction), this.list('Callees', found.callees, found, byFunction),
            ...(found.lines.length ? [this.list('Lines of its own time', found.lines, found, (line) => element('span', 'line', `${short}:${line}`))] : []));
    }
    list(heading, rows, { sums, unit }, content) {
        const box = element('div', 'neighbours'), table = element('table', 'list'), body = element('tbody');
        box.append(element('h3', '', heading), table);
        table.append(body);
        for (const { key, amount } of rows.slice(0, ROWS_SHOWN)) {
            const row = element('tr'), cell = element('td', 'name'), share = element('td', 'number', formatSureShare(amount, sums.total[0], sums.certainty));
            const number = element('td', 'number', formatAmount(amount, unit));
            number.dataset.value = amount;
            cell.append(content(key));
            row.append(number, share, cell);
            body.append(row);
        }
        const rest = rows.length - body.childElementCount;
        if (rest > 0 || rows.length === 0) {
            box.append(element('p', 'faint', rest > 0 ? `and ${rest} more` : 'none'));
        }
        return box;
    }
}

// SPDX-License-Identifier: Apache-2.0
// What is pointed at: the path to a frame as buttons, and the box beside the mouse.
import { frameName } from './data.mjs';
import { foldTemplates } from './names.mjs';
import { element } from './stack_list.mjs';

const WHOLE = 6, OUTERMOST = 2, INNERMOST = 3; // of a deep path the ends

// From all to the frame. onFrame(frame): one was clicked.
export function pathButtons(trace, frame, onFrame) {
    const path = [], parts = [], { parent } = trace.frames;
    for (let at = frame; at !== 0; at = parent[at]) {
        path.unshift(at);
    }
    const shown = path.length > WHOLE ? [...path.slice(0, OUTERMOST), -1, ...path.slice(-INNERMOST)] : path;
    for (const at of [0, ...shown]) {
        if (parts.length) {
            parts.push(element('span', '', at < 0 ? '› …' : '›'));
        }
        if (at < 0) {
            continue;
        }
        const name = frameName(trace, at), button = element('button', '', foldTemplates(name));
        button.type = 'button';
        button.title = name;
        button.addEventListener('click', () => onFrame(at));
        if (at === frame) {
            button.setAttribute('aria-current', 'true');
        }
        parts.push(button);
    }
    return parts;
}

// what: {heading, lines}; null: nothing is.
export function showTooltip(tooltip, what, event) {
    tooltip.hidden = !what;
    if (!what) {
        return;
    }
    tooltip.replaceChildren(element('b', '', what.heading), ...what.lines.filter(Boolean).map((line) => element('div', '', line)));
    const { width, height } = tooltip.getBoundingClientRect();
    const left = event.clientX + 14 + width > window.innerWidth ? event.clientX - width - 10 : event.clientX + 14;
    const top = event.clientY + 18 + height > window.innerHeight - 28 ? event.clientY - height - 10 : event.clientY + 18;
    tooltip.style.left = `${Math.max(4, left)}px`;
    tooltip.style.top = `${Math.max(4, top)}px`;
}

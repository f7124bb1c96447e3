// SPDX-License-Identifier: Apache-2.0
// Stacks as text: a line of the innermost functions, and all of it as a list.
import { frameName } from './data.mjs';
import { describePlace } from './describe.mjs';
import { foldTemplates, nameParts } from './names.mjs';
import { innermost } from './waits.mjs';

const FRAMES_LISTED = 120, FRAMES_IN_LINE = 4;

export function element(name, className, text) {
    const made = document.createElement(name);
    if (className) {
        made.className = className;
    }
    if (text !== undefined) {
        made.textContent = text;
    }
    return made;
}

// A button that says a function's name: where there is little room its middle is cut. onClick(): it was clicked.
export function nameButton(name, className, title, onClick) {
    const button = element('button', `name ${className}`), [head, tail, parameters] = nameParts(name);
    button.type = 'button';
    button.title = title ? `${name}\n${title}` : name;
    button.append(element('span', 'head', head), element('span', 'tail', tail), element('span', 'parameters', parameters));
    button.addEventListener('click', onClick);
    return button;
}

// "malloc ← parse ← main": of the frames that are not all there is, the innermost.
export function stackLine(trace, frame) {
    if (frame < 0) {
        return '';
    }
    const isAll = trace.frames.depth[frame] <= FRAMES_IN_LINE;
    const names = innermost(trace, frame, FRAMES_IN_LINE).map((one) => foldTemplates(frameName(trace, one)));
    return names.length ? names.join(' ← ') + (isAll ? '' : ' ← …') : '[no frame]';
}

export function stackCell(trace, frame) {
    const cell = element('td', 'stack', stackLine(trace, frame));
    cell.title = frame < 0 ? '' : innermost(trace, frame, FRAMES_LISTED).map((one) => frameName(trace, one)).join('\n');
    return cell;
}

// A heading and the frames, innermost first. onFunction(func): one was clicked.
export function stackList(trace, frame, heading, onFunction) {
    const box = element('div', 'stack-list'), list = element('ol');
    box.append(element('h3', '', heading), list);
    for (const one of innermost(trace, frame, FRAMES_LISTED)) {
        const item = element('li');
        const name = nameButton(frameName(trace, one), 'plain', 'Search for it', () => onFunction(trace.frames.func[one]));
        item.append(name, element('span', 'faint', describePlace(trace, one)));
        list.append(item);
    }
    const rest = trace.frames.depth[frame] - list.childElementCount;
    if (rest > 0) {
        box.append(element('p', 'faint', `and ${rest} further out`));
    } else if (!list.childElementCount) {
        box.append(element('p', 'faint', 'no frame is known'));
    }
    return box;
}

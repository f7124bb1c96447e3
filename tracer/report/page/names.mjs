// SPDX-License-Identifier: Apache-2.0
// Names of functions as they fit: template arguments folded, then parameters, then a cut in the middle. Names of C++ and
// Rust differ at their ends, so that is what stays.

const TAIL = 14, SHORT = 20; // characters of a name that a table never cuts; names that it hardly has to

// "[kernel]" alone: interrupts, and what is not known of it.
export const isKernelName = (name) => name === '[kernel]' || name.startsWith('[kernel] ');

// Where the bracket at `open` closes; -1: nowhere. The > of -> closes nothing.
function closingOf(name, open, left, right) {
    for (let at = open, depth = 0; at < name.length; at++) {
        if (name[at] === left) {
            depth++;
        } else if (name[at] === right && name[at - 1] !== '-' && --depth === 0) {
            return at;
        }
    }
    return -1;
}

// Whether the < at `at` begins arguments: behind a word, that is no operator's. What begins a path ("<T as Trait>::f",
// "<lambda()>") says which function it is.
function beginsArguments(name, at) {
    const before = name.slice(0, at);
    if (/operator[^\w\s]*\s?$/.test(before)) {
        return /operator([^\w\s]+ |[^\w\s<]+)$/.test(before); // "operator<< <char>", "operator==<char>"
    }
    return /\w$/.test(before) || (/\w::$/.test(before) && !/^<(impl|lambda|\w+ as) ?/.test(name.slice(at)));
}

// "std::vector<int, std::allocator<int> >::push_back" -> "std::vector<…>::push_back"
export function foldTemplates(name) {
    let folded = '', at = 0;
    for (let open = name.indexOf('<'); open >= 0; open = name.indexOf('<', open + 1)) {
        if (open < at || !beginsArguments(name, open)) {
            continue;
        }
        const close = closingOf(name, open, '<', '>');
        if (close > open + 2) {
            folded += `${name.slice(at, open)}<…>`;
            at = close + 1;
        }
    }
    return folded + name.slice(at);
}

// Where a name's parameters begin; its length where it has none. "operator()" and "(anonymous namespace)" are names.
function parametersOf(name) {
    const close = name.lastIndexOf(')'), open = /\)( const)?$/.test(name) ? matchingOpen(name, close) : -1;
    return open < 1 || name.slice(0, open).endsWith('operator') || name.startsWith('(anonymous', open) ? name.length : open;
}

// "f(int, char const*)" -> "f(…)"
function foldParameters(name) {
    const open = parametersOf(name), close = name.lastIndexOf(')');
    return close - open < 3 ? name : `${name.slice(0, open)}(…)${name.slice(close + 1)}`;
}

function matchingOpen(name, close) {
    for (let at = close, depth = 0; at >= 0; at--) {
        depth += name[at] === ')' ? 1 : name[at] === '(' ? -1 : 0;
        if (depth === 0) {
            return at;
        }
    }
    return -1;
}

// What is left where nothing else fits: no arguments, no parameters, no type of what is returned.
function shortest(name) {
    return foldParameters(foldTemplates(name)).replace(/<…>|\(…\)/g, '').replace(/^(void|bool|int|auto|char|unsigned long) (?!operator)/, '')
        .replace(/ const$/, '');
}

// No longer than `room` characters, or '' where that is too little to be of use.
export function fitName(name, room) {
    if (name.length <= room) {
        return name;
    }
    for (const shorter of [foldTemplates(name), foldParameters(foldTemplates(name))]) {
        if (shorter.length <= room) {
            return shorter;
        }
    }
    const short = shortest(name), tail = Math.floor((room - 1) * 0.6);
    if (short.length <= room) {
        return short;
    }
    return room < 3 ? '' : `${short.slice(0, room - 1 - tail).replace(/…$/, '')}…${tail ? short.slice(-tail).replace(/^…/, '') : ''}`;
}

// For a line that the browser cuts, the folded name in three parts: of the first one the end is cut where there is little
// room, the second stays, the third, its parameters, is cut before any of these.
export function nameParts(name) {
    const folded = foldTemplates(name), open = parametersOf(folded), own = folded.slice(0, open);
    return own.length <= SHORT ? [own, '', folded.slice(open)] : [own.slice(0, -TAIL), own.slice(-TAIL), folded.slice(open)];
}

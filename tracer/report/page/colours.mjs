// SPDX-License-Identifier: Apache-2.0
// A module has its hue by its name, in every report the same; its functions differ a little in lightness. The hues are
// those that Okabe and Ito chose for eyes of all kinds, thinned so that text stands on them.

const hues = [
    [230, 159, 0], [86, 180, 233], [0, 158, 115], [240, 228, 66], [0, 114, 178], [213, 94, 0], [204, 121, 167],
];
const GREY = [150, 156, 166];
const CLASS_LABEL = 5, CLASS_END = 6;
const SHADES = 5;

export function hashText(text) {
    let hash = 0x811c9dc5; // FNV-1a
    for (let i = 0; i < text.length; i++) {
        hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    }
    hash ^= hash >>> 15;
    hash = Math.imul(hash, 0x2c1b3c6d);
    return (hash ^ hash >>> 12) >>> 0;
}

function mix(colour, other, share) {
    return colour.map((value, i) => value * (1 - share) + other[i] * share);
}

function css(colour) {
    return `rgb(${colour.map(Math.round).join(',')})`;
}

// As the pixels of an image have it.
function packed(colour) {
    const [red, green, blue] = colour.map(Math.round);
    return (0xff000000 | blue << 16 | green << 8 | red) >>> 0;
}

// A little towards the colour that has its parts in another order: the hue moves, the brightness hardly.
function turned(hue, by) {
    const [red, green, blue] = hue;
    return mix(hue, by < 0 ? [green, blue, red] : [blue, red, green], Math.abs(by));
}

function shaded(hue, shade, isDark) {
    const turn = turned(hue, ((shade * 7) % 5 - 2) * 0.08);
    return isDark ? mix(turn, [18, 20, 26], 0.4 + 0.05 * shade) : mix(turn, [255, 255, 255], 0.36 + 0.075 * shade);
}

// libc.so.6 and libc-2.36.so: versions change the hue of nothing.
function stableName(module) {
    return module.replace(/[-.]?\d[\d.]*/g, '').replace(/\.so\.?.*$/, '.so');
}

export class Colours {
    constructor(trace) {
        this.trace = trace;
        this.setDark(false);
    }
    setDark(isDark) {
        this.isDark = isDark;
        this.ofFunction = new Array(this.trace.functions.name.length);
        this.pixelOfFunction = new Uint32Array(this.trace.functions.name.length); // 0: not asked for yet
        const grey = shaded(GREY, 1, isDark);
        this.grey = css(grey);
        this.greyPixel = packed(grey);
        this.root = css(shaded(GREY, 3, isDark));
    }
    hueOfModule(module) {
        const name = this.trace.strings.text(module);
        return name === '' ? GREY : hues[hashText(stableName(name)) % hues.length];
    }
    module(module) {
        return css(shaded(this.hueOfModule(module), 1, this.isDark));
    }
    make(frame) {
        const { frames, functions } = this.trace, func = frames.func[frame];
        const hue = frames.cls[frame] === CLASS_LABEL ? GREY : this.hueOfModule(functions.module[func]);
        const colour = shaded(hue, hashText(this.trace.functionName(func)) % SHADES, this.isDark);
        this.ofFunction[func] = css(colour);
        this.pixelOfFunction[func] = packed(colour);
    }
    frame(frame) {
        const { frames } = this.trace;
        if (frame === 0 || frames.cls[frame] === CLASS_END) {
            return frame === 0 ? this.root : this.grey;
        }
        if (this.ofFunction[frames.func[frame]] === undefined) {
            this.make(frame);
        }
        return this.ofFunction[frames.func[frame]];
    }
    pixel(frame) {
        const { frames } = this.trace;
        if (frame === 0 || frames.cls[frame] === CLASS_END) {
            return this.greyPixel;
        }
        if (this.pixelOfFunction[frames.func[frame]] === 0) {
            this.make(frame);
        }
        return this.pixelOfFunction[frames.func[frame]];
    }
}

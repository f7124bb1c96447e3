// SPDX-License-Identifier: Apache-2.0
// Each module has a hue of its own, those with most frames the first ones; its functions differ in lightness. The kernel
// has one that no module has. Colours of states are strong where these are pale (light) or deep (dark), so that
// text stands on them.
import { isKernelName } from './names.mjs';

const CLASS_LABEL = 5, CLASS_END = 6;
const SHADES = 4;
const KERNEL = { hue: 20, chroma: 0.115, ring: 0 }, GREY = { hue: 260, chroma: 0.012, ring: 0 };
// Degrees around the circle of OKLCH, so that neighbours in the list are far apart; then again, on another ring.
const hues = [250, 75, 150, 310, 200, 112, 345];
const rings = [{ light: 0.84, dark: 0.43, chroma: 0.085 }, { light: 0.75, dark: 0.34, chroma: 0.1 }];

export function hashText(text) {
    let hash = 0x811c9dc5; // FNV-1a
    for (let i = 0; i < text.length; i++) {
        hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    }
    hash ^= hash >>> 15;
    hash = Math.imul(hash, 0x2c1b3c6d);
    return (hash ^ hash >>> 12) >>> 0;
}

// A colour of OKLCH as red, green and blue; what no screen has is cut.
function rgbOf(lightness, chroma, hue) {
    const a = chroma * Math.cos(hue * Math.PI / 180), b = chroma * Math.sin(hue * Math.PI / 180);
    const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3;
    return [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s, -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s].map((value) => {
        const inside = Math.min(1, Math.max(0, value));
        return 255 * (inside <= 0.0031308 ? 12.92 * inside : 1.055 * inside ** (1 / 2.4) - 0.055);
    });
}

function css(colour) {
    return `rgb(${colour.map(Math.round).join(',')})`;
}

// As the pixels of an image have it.
function packed(colour) {
    const [red, green, blue] = colour.map(Math.round);
    return (0xff000000 | blue << 16 | green << 8 | red) >>> 0;
}

// Shades lie closely around the ring's own lightness.
function shaded({ hue, chroma, ring }, shade, isDark) {
    return rgbOf(rings[ring][isDark ? 'dark' : 'light'] + (shade - 1) * (isDark ? 0.02 : 0.022), chroma, hue);
}

// What each module looks like: {hue, chroma, ring}.
function huesOfModules({ frames, functions, strings }) {
    const counts = new Map();
    for (let frame = 1; frame < frames.count; frame++) {
        const module = functions.module[frames.func[frame]];
        counts.set(module, (counts.get(module) || 0) + 1);
    }
    const own = (module) => strings.text(module) !== '' && !isKernelName(strings.text(module));
    const named = [...counts].filter(([module]) => own(module)).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    return new Map(named.map(([module], i) => {
        const ring = Math.floor(i / hues.length) % rings.length;
        return [module, { hue: hues[i % hues.length] + (ring ? 20 : 0), chroma: rings[ring].chroma, ring }];
    }));
}

export class Colours {
    constructor(trace) {
        this.trace = trace;
        this.ofModule = huesOfModules(trace);
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
    module(module) {
        const hue = isKernelName(this.trace.strings.text(module)) ? KERNEL : this.ofModule.get(module) || GREY;
        return css(shaded(hue, 1, this.isDark));
    }
    make(func, isLabel) {
        const { functions } = this.trace, name = this.trace.functionName(func);
        const hue = isKernelName(name) ? KERNEL : (!isLabel && this.ofModule.get(functions.module[func])) || GREY;
        const colour = shaded(hue, hashText(name) % SHADES, this.isDark);
        this.ofFunction[func] = css(colour);
        this.pixelOfFunction[func] = packed(colour);
    }
    // Of a function that has a place in a file.
    func(func) {
        if (this.ofFunction[func] === undefined) {
            this.make(func, false);
        }
        return this.ofFunction[func];
    }
    // `frames`: the tree that the frame is of.
    frame(frame, frames = this.trace.frames) {
        const func = frames.func[frame];
        if (frame === 0 || frames.cls[frame] === CLASS_END) {
            return frame === 0 ? this.root : this.grey;
        }
        if (this.ofFunction[func] === undefined) {
            this.make(func, frames.cls[frame] === CLASS_LABEL);
        }
        return this.ofFunction[func];
    }
    pixel(frame) {
        const { frames } = this.trace, func = frames.func[frame];
        if (frame === 0 || frames.cls[frame] === CLASS_END) {
            return this.greyPixel;
        }
        if (this.pixelOfFunction[func] === 0) {
            this.make(func, frames.cls[frame] === CLASS_LABEL);
        }
        return this.pixelOfFunction[func];
    }
}

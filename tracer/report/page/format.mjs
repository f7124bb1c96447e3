// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them.

export function formatCount(value) {
    return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ',');
}

const timeUnits = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];

// Three digits that count: 1.23 s, 45.6 ms.
export function formatTime(ns) {
    const size = Math.abs(ns);
    const [unit, name] = timeUnits.find(([least]) => size >= least) || timeUnits[3];
    return `${formatDigits(ns / unit)} ${name}`;
}

// All in the unit of `spanNs`, with decimals enough to tell two times apart that differ by `stepNs`.
export function formatMoment(ns, stepNs, spanNs) {
    const [unit, name] = timeUnits.find(([least]) => spanNs >= least) || timeUnits[3];
    const decimals = Math.max(0, Math.min(9, Math.ceil(-Math.log10(stepNs / unit) - 1e-9)));
    return `${(ns / unit).toFixed(decimals)} ${name}`;
}

const byteUnits = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']];

export function formatBytes(bytes) {
    const [unit, name] = byteUnits.find(([least]) => Math.abs(bytes) >= least) || byteUnits[4];
    return `${unit === 1 ? formatCount(bytes) : formatDigits(bytes / unit)} ${name}`;
}

function formatDigits(value) {
    const size = Math.abs(value);
    if (Number.isInteger(value) && size < 1000) {
        return value.toString();
    }
    return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

export function formatShare(part, whole) {
    if (!whole) {
        return '–';
    }
    const percent = 100 * part / whole;
    return `${percent.toFixed(percent >= 9.995 || percent === 0 ? 1 : 2)} %`;
}

// By how much a share may be off, at 95 %; '' where it is no estimate (certainty null). told: what the coarse clock told
// of it (certainty.mjs).
export function formatError(part, whole, certainty, told) {
    if (!whole || !certainty) {
        return '';
    }
    const percent = 100 * certainty.errorOf(part, told);
    if (percent < 0.005) {
        return '';
    }
    return `±${percent.toFixed(percent >= 9.995 ? 0 : percent >= 0.0995 ? 1 : 2)}`;
}

// "12.3 % ±0.8"
export function formatSureShare(part, whole, certainty, told) {
    const error = formatError(part, whole, certainty, told);
    return error ? `${formatShare(part, whole)} ${error}` : formatShare(part, whole);
}

export function formatAmount(value, unit) {
    switch (unit) {
    case 'ns': return formatTime(value);
    case 'bytes': return formatBytes(value);
    default: return formatCount(value);
    }
}

// 64 bits in two halves.
export function formatHex(low, high) {
    const digits = low.toString(16);
    return high ? `0x${high.toString(16)}${digits.padStart(8, '0')}` : `0x${digits}`;
}

// SPDX-License-Identifier: Apache-2.0
// The bytes out of the page's blocks of data (tracer/report/blob.c).
import { decodeTrace } from './data.mjs';
import { pause, runInSlices, sliceMs } from './work.mjs';

function decodeBlock(text) {
    const binary = atob(text); // which ignores line ends
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) {
        bytes[i] = binary.charCodeAt(i);
    }
    return bytes;
}

function* decodeBlocks(blocks) {
    const parts = [];
    for (const block of blocks) {
        parts.push(decodeBlock(block.textContent));
        block.remove(); // the text is not needed any more
        yield;
    }
    return parts;
}

function join(parts) {
    const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
        bytes.set(part, at);
        at += part.length;
    }
    return bytes;
}

async function inflate(parts) {
    if (typeof DecompressionStream === 'undefined') {
        throw new Error('this browser cannot decompress: DecompressionStream is not there');
    }
    const reader = new Blob(parts).stream().pipeThrough(new DecompressionStream('deflate')).getReader(), out = [];
    for (let until = performance.now() + sliceMs;;) {
        const { done, value } = await reader.read();
        if (done) {
            return out;
        }
        out.push(value);
        // What is read already comes without a pause.
        if (performance.now() > until) {
            await pause();
            until = performance.now() + sliceMs;
        }
    }
}

// All of them, unpacked.
export async function loadBytes(blocks) {
    if (blocks.length === 0) {
        throw new Error('this report has no data: the file is cut off');
    }
    const packing = blocks[0].dataset.packing;
    let parts = await runInSlices(decodeBlocks([...blocks]));
    if (packing === 'deflate') {
        parts = await inflate(parts);
    }
    return join(parts);
}

export async function loadTrace(blocks) {
    return runInSlices(decodeTrace(await loadBytes(blocks)));
}

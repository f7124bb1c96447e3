// SPDX-License-Identifier: Apache-2.0
// Arrows on the timeline: from the thread that gave or woke to the one that waited.

const FLOWS_DRAWN = 2000, PIXELS_PER_FLOW = 24;

// From left to right in a curve; straight down or up where both ends are at the same place.
function drawArrow(context, left, top, right, bottom, hasEnds) {
    const bend = right - left < 16 ? 0 : Math.min(60, (right - left) / 2), turn = Math.sign(bottom - top) || 1;
    context.beginPath();
    context.moveTo(left, top);
    context.bezierCurveTo(left + bend, top, right - bend, bottom, right, bottom - (bend ? 0 : 4 * turn));
    context.stroke();
    if (!hasEnds) {
        return;
    }
    context.beginPath();
    context.moveTo(right, bottom);
    context.lineTo(right - (bend ? 7 : 3.5), bottom - (bend ? 3.5 : 7 * turn));
    context.lineTo(right - (bend ? 7 : -3.5), bottom - (bend ? -3.5 : 7 * turn));
    context.fill();
    context.beginPath();
    context.arc(left, top, 2, 0, 7);
    context.fill();
}

function draw(context, flows, colour, alpha, hasEnds) {
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.lineWidth = alpha > 0.8 ? 1.5 : 1;
    context.globalAlpha = alpha;
    flows.forEach((flow) => drawArrow(context, ...flow, hasEnds));
    context.globalAlpha = 1;
}

// flows: {from, to} (samples); place(sample): {x, y, isShown}: false where its thread is behind a closed line. Where there are too many to be told apart they are but hinted at;
// those to a sample in `picked` (null: none) are drawn above all, and the others then hardly at all.
export function drawFlows(context, flows, picked, place, box, theme) {
    const some = [], chosen = [];
    for (const flow of flows) {
        const from = place(flow.from), to = place(flow.to), isPicked = picked !== null && picked.has(flow.to);
        if ((!isPicked && !(from.isShown && to.isShown)) || to.x < box.left || from.x > box.right || (isPicked ? chosen : some).length >= FLOWS_DRAWN) {
            continue;
        }
        (isPicked ? chosen : some).push([from.x, from.y, to.x, to.y]);
    }
    const isDense = some.length > (box.right - box.left) / PIXELS_PER_FLOW;
    context.save();
    context.beginPath();
    context.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
    context.clip();
    const hint = picked !== null ? 0.08 : isDense ? 0.15 : 0.75;
    draw(context, some, theme.accent, hint, !isDense && picked === null);
    draw(context, chosen, theme.ink, 0.9, true);
    context.restore();
}

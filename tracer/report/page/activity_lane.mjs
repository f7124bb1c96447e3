// SPDX-License-Identifier: Apache-2.0
// The lane that says how busy a thread or a group of them was.
import { Activity } from './activity.mjs';
import { gutterOf } from './timeline_layout.mjs';

const COLUMN = 3; // pixels of a bar

// Bars upward: processor time, as a share of what `most` threads can use; downward: time blocked, of all of them.
export function drawActivity(context, { theme, view, width }, row, activities, y, height, waitColour) {
    const gutter = gutterOf(width), columns = Math.max(1, Math.floor((width - gutter) / COLUMN));
    const key = [view.from, view.to, columns].join();
    if (!row.shares || row.shares.key !== key) {
        row.shares = { key, ...Activity.shares(activities, view.from, view.to, columns) };
    }
    const { cpu, blocked } = row.shares, hasBlocked = waitColour !== '', up = hasBlocked ? Math.round(height * 0.62) : height;
    const most = Math.max(1, ...cpu), down = height - up - 1;
    for (let i = 0; i < columns; i++) {
        const left = gutter + i * COLUMN, tall = cpu[i] > 0 ? Math.max(1, Math.min(1, cpu[i] / most) * up) : 0;
        context.fillStyle = theme.running;
        context.fillRect(left, y + up - tall, COLUMN - 0.5, tall);
        if (hasBlocked && blocked[i] > 0.01) {
            context.fillStyle = waitColour;
            context.fillRect(left, y + up + 1, COLUMN, Math.max(1, Math.min(1, blocked[i] / activities.length) * down));
        }
    }
    context.fillStyle = theme.line;
    context.fillRect(gutter, y + up, width - gutter, 1);
}

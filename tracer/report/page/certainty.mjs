// SPDX-License-Identifier: Apache-2.0
// How sure a share is. Two clocks tell where processor time goes: ticks in user mode, and the kernel's own tick, which
// alone tells what the kernel does, and is coarser. As tracer/analysis/analysis.h has it (analysis_share_error).

// Weights of one clock: as many equal ones as they are worth, (sum of weights)^2 / sum of weights^2.
export class WeightSums {
    sum = 0;
    squares = 0;
    add(each, count) {
        this.sum += each * count;
        this.squares += each * each * count;
    }
    get worth() {
        return this.squares > 0 ? this.sum * this.sum / this.squares : 0;
    }
}

export class Certainty {
    // fine, coarse: WeightSums. tickNs: of the coarse clock, where it is known.
    constructor(fine, coarse, tickNs) {
        this.sum = fine.sum + coarse.sum;
        this.told = coarse.sum;
        this.ticks = fine.worth;
        const looks = this.told > 0 ? coarse.worth * this.sum / this.told : 0;
        this.looks = tickNs > 0 ? Math.min(looks, this.sum / tickNs) : looks;
    }
    // By how much the share of `part`, of which the coarse clock told `told`, may be off with a chance of 95 % that it is
    // no more. Where told is not known, it is at least that.
    errorOf(part, told) {
        if (told === undefined) {
            return Math.max(this.errorOf(part, Math.max(0, part - (this.sum - this.told))), this.errorOf(part, Math.min(part, this.told)));
        }
        if (this.sum <= 0 || (this.ticks <= 0 && this.looks <= 0)) {
            return 1;
        }
        const k = this.told / this.sum, b = told / this.sum, user = this.sum - this.told, q = user > 0 ? (part - told) / user : 0;
        const ofLooks = b * (1 - b) + q * q * k * (1 - k) - 2 * q * b * (1 - k), ofTicks = (1 - k) * (1 - k) * q * (1 - q);
        const variance = (this.looks > 0 ? Math.max(0, ofLooks) / this.looks : 0) + (this.ticks > 0 ? Math.max(0, ofTicks) / this.ticks : 0);
        return variance < 0.26 ? 1.96 * Math.sqrt(variance) : 1;
    }
}

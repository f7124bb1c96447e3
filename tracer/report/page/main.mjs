// SPDX-License-Identifier: Apache-2.0
// The page: its parts, and what one does to the others.
import { aggregate, findRepeats, functionTable, matchedShare, moduleShares, searchFunctions, weightsOf } from './aggregate.mjs';
import { invert } from './callers.mjs';
import { CallTable } from './call_table.mjs';
import { Colours } from './colours.mjs';
import { frameName } from './data.mjs';
import { describeFrame, describeHit } from './describe.mjs';
import { DetailView } from './detail_view.mjs';
import { flowsOf } from './extras.mjs';
import { FlameView } from './flame_view.mjs';
import { formatAmount, formatCount, formatSureShare, formatTime } from './format.mjs';
import { FunctionView } from './function_view.mjs';
import { HotView } from './hot_view.mjs';
import { waitsAmong } from './kinds.mjs';
import { loadTrace } from './load.mjs';
import { isKernelName } from './names.mjs';
import { pathButtons, showTooltip } from './pointed.mjs';
import { buildSegments } from './segments.mjs';
import { element } from './stack_list.mjs';
import { TableView } from './table_view.mjs';
import { processLabel } from './timeline_rows.mjs';
import { buildTracks, TimelineView } from './timeline_view.mjs';
import { WaitsView } from './waits_view.mjs';
import { groupWaits, releasesOf, ThreadFinder } from './waits.mjs';
import { runInSlices } from './work.mjs';

const get = (id) => document.getElementById(id);
const MODULES_SHOWN = 10, THREADS_LISTED = 2000, PROCESSES_LISTED = 2000;

class Page {
    constructor(trace, segments, repeats, tracks, flows) {
        Object.assign(this, { trace, segments, repeats });
        this.colours = new Colours(trace);
        this.weights = weightsOf(trace);
        this.choice = { weight: this.weights[0], process: -1, thread: -1, kind: -1, from: -Infinity, to: Infinity };
        this.matches = null;
        this.asked = 0; // computations that were begun
        this.searched = 0;
        this.timeline = new TimelineView(get('timeline-host'), get('timeline-canvas'), trace, tracks, flows, this.colours, {
            onPoint: (hit, event) => this.tell(hit && describeHit(trace, hit, this.timeline.view), event),
            onSelect: (range) => this.setRange(range),
            onPick: (hit) => this.pickHit(hit),
        });
        this.flame = new FlameView(get('flame-host'), get('flame-canvas'), trace, this.colours, {
            onPoint: (frame, event) => this.tellFrame(frame, event),
            onPick: (frame) => this.tellFrame(frame),
            onZoom: (frame) => this.showPath(frame),
        });
        this.table = new TableView(get('table'), get('more'), trace, this.colours, { onFunction: (func) => this.showFunction(func) });
        this.callTable = new CallTable({ section: get('exact'), table: get('exact-table'), more: get('exact-more') }, trace);
        this.makeFunction();
        this.makeWaits(flows);
        this.fillControls();
        this.listen();
        this.setTheme(this.systemTheme());
        this.sizeHosts();
    }

    makeFunction() {
        this.isInverted = false;
        this.functionView = new FunctionView({ section: get('function'), title: get('function-title'), facts: get('function-facts'),
            lists: get('function-lists'), close: get('function-close') }, this.trace, this.segments, this.repeats, {
            onFunction: (func) => this.showFunction(func),
            onClose: () => this.showFunction(-1),
        });
    }
    makeWaits(flows) {
        const { trace } = this, finder = new ThreadFinder(trace), releases = releasesOf(flows);
        this.detail = new DetailView({ section: get('detail'), title: get('detail-title'), facts: get('detail-facts'),
            stacks: get('detail-stacks'), last: get('detail-last'), next: get('detail-next'), where: get('detail-where'),
            close: get('detail-close') }, trace, finder, releases, {
            onClose: () => this.pickSample(null),
            onSample: (sample, members) => this.pickSample(sample, members),
            onFunction: (func) => this.showFunction(func),
            threadOf: (sample) => this.timeline.threadOfSample(sample),
        });
        this.waits = new WaitsView({ section: get('waits'), locks: get('locks'), locksMore: get('locks-more'), locksNone: get('locks-none'),
            calls: get('calls'), callsMore: get('calls-more') }, trace, finder, releases, {
            onGroup: ({ longest, members }) => {
                this.pickSample(trace.intervals.sample[longest], members || null);
                get('detail').scrollIntoView({ block: 'center' });
                get('detail-close').focus({ preventScroll: true });
            },
        });
        const parts = (name) => ({ box: get(name), facts: get(`${name}-facts`), table: get(`${name}-table`) });
        this.hot = new HotView({ section: get('memory'), allocation: parts('allocation'), faults: parts('faults') }, trace, this.segments,
            this.weights, { onStack: (weight, frame) => this.showStack(weight, frame) });
    }

    // ---- controls

    fillControls() {
        const { trace } = this;
        const fill = (select, options) => select.append(...options.map(([value, text]) => new Option(text, value)));
        fill(get('weight'), this.weights.map(({ name }, i) => [i, name]));
        const { processes } = trace;
        get('process-choice').hidden = processes.length < 2;
        fill(get('process'), [[-1, `all ${processes.length}`], ...processes.slice(0, PROCESSES_LISTED).map((process) => [process.index, processLabel(process)])]);
        this.fillThreads();
        this.fillLegend();
        fill(get('kind'), [[-1, 'all'], ...[...trace.kinds].map(([number, name]) => [number, name])]);
        this.showPath(0);
    }
    // Those of the chosen process.
    fillThreads() {
        const { trace, choice } = this;
        const all = choice.process < 0 ? trace.threads : trace.processes[choice.process].threads;
        const listed = all.filter(({ sampleCount }) => sampleCount > 0).slice(0, THREADS_LISTED);
        get('thread').replaceChildren(new Option(`all ${all.length}`, -1), ...listed.map(({ index, name, tid }) => new Option(`${name} ${tid}`, index)));
    }
    fillLegend() {
        const { trace } = this, { samples, intervals } = trace, kinds = new Set();
        for (let i = 0; i < intervals.count; i++) {
            kinds.add(samples.kind[intervals.sample[i]]);
        }
        get('legend').children[0].after(...waitsAmong(kinds).map(({ letter, name, colour }) => {
            const item = element('li');
            item.append(element('span', `badge ${colour}`, letter), name);
            return item;
        }));
    }
    listen() {
        const { choice } = this;
        const onChange = (id, take) => get(id).addEventListener('change', (event) => {
            take(Number(event.target.value));
            this.recompute();
        });
        onChange('weight', (value) => { choice.weight = this.weights[value]; });
        onChange('process', (value) => {
            Object.assign(choice, { process: value, thread: -1 });
            this.fillThreads();
        });
        onChange('thread', (value) => { choice.thread = value; });
        onChange('kind', (value) => { choice.kind = value; });
        const onClick = (id, act) => get(id).addEventListener('click', act);
        onClick('clear-range', () => this.timeline.select(null));
        onClick('theme', () => this.toggleTheme());
        onClick('help-button', () => get('help').showModal());
        onClick('zoom-in', () => this.timeline.zoomBy(0.5));
        onClick('zoom-out', () => this.timeline.zoomBy(2));
        onClick('zoom-all', () => this.timeline.setView(0, this.timeline.full.to));
        onClick('inverted', () => this.toggleInverted());
        onClick('direction', ({ currentTarget }) => {
            this.flame.setUpward(!this.flame.isUpward);
            currentTarget.setAttribute('aria-pressed', String(this.flame.isUpward));
        });
        get('search').addEventListener('input', () => this.search());
        get('search').addEventListener('keydown', (event) => this.searchKey(event));
        document.addEventListener('keydown', (event) => this.key(event));
        matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.setTheme(this.systemTheme()));
    }
    key(event) {
        const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
        if (isTyping || event.ctrlKey || event.metaKey || event.altKey || get('help').open) {
            return;
        }
        const actions = {
            '/': () => get('search').focus(), '?': () => get('help').showModal(), t: () => this.toggleTheme(), b: () => this.toggleInverted(),
            f: () => get('flame-canvas').focus(), l: () => get('timeline-canvas').focus(),
            Escape: () => this.pickSample(null),
        };
        if (actions[event.key]) {
            event.preventDefault();
            actions[event.key]();
        }
    }
    searchKey(event) {
        if (event.key === 'Escape') {
            event.preventDefault();
            get('search').value = '';
            this.search();
            get('flame-canvas').focus();
        } else if (event.key === 'Enter') {
            get('flame-canvas').focus();
        }
    }

    // ---- theme: what the machine asks for, until it is changed here

    systemTheme() {
        return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
    }
    toggleTheme() {
        this.setTheme(this.theme === 'dark' ? 'light' : 'dark');
    }
    setTheme(theme) {
        this.theme = theme;
        document.documentElement.dataset.theme = theme;
        get('theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
        this.colours.setDark(theme === 'dark');
        this.timeline.refreshTheme();
        this.flame.refreshTheme();
        this.table.fill();
        this.showModules();
    }
    // No taller than what is in them.
    sizeHosts() {
        const most = Math.max(160, Math.round(window.innerHeight * 0.36));
        get('timeline-host').style.height = `${Math.min(this.timeline.wantedHeight + 4, most)}px`;
    }

    // As far as it is not pulled larger or smaller by hand.
    sizeFlame() {
        const { style } = get('flame-host'), height = `${Math.max(120, Math.min(420, this.flame.wantedHeight + 4))}px`;
        if (this.flameHeight === undefined || style.height === this.flameHeight) {
            style.height = height;
            this.flameHeight = height;
        }
    }

    // ---- what is chosen, and what it weighs

    setRange(range) {
        this.choice.from = range ? range.from : -Infinity;
        this.choice.to = range ? range.to : Infinity;
        get('range').textContent = range ? `${formatTime(range.to - range.from)} from ${formatTime(range.from)}` : 'whole trace';
        get('range').parentElement.classList.toggle('is-set', Boolean(range));
        get('clear-range').hidden = !range;
        this.recompute();
    }
    async recompute() {
        const mine = ++this.asked, isWanted = () => mine === this.asked;
        get('main').setAttribute('aria-busy', 'true');
        const sums = await runInSlices(aggregate(this.trace, this.segments, this.choice), isWanted);
        const rows = sums && await runInSlices(functionTable(this.trace, this.repeats, sums), isWanted);
        if (!rows) {
            return;
        }
        this.sums = sums;
        this.unit = this.choice.weight.unit;
        this.rows = rows;
        await this.showFlame();
        this.table.setRows(rows, sums.total[0], this.unit, sums.certainty);
        get('functions-count').textContent = `${formatCount(rows.length)} with ${formatAmount(sums.total[0], this.unit)} ` +
            `${this.choice.weight.name} in all`;
        this.showModules();
        this.showFound();
        this.functionView.set(await runInSlices(this.functionView.compute(sums, this.choice)));
        const waits = await runInSlices(groupWaits(this.trace, this.choice), isWanted);
        const hot = waits && await runInSlices(this.hot.compute({ ...this.choice }), isWanted);
        if (!hot) {
            return;
        }
        this.waits.set(waits);
        this.hot.set(hot);
        get('main').setAttribute('aria-busy', 'false');
    }
    // As it is, or turned round.
    async showFlame() {
        const { trace, sums } = this, tree = this.isInverted ? await runInSlices(invert(trace, sums)) : { frames: trace.frames, sums };
        if (sums === this.sums) {
            this.flame.setTree(tree.frames, tree.sums);
            this.sizeFlame();
        }
    }
    toggleInverted() {
        this.isInverted = !this.isInverted;
        get('inverted').setAttribute('aria-pressed', String(this.isInverted));
        return this.showFlame();
    }
    // -1: none.
    async showFunction(func) {
        this.functionView.func = func;
        if (func >= 0) {
            this.searchFor(func);
        } else {
            get('search').value = '';
            this.search();
        }
        this.functionView.set(await runInSlices(this.functionView.compute(this.sums, this.choice)));
        if (func >= 0) {
            get('function').scrollIntoView({ block: 'nearest' });
        }
    }
    showModules() {
        if (!this.rows) {
            return;
        }
        const all = this.sums.total[0];
        get('modules').replaceChildren(...moduleShares(this.trace, this.rows).slice(0, MODULES_SHOWN).map(({ module, self, told }) => {
            const item = document.createElement('li'), swatch = document.createElement('span');
            swatch.className = 'swatch';
            swatch.style.backgroundColor = this.colours.module(module);
            item.append(swatch, `${this.trace.strings.text(module) || '[no module]'} ${formatSureShare(self, all, this.sums.certainty, told)}`);
            return item;
        }));
    }

    // Exact calls, and that some are not in the page.
    tellCalls() {
        const { threads, callsHidden } = this.trace, count = threads.reduce((sum, { calls }) => sum + (calls ? calls.count : 0), 0);
        if (count) {
            const box = element('div'), hidden = callsHidden ? `, the longest ones; ${formatCount(callsHidden)} more have no room` : '';
            box.append(element('dt', '', 'exact calls'), element('dd', '', `${formatCount(count)} in the timeline${hidden}`));
            get('facts').append(box);
            get('flame').hidden = get('functions').hidden = this.trace.samples.size === 0; // which are of samples
        }
    }
    // The share of all processor time that is the kernel's, where the trace tells it.
    async tellKernel() {
        const { trace } = this, { frames } = trace, weight = this.weights.find(({ id }) => id === 'cpu');
        const isKernel = (frame) => frame !== 0 && isKernelName(frameName(trace, frame));
        const kernel = weight ? [...frames.func.keys()].filter(isKernel) : [];
        if (kernel.length) {
            const { self, total, told, certainty } = await runInSlices(aggregate(trace, this.segments, { ...this.choice, weight }));
            const box = element('div'), of = (amounts) => kernel.reduce((sum, frame) => sum + amounts[frame], 0);
            box.append(element('dt', '', 'in the kernel'), element('dd', '', formatSureShare(of(self), total[0], certainty, of(told))));
            get('facts').append(box);
        }
    }

    // ---- search

    searchFor(func) {
        const escaped = this.trace.functionName(func).replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
        get('search').value = `/^${escaped}$/`;
        this.search();
    }
    async search() {
        const mine = ++this.searched, query = get('search').value;
        const matches = await runInSlices(searchFunctions(this.trace, query), () => mine === this.searched);
        if (matches === undefined) {
            return;
        }
        this.matches = matches;
        get('search').setAttribute('aria-invalid', String(query !== '' && !matches));
        this.flame.setMatches(matches);
        this.table.setMatches(matches);
        this.showFound();
    }
    showFound() {
        if (!this.matches) {
            get('found').textContent = get('search').value ? 'no regular expression' : '';
            return;
        }
        const { sum, count } = matchedShare(this.trace, this.sums.total, this.matches);
        get('found').textContent = count ? `${formatSureShare(sum, this.sums.total[0], this.sums.certainty)} in ${formatCount(count)} functions` : 'not found';
    }

    // ---- one sample or wait, pointed out

    pickHit(hit) {
        const sample = !hit ? -1 : hit.sample !== undefined ? hit.sample : hit.segment >= 0 ? hit.track.segments.sample[hit.segment] : -1;
        this.pickSample(sample >= 0 ? sample : null);
    }
    // null: none. `members`: waits to step through.
    pickSample(sample, members = null) {
        if (sample === null) {
            this.timeline.pick(null);
            this.detail.hide();
            return;
        }
        const { intervals, samples } = this.trace, interval = intervals.ofSample.get(sample);
        this.timeline.pick(sample, new Set(members || [sample]));
        if (interval !== undefined) {
            this.timeline.reveal(this.timeline.threadOfSample(sample).index, intervals.begin[interval], intervals.end[interval]);
        } else {
            this.timeline.reveal(this.timeline.threadOfSample(sample).index, samples.first[sample], samples.last[sample]);
        }
        this.detail.show(sample, members);
        get('status').textContent = this.detail.text;
    }
    // In the flame graph of a weight.
    async showStack(weight, frame) {
        this.choice.weight = weight;
        this.choice.kind = -1;
        get('weight').value = this.weights.indexOf(weight);
        get('kind').value = -1;
        if (this.isInverted) {
            await this.toggleInverted();
        }
        await this.recompute();
        this.flame.zoom(frame);
        get('flame').scrollIntoView({ block: 'center' });
        get('flame-canvas').focus({ preventScroll: true });
    }

    // ---- words

    showPath(frame) {
        get('breadcrumb').replaceChildren(...pathButtons(this.flame ? this.flame.trace : this.trace, frame, (at) => this.flame.zoom(at)));
    }
    tellFrame(frame, event) {
        const { trace, sums } = this.flame;
        this.tell(frame >= 0 && frame < trace.frames.count && sums ? describeFrame(trace, frame, sums, this.unit) : null, event);
    }
    // `event` undefined: said by keys, so there is no mouse to show it at.
    tell(what, event) {
        get('status').textContent = what ? [what.heading, ...what.lines].filter(Boolean).join('   ·   ') : '';
        showTooltip(get('tooltip'), event ? what : null, event);
    }
}

async function start() {
    const trace = await loadTrace(document.querySelectorAll('script.data'));
    const segments = await runInSlices(buildSegments(trace));
    const repeats = await runInSlices(findRepeats(trace));
    const tracks = await runInSlices(buildTracks(trace, segments));
    const flows = await runInSlices(flowsOf(trace));
    get('loading').hidden = true;
    get('main').hidden = false;
    const page = new Page(trace, segments, repeats, tracks, flows);
    await page.recompute();
    await page.tellKernel();
    page.tellCalls();
    document.documentElement.dataset.ready = 'true';
}

start().catch((error) => {
    get('loading').hidden = false;
    get('loading').textContent = `This report cannot be shown: ${error.message}`;
    console.error(error);
});

// SPDX-License-Identifier: Apache-2.0
// A page in headless Chromium, driven over its DevTools pipe: opened, asked, pressed, photographed. No package needed.
//
//     node browser.mjs URL|FILE [--size WxH] [--dark] [--file SELECTOR=PATH] [--wait EXPRESSION] [--eval EXPRESSION]
//                      [--screenshot OUT.png]
//
// prints what the expressions give as JSON, then errors of the page; exits 1 if there were any.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { findProgram, skip } from './consumers.mjs';

const patienceMs = Number(process.env.QUT_BROWSER_PATIENCE_MS) || 60000;

// JSON messages, each ended by NUL: to the browser on its descriptor 3, from it on 4.
class Connection {
    constructor(child) {
        this.into = child.stdio[3];
        this.next = 1;
        this.waiting = new Map();
        this.listeners = [];
        this.closed = false;
        let parts = [];
        child.stdio[4].on('data', (data) => {
            let at = 0;
            for (let end; (end = data.indexOf(0, at)) >= 0; at = end + 1) {
                parts.push(data.subarray(at, end));
                this.receive(JSON.parse(Buffer.concat(parts).toString('utf8')));
                parts = [];
            }
            parts.push(data.subarray(at));
        });
        this.into.on('error', () => {}); // of a browser that has ended: told below
        child.on('exit', (code, signal) => {
            this.closed = true;
            for (const { reject } of this.waiting.values())
                reject(new Error(`the browser ended (${signal || code})`));
        });
    }
    receive(message) {
        const asked = this.waiting.get(message.id);
        if (!asked) {
            for (const listener of this.listeners)
                listener(message);
            return;
        }
        this.waiting.delete(message.id);
        if (message.error)
            asked.reject(new Error(`${asked.method}: ${message.error.message}`));
        else
            asked.resolve(message.result);
    }
    send(method, params = {}, sessionId = undefined) {
        if (this.closed)
            return Promise.reject(new Error(`${method}: the browser has ended`));
        const id = this.next++;
        return new Promise((resolve, reject) => {
            this.waiting.set(id, { resolve, reject, method });
            this.into.write(JSON.stringify({ id, method, params, sessionId }) + '\0');
        });
    }
}

const describe = (argument) => argument.value !== undefined ? String(argument.value)
    : argument.description || argument.unserializableValue || argument.type;

class Page {
    constructor(connection, sessionId) {
        this.connection = connection;
        this.sessionId = sessionId;
        this.errors = [];   // of its scripts, its console (error, assert), and of what could not be loaded: texts
        this.warnings = [];
        this.requests = []; // URLs of all that it asked for: data: and blob: left out
        connection.listeners.push((message) => {
            if (message.sessionId === sessionId)
                this.hear(message.method, message.params);
        });
    }
    send(method, params) {
        return this.connection.send(method, params, this.sessionId);
    }
    hear(method, params) {
        if (method === 'Runtime.exceptionThrown') {
            const { text, exception, url, lineNumber } = params.exceptionDetails;
            this.errors.push(`${text} ${exception ? describe(exception) : ''} (${url || ''}:${lineNumber + 1})`);
        } else if (method === 'Runtime.consoleAPICalled') {
            const list = { error: this.errors, assert: this.errors, warning: this.warnings }[params.type];
            if (list)
                list.push(params.args.map(describe).join(' '));
        } else if (method === 'Log.entryAdded' && params.entry.level === 'error') {
            this.errors.push(`${params.entry.text} ${params.entry.url || ''}`);
        } else if (method === 'Network.requestWillBeSent' && !/^(data|blob):/.test(params.request.url)) {
            this.requests.push(params.request.url);
        } else if (method === 'Page.loadEventFired') {
            this.loaded?.();
        }
    }
    // A URL or a file's path. Returns when the page has loaded.
    async goto(where) {
        const url = /^[a-z]+:/.test(where) ? where : pathToFileURL(path.resolve(where)).href;
        const loaded = new Promise((resolve) => { this.loaded = resolve; });
        const { errorText, loaderId } = await this.send('Page.navigate', { url });
        if (errorText)
            throw new Error(`${url}: ${errorText}`);
        if (loaderId) // none: the same page, at another place
            await within(loaded, patienceMs, `${url} to load`);
    }
    // What a JavaScript expression (a promise: what comes of it) gives, as JSON can carry it.
    async evaluate(expression) {
        const { result, exceptionDetails } = await this.send('Runtime.evaluate',
            { expression, awaitPromise: true, returnByValue: true, userGesture: true });
        if (exceptionDetails) {
            const { exception, text } = exceptionDetails;
            throw new Error(`${expression.slice(0, 100)}: ${exception ? describe(exception) : text}`);
        }
        return result.value;
    }
    // Until it is true. Returns its value.
    async waitFor(expression, ms = patienceMs) {
        for (const end = Date.now() + ms; ;) {
            const value = await this.evaluate(expression).catch(() => undefined); // of a page that is being replaced
            if (value)
                return value;
            if (Date.now() > end)
                throw new Error(`it never became true: ${expression}; errors: ${this.errors.join('; ')}`);
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
    }
    // Gives a file to <input type=file>.
    async setFile(selector, ...files) {
        const { root } = await this.send('DOM.getDocument', {});
        const { nodeId } = await this.send('DOM.querySelector', { nodeId: root.nodeId, selector });
        if (!nodeId)
            throw new Error(`there is no ${selector}`);
        await this.send('DOM.setFileInputFiles', { nodeId, files: files.map((file) => path.resolve(file)) });
    }
    // Keys by their names: 'a', '/', 'Enter', 'ArrowLeft', 'Escape'.
    async press(...keys) {
        const codes = { Enter: 13, Escape: 27, Tab: 9, Backspace: 8, Home: 36, End: 35, PageUp: 33, PageDown: 34,
            ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, Delete: 46, ' ': 32 };
        for (const key of keys) {
            const text = key === 'Enter' ? '\r' : key.length === 1 ? key : undefined;
            const event = { key, text, windowsVirtualKeyCode: codes[key] || key.toUpperCase().charCodeAt(0) };
            await this.send('Input.dispatchKeyEvent', { type: text ? 'keyDown' : 'rawKeyDown', ...event });
            await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event, text: undefined });
        }
    }
    // kind: 'click', 'move' or 'wheel' (by `delta` pixels).
    async mouse(kind, x, y, delta = 0) {
        const send = (type, more) => this.send('Input.dispatchMouseEvent', { type, x, y, ...more });
        if (kind === 'wheel')
            return send('mouseWheel', { deltaX: 0, deltaY: delta });
        await send('mouseMoved', {});
        if (kind === 'click') {
            await send('mousePressed', { button: 'left', clickCount: 1 });
            await send('mouseReleased', { button: 'left', clickCount: 1 });
        }
    }
    setDark(dark) {
        return this.send('Emulation.setEmulatedMedia',
            { features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }] });
    }
    setSize(width, height) {
        return this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
    }
    setOffline(offline) {
        return this.send('Network.emulateNetworkConditions',
            { offline, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
    }
    async screenshot(file) {
        const { data } = await this.send('Page.captureScreenshot', { format: 'png' });
        fs.mkdirSync(path.dirname(path.resolve(file)), { recursive: true });
        fs.writeFileSync(file, Buffer.from(data, 'base64'));
    }
}

function within(promise, ms, what) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`waited ${ms} ms for ${what}`)), ms);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export class Browser {
    // Chromium that is there; without one the test is skipped.
    static async start() {
        const program = process.env.CHROMIUM || findProgram('chromium', 'chromium-browser', 'google-chrome');
        if (!program)
            skip('chromium is not installed');
        const browser = new Browser();
        browser.profile = fs.mkdtempSync(path.join(os.tmpdir(), 'qut-browser-'));
        browser.child = spawn(program, ['--headless=new', '--remote-debugging-pipe', '--no-sandbox', '--disable-dev-shm-usage',
            '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--allow-file-access-from-files',
            '--no-first-run', '--disable-extensions', '--disable-background-networking', '--disable-component-update',
            '--disable-sync', '--hide-scrollbars', '--force-color-profile=srgb', '--window-size=1280,800',
            `--user-data-dir=${browser.profile}`, 'about:blank'],
            { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
        browser.exited = new Promise((resolve) => browser.child.on('exit', resolve));
        browser.kill = () => browser.child.kill('SIGKILL');
        process.on('exit', browser.kill);
        browser.connection = new Connection(browser.child);
        await within(browser.connection.send('Browser.getVersion'), patienceMs, 'the browser to start');
        return browser;
    }
    async page() {
        const { targetId } = await this.connection.send('Target.createTarget', { url: 'about:blank' });
        const { sessionId } = await this.connection.send('Target.attachToTarget', { targetId, flatten: true });
        const page = new Page(this.connection, sessionId);
        for (const domain of ['Page', 'Runtime', 'Log', 'Network', 'DOM'])
            await page.send(`${domain}.enable`);
        return page;
    }
    async close() {
        await within(this.connection.send('Browser.close').catch(() => {}).then(() => this.exited), 5000, 'its end')
            .catch(() => this.kill());
        await this.exited;
        process.removeListener('exit', this.kill);
        fs.rmSync(this.profile, { recursive: true, force: true, maxRetries: 3 });
    }
}

async function main(words) {
    const browser = await Browser.start();
    const page = await browser.page();
    const where = words.shift();
    const early = { '--size': (size) => page.setSize(...size.split('x').map(Number)), '--dark': () => page.setDark(true) };
    const late = {
        '--file': (text) => page.setFile(text.slice(0, text.lastIndexOf('=')), text.slice(text.lastIndexOf('=') + 1)),
        '--wait': (expression) => page.waitFor(expression),
        '--eval': async (expression) => console.log(JSON.stringify(await page.evaluate(expression))),
        '--screenshot': (file) => page.screenshot(file),
        '--press': (keys) => page.press(...keys.split(',')),
    };
    const steps = [];
    while (words.length) {
        const word = words.shift();
        const step = early[word] || late[word];
        if (!step)
            throw new Error(`unknown argument: ${word}`);
        const value = word === '--dark' ? null : words.shift();
        if (early[word])
            await step(value);
        else
            steps.push(() => step(value));
    }
    await page.goto(where);
    for (const step of steps)
        await step();
    for (const error of page.errors)
        console.log(`page error: ${error}`);
    await browser.close();
    return page.errors.length ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
    process.exit(await main(process.argv.slice(2)));

// What `npm pack` gives, in projects of its users: a plain page, a page built by Vite, and a worker. Page and module are the
// examples of the README.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { build } from 'vite';
import { launch, names } from './browsers.js';
import { serve } from './server.js';

const web = join(import.meta.dirname, '..');
const vectors = join(web, '../target/tmp/web-vectors');
const readme = readFileSync(join(web, 'README.md'), 'utf8');
const example = (language) => {
    const found = readme.match(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``));
    assert(found, `web/README.md has an example in ${language}`);
    return found[1];
};

/** The words nearest to `king` in the shipped table, as the native command has them. */
const NEAREST = 'monarch';

let scratch;
let server;
before(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'gatherum-web-'));
    const npm = (folder, ...args) => execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
    npm(web, 'pack', '--silent', '--pack-destination', scratch);
    const archive = readdirSync(scratch).find((name) => name.endsWith('.tgz'));
    for (const project of ['plain', 'vite', 'worker']) {
        const folder = join(scratch, project);
        mkdirSync(folder);
        writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
        npm(folder, 'install', '--silent', '--offline', '--no-audit', '--no-fund', join('..', archive));
        mkdirSync(join(folder, 'public'));
        for (const place of ['.', 'public']) {
            copyFileSync(join(vectors, 'words.safetensors'), join(folder, place, 'words.safetensors'));
        }
    }
    writeFileSync(join(scratch, 'plain/index.html'), example('html'));

    const page = '<!doctype html><link rel="icon" href="data:,"><body><script type="module" src="/main.js"></script></body>';
    writeFileSync(join(scratch, 'vite/index.html'), page);
    writeFileSync(join(scratch, 'vite/main.js'), example('js'));
    await build({ root: join(scratch, 'vite'), logLevel: 'warn', base: './' });

    writeFileSync(join(scratch, 'worker/index.html'), page);
    writeFileSync(join(scratch, 'worker/main.js'), `
        const worker = new Worker('/worker.js', { type: 'module' });
        worker.onmessage = ({ data }) => document.body.append(data);
        worker.onerror = (event) => document.body.append('failed: ' + event.message);
    `);
    const script = example('js').replace("from 'gatherum'", "from '/node_modules/gatherum/pkg/index.js'");
    writeFileSync(join(scratch, 'worker/worker.js'), script.replace('document.body.append', 'postMessage'));
});
after(() => rmSync(scratch, { recursive: true, force: true }));

test('the archive holds what users need, and nothing else', () => {
    const folder = join(scratch, 'plain/node_modules/gatherum');
    const files = readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath.slice(folder.length), entry.name))
        .sort();
    assert(files.every((name) => /^\/?(pkg\/.*\.(js|d\.ts|wasm)|package\.json|README\.md|LICENSE-(MIT|APACHE))$/.test(name)), files.join());
    for (const name of ['pkg/index.js', 'pkg/index.d.ts', 'pkg/wasm/gatherum_bg.wasm', 'README.md', 'LICENSE-MIT']) {
        assert(files.some((file) => file.endsWith(name)), `${name} among ${files}`);
    }
    // No type leads to a file that is not there.
    for (const file of files.filter((name) => name.endsWith('.d.ts'))) {
        const text = readFileSync(join(folder, file), 'utf8');
        for (const [, target] of text.matchAll(/from '(\.[^']*)\.js'/g)) {
            const wanted = join('/', file, '..', `${target}.d.ts`).replace(/^\//, '');
            assert(files.some((name) => name.replace(/^\//, '') === wanted), `${file} names ${target}`);
        }
    }
});

test('its types are right for one who uses them strictly', () => {
    const folder = join(scratch, 'plain');
    writeFileSync(join(folder, 'use.ts'), `
        import { BadIdError, Engine, type Rows } from 'gatherum';
        const engine: Engine = await Engine.create({ powerPreference: 'low-power', memoryBudget: 1e8 });
        const table = await engine.load('x', { signal: AbortSignal.timeout(1), onProgress: ({ loaded }) => void loaded.toFixed() });
        const rows: Rows = await table.gather(Uint32Array.of(1), { policy: 'zero' });
        const bags = await table.bag(BigInt64Array.of(1n), Uint32Array.of(0), { mode: 'mean', paddingId: 0n });
        const buffer: GPUBuffer = (await table.gatherToBuffer(BigUint64Array.of(1n))).buffer;
        engine.device?.queue.writeBuffer(buffer, 0, rows.values);
        try { await table.topK(bags.values, 3, { metric: 'dot', leaveOut: [1, undefined] }); } catch (error) {
            if (error instanceof BadIdError) console.log(error.position.toFixed(), error.id?.toString());
        }
        // @ts-expect-error Ids of other types are none.
        await table.gather(new Float32Array(1));
        // @ts-expect-error There is no such policy.
        await table.gather(Uint32Array.of(1), { policy: 'clamp' });
    `);
    const options = ['--strict', '--noEmit', '--target', 'es2022', '--module', 'es2022', '--moduleResolution', 'bundler', '--types', ''];
    execFileSync(join(web, 'node_modules/.bin/tsc'), [...options, 'use.ts'], { cwd: folder, stdio: 'inherit' });
});

for (const name of names) {
    describe(name, () => {
        let browser;
        before(async () => {
            browser = await launch(name);
        });
        after(() => browser.close());

        for (const [project, folder] of [['plain', 'plain'], ['vite', 'vite/dist'], ['worker', 'worker']]) {
            test(`the example of the README, ${project}`, { timeout: 60_000 }, async () => {
                server = await serve({ '': join(scratch, folder) });
                try {
                    const page = await browser.open(`${server.address}/index.html`);
                    await page.waitForFunction(() => document.body.innerText.trim() !== '');
                    const text = await page.evaluate(() => document.body.innerText);
                    assert.match(text, new RegExp(NEAREST));
                    assert.deepEqual(page.faults, []);
                } finally {
                    server.close();
                }
            });
        }
    });
}

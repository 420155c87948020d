// The package in real browsers: each case on both backends of each browser.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { launch, names } from './browsers.js';
import { serve } from './server.js';

const web = join(import.meta.dirname, '..');
const vectors = join(web, '../target/tmp/web-vectors');
const cases = ['lookup', 'measure', 'memory', 'open'].flatMap((file) => {
    const source = readFileSync(join(import.meta.dirname, `cases/${file}.js`), 'utf8');
    return [...source.matchAll(/^export async function (\w+)/gm)].map(([, name]) => ({ file, name }));
});

let server;
before(async () => {
    server = await serve({ pkg: join(web, 'pkg'), vectors, test: import.meta.dirname });
});
after(() => server.close());

for (const name of names) {
    for (const backend of ['webgpu', 'host']) {
        describe(`${name}, ${backend}`, () => {
            let browser;
            let page;
            before(async () => {
                browser = await launch(name);
                page = await browser.open(`${server.address}/test/pages/blank.html`);
            });
            after(() => browser.close());

            for (const { file, name: wanted } of cases) {
                test(wanted, { timeout: 120_000 }, async (t) => {
                    const remark = await page.evaluate(
                        async ({ file, wanted, backend }) => {
                            const { Engine } = await import('/pkg/index.js');
                            globalThis.tables ??= (await (await fetch('/vectors/tables.json')).json()).tables;
                            globalThis.engine ??= await Engine.create({ backend });
                            const { engine, tables: all } = globalThis;
                            if (engine.backend !== backend) {
                                throw new Error(`the engine runs on ${engine.backend}`);
                            }
                            const run = (await import(`/test/cases/${file}.js`))[wanted];
                            try {
                                return await run({ engine, backend, tables: all, vectors: '/vectors' });
                            } catch (error) {
                                throw new Error(`${error?.name}: ${error?.message}\n${error?.stack}`);
                            }
                        },
                        { file, wanted, backend },
                    );
                    if (remark) {
                        t.diagnostic(remark);
                    }
                });
            }
        });
    }
}

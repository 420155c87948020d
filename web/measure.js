// What `engine.measure` tells in each browser, on WebGPU and on the host: 65,536 of 1,000,000 rows of 128 columns by int8, beside the
// best copy of as many bytes and a loop in JavaScript. For the native figures of the same drivers, see `cargo bench --bench roofline`.
//
//     npm run measure              three times each
//     npm run measure -- TIMES

import { join } from 'node:path';
import process from 'node:process';
import { launch, names } from './test/browsers.js';
import { serve } from './test/server.js';

const times = Number(process.argv[2] ?? 3);
const server = await serve({ pkg: join(import.meta.dirname, 'pkg'), test: join(import.meta.dirname, 'test') });
try {
    for (const name of names) {
        const browser = await launch(name);
        const page = await browser.open(`${server.address}/test/pages/blank.html`);
        for (const backend of ['webgpu', 'host']) {
            for (let turn = 0; turn < times; turn += 1) {
                const found = await page.evaluate(async (backend) => {
                    const { Engine } = await import('/pkg/index.js');
                    const engine = await Engine.create({ backend });
                    const found = await engine.measure();
                    engine.free();
                    return { ...found };
                }, backend);
                console.log(`${name}, ${backend}: ${told(found)}`);
                process.exitCode ||= Number(found.differing > 0);
            }
        }
        await browser.close();
    }
} finally {
    server.close();
}

function told({ gather, copy, toPage, loop, differing }) {
    const ms = (time) => `${time.toFixed(1)} ms`;
    const here = gather === undefined ? '' : `gather ${ms(gather)}, ${(copy / gather).toFixed(2)} of a copy (${ms(copy)}); `;
    return `${here}to the page ${ms(toPage)}, the loop ${ms(loop)}; ${differing} values differ`;
}

// Pictures of the demo page in Chromium, as it is once it has answered: web/demo/screenshots/{desktop,phone}-{light,dark}.png.
//
//     npm run screenshots              the page of web/dist
//     npm run screenshots -- firefox   in Firefox, to a folder of its own, to be looked at

import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { launch } from './test/browsers.js';
import { serve } from './test/server.js';
import { visit } from './test/visitor.js';

/** Bytes of a picture in the repository. */
const BUDGET = 150_000;
const SIZES = { desktop: [1280, 900], phone: [390, 844] };

const name = process.argv[2] ?? 'chromium';
const folder = join(import.meta.dirname, name === 'chromium' ? 'demo/screenshots' : `../target/screenshots-${name}`);
mkdirSync(folder, { recursive: true });
const server = await serve({ '': join(import.meta.dirname, 'dist') });
const browser = await launch(name);
try {
    for (const colours of ['light', 'dark']) {
        const { page, said, says } = await visit(browser, 'about:blank');
        await browser.colours(page, colours);
        await page.goto(`${server.address}/index.html`);
        await said(/^10 answers from [\d,]+ words/);
        await says('#shards-here', /^All/);
        for (const [device, [width, height]] of Object.entries(SIZES)) {
            await browser.resize(page, width, height);
            await new Promise((resolve) => setTimeout(resolve, 500));
            const path = join(folder, `${device}-${colours}.png`);
            await page.screenshot({ path, fullPage: device === 'desktop' });
            const { size } = statSync(path);
            console.log(`${path}: ${size} bytes`);
            if (size > BUDGET && name === 'chromium') {
                process.exitCode = 1;
            }
        }
        await page.close();
    }
} finally {
    await browser.close();
    server.close();
}

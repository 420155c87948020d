// Pictures of the demo page in Chromium, once it has answered from all words: web/demo/screenshots/{desktop,phone}-{light,dark}.webp.
//
//     npm run screenshots              the page of web/dist
//     npm run screenshots -- FOLDER    the same as .png, and Firefox's, to be looked at

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { launch } from './test/browsers.js';
import { serve } from './test/server.js';
import { visit } from './test/visitor.js';

/** Bytes of a picture in the repository. */
const BUDGET = 150_000;
const SIZES = { desktop: [1280, 900], phone: [390, 844] };

const folder = process.argv[2];
const server = await serve({ '': join(import.meta.dirname, 'dist') });
try {
    for (const name of folder ? ['chromium', 'firefox'] : ['chromium']) {
        await pictures(name);
    }
} finally {
    server.close();
}

async function pictures(name) {
    const browser = await launch(name);
    // Puppeteer has no way to tell Firefox.
    for (const colours of browser.colours ? ['light', 'dark'] : ['light']) {
        const { page, said, says } = await visit(browser, 'about:blank');
        await browser.colours?.(page, colours);
        await page.goto(`${server.address}/index.html`);
        await said(/^10 answers from [\d,]+ words/);
        await says('#shards-here', /^All/);
        for (const [device, [width, height]] of Object.entries(SIZES)) {
            await browser.resize(page, width, height);
            await new Promise((resolve) => setTimeout(resolve, 500));
            const whole = device === 'desktop';
            if (folder) {
                await page.screenshot({ path: join(folder, `${name}-${device}-${colours}.png`), fullPage: whole });
            } else {
                keep(`${device}-${colours}.webp`, await browser.webp(page, whole));
            }
        }
        await page.close();
    }
    await browser.close();
}

function keep(file, bytes) {
    const pictures = join(import.meta.dirname, 'demo/screenshots');
    mkdirSync(pictures, { recursive: true });
    writeFileSync(join(pictures, file), bytes);
    console.log(`${file}: ${bytes.length} bytes`);
    if (bytes.length > BUDGET) {
        process.exitCode = 1;
    }
}

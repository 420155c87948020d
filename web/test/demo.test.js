// The demo page, used as a visitor would.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import process from 'node:process';
import { after, before, describe, test } from 'node:test';
import { launch, names } from './browsers.js';
import { serve } from './server.js';

/** A folder for pictures of the page, to be looked at. */
const pictures = process.env.GATHERUM_PICTURES;

for (const name of names) {
    describe(`${name}, the demo page`, () => {
        let server;
        let browser;
        before(async () => {
            server = await serve({ '': join(import.meta.dirname, '../dist') });
            browser = await launch(name);
        });
        after(async () => {
            await browser.close();
            server.close();
        });

        for (const backend of ['webgpu', 'host']) {
            test(`it searches, on ${backend}`, { timeout: 120_000 }, async () => {
                const page = await browser.open(`${server.address}/index.html?backend=${backend}`);
                await browser.resize(page, 1280, 900);
                const text = (selector) => page.evaluate((selector) => document.querySelector(selector).innerText, selector);
                /** Waits until the page says so and answers. */
                const said = async (pattern) => {
                    const deadline = Date.now() + 60_000;
                    while (!pattern.test(await text('#said')) || (await page.evaluate(() => document.querySelector('button').disabled))) {
                        assert(Date.now() < deadline, `${pattern}: ${await text('#said')}; ${page.faults}`);
                        await new Promise((resolve) => setTimeout(resolve, 50));
                    }
                };
                const enter = async (selector, word) => {
                    await page.evaluate((selector) => (document.querySelector(selector).value = ''), selector);
                    await page.focus(selector);
                    await page.keyboard.type(word);
                };

                // It opens on an answer.
                await said(/^10 answers from 10,000 words, stored as int4:affine/);
                assert.match(await text('#results'), /prince/);
                assert.match(await text('#kept'), /^\d+ of the 10 answers of f32 are here/);

                await enter('#word', 'piano');
                await page.keyboard.press('Enter');
                await said(/^10 answers/);
                assert.match(await text('#results'), /guitar/);

                await enter('#word', 'zzzz');
                await page.keyboard.press('Enter');
                await said(/“zzzz” is not among the 10000 words/);

                await enter('#c', 'berlin');
                await page.keyboard.press('Enter');
                await said(/^10 answers/);
                assert.match(await text('#results'), /germany/);

                // By keyboard through the schemes.
                const schemes = await page.evaluate(() => [...document.querySelectorAll('#schemes input')].map(({ value }) => value));
                await page.focus('#schemes input');
                for (const scheme of schemes.slice(1, 6)) {
                    await page.keyboard.press('ArrowDown');
                    await said(new RegExp(`stored as ${scheme}\\.`));
                }
                assert.match(await text('#numbers'), /290 kB, 7.25 % of f32/);
                assert.match(await text('#ledger'), /table\.int2-affine\tpayload\t250,000/);

                await page.evaluate(() => document.querySelector('#measure').click());
                await said(/int2/);
                assert.match(await text('#speed'), /^[\d,]+ lookups a second by int2:affine, [\d,]+ by f32/);
                assert.match(await text('#adapter'), backend === 'host' ? /^WebAssembly/ : /^WebGPU/);

                // On a phone nothing is wider than the screen.
                for (const [device, width, height] of [['desktop', 1280, 900], ['phone', 390, 844]]) {
                    await browser.resize(page, width, height);
                    await new Promise((resolve) => setTimeout(resolve, 300));
                    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
                    assert(wide <= width, `${device}: the page is ${wide} wide, the screen ${width}`);
                    if (pictures) {
                        await page.screenshot({ path: join(pictures, `${name}-${backend}-${device}.png`), fullPage: true });
                    }
                }
                // Each field has a name.
                const unnamed = await page.evaluate(() =>
                    [...document.querySelectorAll('input, button')].filter(
                        (element) => !element.ariaLabel && !element.labels?.length && !element.textContent.trim(),
                    ).length,
                );
                assert.equal(unnamed, 0, 'fields without a name');
                assert.deepEqual(page.faults, []);
                await page.close();
            });
        }
    });
}

// The demo page, used as a visitor would.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { launch, names } from './browsers.js';
import { serve } from './server.js';
import { visit } from './visitor.js';

const dist = join(import.meta.dirname, '../dist');
const number = (text) => Number(text.replaceAll(',', ''));

for (const name of names) {
    describe(`${name}, the demo page`, () => {
        let server;
        let browser;
        before(async () => {
            server = await serve({ '': dist });
            browser = await launch(name);
        });
        after(async () => {
            await browser.close();
            server.close();
        });

        for (const backend of ['webgpu', 'host']) {
            test(`it searches, on ${backend}`, { timeout: 180_000 }, async () => {
                const visitor = await visit(browser, `${server.address}/index.html?backend=${backend}&measure=50000`);
                const { page, text, said, says, enter, click } = visitor;
                await browser.resize(page, 1280, 900);

                // It opens on an answer, and the rest of the table arrives.
                await said(/^10 answers from 10,000 words, stored as int4:affine/);
                assert.match(await text('#results'), /prince/);
                assert.match(await text('#kept'), /^\d+ of the 10 answers of f32 from the same words are here/);
                assert.match(await text('#shards-here'), /^All \d+ shards are here/);
                assert.match(await text('#first'), /^The first answers were here [\d.]+ s after .* of 10,000 words, once \d+ kB of/);
                const [, come, all] = /^([\d.]+) kB of ([\d.]+) kB$/.exec(await text('#come'));
                assert(number(come) < 1.35 * number(all), `${come} of ${all} kB came`);

                await enter('#word', 'piano');
                await page.keyboard.press('Enter');
                await said(/^10 answers/);
                assert.match(await text('#results'), /guitar/);
                assert.equal(await page.evaluate(() => document.activeElement.id), 'word', 'the focus stays');

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
                for (const scheme of schemes.slice(1)) {
                    await page.keyboard.press('ArrowDown');
                    await said(new RegExp(`^10 answers from 10,000 words, stored as ${scheme}\\.`));
                }
                await click('#schemes input[value="int2:affine"]');
                await said(/^10 answers from 10,000 words, stored as int2:affine\./);
                assert.match(await text('#numbers'), /7.25 % of 4 MB/);
                assert.match(await text('#ledger'), /table\.int2-affine\tpayload\t250,000/);

                await click('#measure');
                await says('#speed', /^[\d,]+ lookups a second by int2:affine, [\d,]+ by f32/);
                assert.match(await text('#adapter'), backend === 'host' ? /^WebAssembly/ : /^WebGPU/);

                // What this machine does, beside a copy and a loop.
                await click('#machine');
                await says('#machine-said', /bit for bit|differ|rror/);
                const told = await text('#machine-said');
                assert.match(told, /^Web.*: 65,536 random rows of an int8 table of 50,000 × 128\./);
                assert.match(told, /All 8,388,608 values are those of the loop, bit for bit\./);
                if (backend === 'webgpu') {
                    const share = Number(/looking up is ([\d.]+) as fast as copying/.exec(told)?.[1]);
                    assert(share > 0.05 && share < 3, told);
                }

                await click('#compare');
                await says('#kept', /^$/);

                // On a phone nothing is wider than the screen.
                for (const [device, width, height] of [['desktop', 1280, 900], ['phone', 390, 844]]) {
                    await browser.resize(page, width, height);
                    await new Promise((resolve) => setTimeout(resolve, 300));
                    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
                    assert(wide <= width, `${device}: the page is ${wide} wide, the screen ${width}`);
                }
                // Each field and each picture has a name, each heading its level.
                const unnamed = await page.evaluate(() =>
                    [...document.querySelectorAll('input, button, progress, [role=img], section')].filter(
                        (element) =>
                            !element.ariaLabel &&
                            !element.labels?.length &&
                            !document.getElementById(element.getAttribute('aria-labelledby')) &&
                            !(element.matches('button') && element.textContent.trim()),
                    ).map((element) => element.outerHTML),
                );
                assert.deepEqual(unnamed, [], 'without a name');
                assert.deepEqual(page.faults, []);
                await page.close();
            });

            test(`its first answers are from the words that are here, on ${backend}`, { timeout: 180_000 }, async () => {
                const slow = await serve({ '': dist }, { delay: 500 });
                const visitor = await visit(browser, `${slow.address}/index.html?backend=${backend}`);
                const { page, text, said, says, enter } = visitor;
                await says('#from', /^Searched so far: the [\d,]+ most frequent of 10,000 words/);
                assert((await text('#results')).split('\n').length >= 10, 'answers');
                assert.match(await text('#shards-here'), /^\d+ of \d+ shards are here/);
                const [, rows] = /from ([\d,]+) of 10,000 words, once/.exec(await text('#first'));
                assert(number(rows) < 3000, `${rows} rows for the first answers`);
                // A word whose vector is not here yet is fetched, and its answers improve.
                await enter('#word', 'piano');
                await page.keyboard.press('Enter');
                await says('#said', /^10 answers from the [\d,]+ most frequent of 10,000 words/);
                const early = await text('#results');
                await said(/^10 answers from 10,000 words/);
                assert.match(await text('#results'), /guitar/);
                assert.notEqual(await text('#results'), early);
                assert.equal(await text('#from'), '');
                assert.deepEqual(page.faults, []);
                await page.close();
                slow.close();
            });
        }

        test('of a server without ranges it loads tables whole, and says so', { timeout: 120_000 }, async () => {
            const plain = await serve({ '': dist }, { ranges: false });
            const { page, text, said } = await visit(browser, `${plain.address}/index.html?backend=host`);
            await said(/^10 answers from 10,000 words/);
            assert.match(await text('#warning'), /sends no ranges of files: the table is loaded whole/);
            assert.match(await text('#shards-here'), /^The table is here in one piece/);
            assert.deepEqual(page.faults, []);
            await page.close();
            plain.close();
        });

        test('within a budget it keeps the most frequent words', { timeout: 120_000 }, async () => {
            const { page, text, says } = await visit(browser, `${server.address}/index.html?backend=host&budget=300000`);
            await says('#from', /^The memory budget holds no more of the table than the [\d,]+ most frequent words\.$/);
            const [, held] = /Here of the table\s+(\d+) kB of/.exec(await text('#numbers'));
            assert(number(held) > 150 && number(held) <= 300, `${held} kB are held`);
            assert.deepEqual(page.faults, []);
            await page.close();
        });
    });
}

// The demo page as a visitor has it.

import assert from 'node:assert/strict';

/** Opens the page. */
export async function visit(browser, address) {
    const page = await browser.open(address);
    const text = (selector) => page.evaluate((selector) => document.querySelector(selector).innerText, selector);
    const deadline = async (what, found) => {
        const end = Date.now() + 90_000;
        while (!(await found())) {
            assert(Date.now() < end, `${what}: ${await text('main')}; ${page.faults}`);
            await new Promise((resolve) => setTimeout(resolve, 30));
        }
    };
    return {
        page,
        text,
        /** Waits until an element says so. */
        says: (selector, pattern) => deadline(`${selector}: ${pattern}`, async () => pattern.test(await text(selector))),
        /** Waits until the page has answered, and says so. */
        said: (pattern) =>
            deadline(`${pattern}`, async () => {
                const idle = await page.evaluate(() => !document.body.classList.contains('busy'));
                return idle && pattern.test(await text('#said'));
            }),
        /** Types into a field. */
        enter: async (selector, word) => {
            await page.evaluate((selector) => (document.querySelector(selector).value = ''), selector);
            await page.focus(selector);
            await page.keyboard.type(word);
        },
        click: (selector) => page.evaluate((selector) => document.querySelector(selector).click(), selector),
    };
}

// The two browsers that tests run in, headless, each with WebGPU on a software adapter. They are the system's own: no tool
// downloads one.

import { existsSync } from 'node:fs';
import { Buffer } from 'node:buffer';
import process from 'node:process';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';

/** The first of these that is there, or the one that the environment names. */
function executable(variable, paths) {
    const found = process.env[variable] ?? paths.find((path) => existsSync(path));
    if (!found) {
        throw new Error(`none of ${paths.join(', ')} is there; ${variable} names another`);
    }
    return found;
}

const drivers = {
    // SwiftShader, by Dawn and Tint.
    async chromium() {
        const browser = await chromium.launch({
            executablePath: executable('GATHERUM_CHROMIUM', ['/usr/bin/chromium', '/usr/bin/google-chrome']),
            args: [
                '--headless',
                '--no-sandbox',
                '--disable-quic',
                '--no-first-run',
                '--disable-background-networking',
                '--disable-component-update',
                '--disable-sync',
                '--enable-unsafe-webgpu',
            ],
        });
        return {
            newPage: () => browser.newPage(),
            resize: (page, width, height) => page.setViewportSize({ width, height }),
            colours: (page, colorScheme) => page.emulateMedia({ colorScheme }),
            /** A picture of the page, or of what the window shows: small, and not to be had of Playwright's own call. */
            async webp(page, whole) {
                const session = await page.context().newCDPSession(page);
                const { cssContentSize: size } = await session.send('Page.getLayoutMetrics');
                const clip = { x: 0, y: 0, width: size.width, height: size.height, scale: 1 };
                const options = { format: 'webp', quality: 85, captureBeyondViewport: whole, ...(whole && { clip }) };
                return Buffer.from((await session.send('Page.captureScreenshot', options)).data, 'base64');
            },
            close: () => browser.close(),
        };
    },

    // lavapipe, by wgpu and naga.
    async firefox() {
        const browser = await puppeteer.launch({
            browser: 'firefox',
            executablePath: executable('GATHERUM_FIREFOX', ['/usr/bin/firefox-esr', '/usr/bin/firefox']),
            headless: true,
            protocolTimeout: 600_000,
            extraPrefsFirefox: {
                'dom.webgpu.enabled': true,
                'dom.webgpu.workers.enabled': true,
                'gfx.webgpu.ignore-blocklist': true,
                'gfx.webgpu.force-enabled': true,
            },
        });
        return {
            newPage: () => browser.newPage(),
            resize: (page, width, height) => page.setViewport({ width, height }),
            close: () => browser.close(),
        };
    },
};

/** Names of the browsers to test: all, or those of GATHERUM_TEST_BROWSERS. */
export const names = (process.env.GATHERUM_TEST_BROWSERS ?? Object.keys(drivers).join(',')).split(',');

/** Starts a browser. Pages collect in `page.faults` what goes wrong on them unasked. */
export async function launch(name) {
    const driver = await drivers[name]();
    return {
        ...driver,
        async open(address) {
            const page = await driver.newPage();
            page.faults = [];
            page.on('pageerror', (error) => page.faults.push(`page error: ${error}`));
            page.on('console', (message) => {
                if (message.type() === 'error') {
                    page.faults.push(`console: ${message.text()}`);
                }
            });
            await page.goto(address);
            return page;
        },
    };
}

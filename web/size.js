// Prints what a page downloads of the package, and fails where the WebAssembly module is over its budget.
//
//     node size.js FOLDER

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { brotliCompressSync, constants } from 'node:zlib';

/** Bytes of the module, compressed. */
const BUDGET = 400_000;

const brotli = (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }).length;
const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;

const folder = process.argv[2];
const module = readFileSync(join(folder, 'wasm/gatherum_bg.wasm'));
const scripts = readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith('.js'))
    .map((name) => readFileSync(join(folder, name)));
const script = Buffer.concat(scripts);
const compressed = brotli(module);
console.log(`gatherum_bg.wasm: ${kB(module.length)}, brotli ${kB(compressed)} of ${kB(BUDGET)}`);
console.log(`JavaScript: ${kB(script.length)}, brotli ${kB(brotli(script))}`);
if (compressed > BUDGET) {
    console.error('the module is over its budget');
    process.exitCode = 1;
}

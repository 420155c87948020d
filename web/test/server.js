// A small static server: files of some folders, and files that come slowly, break off, or are damaged.

import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { pipeline } from 'node:stream';

const TYPES = {
    '.html': 'text/html; charset=utf-8',
    '.js': 'text/javascript',
    '.css': 'text/css',
    '.json': 'application/json',
    '.svg': 'image/svg+xml',
    '.wasm': 'application/wasm',
};

/**
 * Serves folders by the first part of the path. What a test asks for by the query:
 * `cut=N`: the connection breaks after N bytes; `stop=N`: nothing comes after N bytes; `flip=N`: byte N is another one;
 * `whole=1`: ranges are not sent; `busy=N`: each Nth range of that address is refused. For all: `delay`, milliseconds before a
 * range is sent, and whether `ranges` are.
 */
export function serve(folders, { delay = 0, ranges = true } = {}) {
    const turns = new Map();
    const server = createServer((request, response) => {
        const url = new URL(request.url, 'http://localhost');
        const [, mount, ...rest] = normalize(decodeURIComponent(url.pathname)).split('/');
        const folder = folders[mount] ?? folders[''];
        const path = folder && join(folder, ...(folders[mount] ? rest : [mount, ...rest]));
        let size;
        try {
            size = statSync(path);
        } catch {
            size = undefined;
        }
        if (!size?.isFile()) {
            response.writeHead(404).end('no such file');
            return;
        }
        const headers = {
            'Content-Type': TYPES[extname(path)] ?? 'application/octet-stream',
            'Cache-Control': 'no-store',
        };
        const wanted = ranges && !url.searchParams.has('whole') && /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
        if (!wanted) {
            response.writeHead(200, { ...headers, 'Content-Length': size.size });
            pipeline(faulty(createReadStream(path), url.searchParams, response), response, () => {});
            return;
        }
        const busy = Number(url.searchParams.get('busy') ?? 0);
        const turn = (turns.get(request.url) ?? 0) + 1;
        turns.set(request.url, turn);
        if (busy > 0 && turn % busy === 0) {
            response.writeHead(503).end('not now');
            return;
        }
        const [start, end] = [Number(wanted[1]), Math.min(Number(wanted[2]) + 1, size.size)];
        if (start >= end) {
            response.writeHead(416, { ...headers, 'Content-Range': `bytes */${size.size}` }).end();
            return;
        }
        setTimeout(() => {
            response.writeHead(206, {
                ...headers,
                'Content-Length': end - start,
                'Content-Range': `bytes ${start}-${end - 1}/${size.size}`,
            });
            const file = createReadStream(path, { start, end: end - 1 });
            pipeline(faulty(file, url.searchParams, response, start), response, () => {});
        }, delay);
    });
    return new Promise((resolve) => {
        server.listen(0, '127.0.0.1', () => {
            resolve({
                address: `http://127.0.0.1:${server.address().port}`,
                close: () => {
                    server.close();
                    server.closeAllConnections();
                },
            });
        });
    });
}

async function* faulty(file, wants, response, start = 0) {
    const [cut, stop, flip] = ['cut', 'stop', 'flip'].map((name) => Number(wants.get(name) ?? Infinity));
    let at = start;
    for await (const piece of file) {
        if (flip >= at && flip < at + piece.length) {
            piece[flip - at] ^= 1;
        }
        const end = Math.min(cut, stop) - at;
        yield piece.subarray(0, Math.max(0, end));
        at += piece.length;
        if (at > stop) {
            await new Promise((resolve) => response.once('close', resolve));
            return;
        }
        if (at > cut) {
            // What was written gets a moment to leave.
            await new Promise((resolve) => setTimeout(resolve, 50));
            response.destroy();
            return;
        }
    }
}

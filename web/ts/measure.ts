/** Lookups, timed beside what bounds them. */

import type { RawCopies, RawGathers, RawTable } from './wasm/gatherum.js';
import { ArgumentError } from './errors.js';
import { call } from './module.js';
import type { Table } from './table.js';
import type { Measurement, MeasureOptions } from './types.js';

/**
 * What an engine does to be measured.
 *
 * @internal
 */
export interface Bench {
    /** Loads a table whose parts `read` has. */
    readonly table: (scheme: string, rows: number, dim: number, read: Read) => Promise<{ raw: RawTable; table: Table }>;
    readonly gathers: (table: RawTable, ids: Uint32Array) => Promise<RawGathers>;
    readonly copies: (bytes: number, span: number) => RawCopies | undefined;
    /** The device's; undefined on the host. */
    readonly queue: Queue | undefined;
}

/**
 * What is used of a `GPUQueue`.
 *
 * @internal
 */
export interface Queue {
    submit(commands: []): void;
    onSubmittedWorkDone(): Promise<void>;
}

/** @internal */
type Read = (part: string, start: number, end: number) => Uint8Array;

/**
 * What is submitted some times over.
 *
 * @internal
 */
interface Work {
    submit(times: number): void;
    free(): void;
}

/** Threads of a copy move so many times 16 bytes each. */
const SPANS = [1, 4, 8, 16, 32];
/** The most bytes of an array here. */
const LARGEST = 2 ** 31;
/** Turns, of which the median counts. */
const TURNS = 9;
/** Milliseconds that a submission should take at least, as clocks of browsers are coarse, and it takes some to be told of its end. */
const LONG = 150;
/** The most lookups of a submission. */
const MOST = 512;

/**
 * Measures lookups in a table of random codes.
 *
 * @internal
 */
export async function measure(bench: Bench, options: MeasureOptions): Promise<Measurement> {
    const { rows = 1_000_000, dim = 128, ids: count = 65_536 } = options;
    for (const [what, value] of Object.entries({ rows, dim, ids: count })) {
        if (!Number.isInteger(value) || value < 1 || value > 0xffff_ffff) {
            throw new ArgumentError('bad-argument', `${what} is ${value}; it is a whole number from 1 on`);
        }
    }
    if (rows * dim > LARGEST || count * dim * 4 > LARGEST) {
        throw new ArgumentError('too-large', `${rows} x ${dim} and ${count} ids are more than arrays of ${LARGEST} bytes hold`);
    }
    const { codes, scales, read } = parts(rows, dim);
    const ids = randomIds(rows, count);
    const other = new Float32Array(count * dim);
    const { raw, table } = await bench.table('int8', rows, dim, read);
    const freed: { free(): void }[] = [table];
    try {
        const out = lookup(codes, scales, dim, ids);
        const { values } = await table.gather(ids);
        const differing = values.reduce((sum, value, at) => sum + (value === out[at] ? 0 : 1), 0);
        const toPage: number[] = [];
        const loop: number[] = [];
        const copy: number[] = [];
        const gather: number[] = [];
        const { queue } = bench;
        const best = queue && (await bestCopy(bench, queue, out.byteLength));
        const gathers = queue && (await bench.gathers(raw, ids));
        freed.push(...[best, gathers].filter((work) => work !== undefined));
        for (let turn = 0; turn < TURNS; turn += 1) {
            if (queue && best && gathers) {
                copy.push(await each(best, queue));
                gather.push(await each(gathers, queue));
            } else {
                copy.push(timed(() => other.set(out)));
            }
            const start = performance.now();
            await table.gather(ids);
            toPage.push(performance.now() - start);
            loop.push(timed(() => lookup(codes, scales, dim, ids)));
        }
        const here = queue && median(gather);
        return { rows, dim, ids: count, gather: here, copy: median(copy), toPage: median(toPage), loop: median(loop), differing };
    } finally {
        freed.forEach((work) => work.free());
    }
}

/** The parts of an `int8` table: codes of all kinds, and scales that are exact. */
function parts(rows: number, dim: number): { codes: Int8Array; scales: Float32Array; read: Read } {
    const codes = new Int8Array(rows * dim);
    for (let at = 0; at < codes.length; at += 1) {
        codes[at] = Math.imul(at, 0x9e37_79b1) >> 24;
    }
    const scales = Float32Array.from({ length: rows }, (_, row) => (1 + (row % 1021)) / 8192);
    const bytes: Record<string, Uint8Array> = { codes: new Uint8Array(codes.buffer), scales: new Uint8Array(scales.buffer) };
    return { codes, scales, read: (part, start, end) => bytes[part]?.subarray(start, end) ?? new Uint8Array() };
}

/** Ids that are the same each time, and follow no order. */
function randomIds(rows: number, count: number): Uint32Array {
    let state = 1;
    return Uint32Array.from({ length: count }, () => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        return Math.floor((state / 2 ** 32) * rows);
    });
}

/** The rows of the ids in a new array, as one would write it without a library. */
function lookup(codes: Int8Array, scales: Float32Array, dim: number, ids: Uint32Array): Float32Array {
    const out = new Float32Array(ids.length * dim);
    for (let at = 0; at < ids.length; at += 1) {
        const row = ids[at]!;
        const scale = scales[row]!;
        for (let column = 0; column < dim; column += 1) {
            out[at * dim + column] = codes[row * dim + column]! * scale;
        }
    }
    return out;
}

/** Of the copy shaders the fastest; undefined where there is no room for one. Each is there alone. */
async function bestCopy(bench: Bench, queue: Queue, bytes: number): Promise<Work | undefined> {
    let [fastest, least] = [0, Infinity];
    for (const span of SPANS) {
        const work = bench.copies(bytes, span);
        if (!work) {
            return undefined;
        }
        try {
            await each(work, queue);
            const time = await each(work, queue);
            if (time < least) {
                [fastest, least] = [span, time];
            }
        } finally {
            work.free();
        }
    }
    return bench.copies(bytes, fastest);
}

/** Milliseconds of one, of as many as take long enough. */
async function each(work: Work, queue: Queue): Promise<number> {
    for (let times = 2; ; times *= 2) {
        const start = performance.now();
        call(() => work.submit(times));
        await settled(queue);
        const time = performance.now() - start;
        if (time >= LONG || times >= MOST) {
            return time / times;
        }
    }
}

/** Ends when all has run that was submitted. Firefox tells so when more is submitted, or once in a tenth of a second. */
async function settled(queue: Queue): Promise<void> {
    let done = false;
    const end = queue.onSubmittedWorkDone().then(() => (done = true));
    while (!done) {
        queue.submit([]);
        await Promise.race([end, new Promise((resolve) => setTimeout(resolve, 1))]);
    }
}

function timed(work: () => unknown): number {
    const start = performance.now();
    work();
    return performance.now() - start;
}

function median(times: number[]): number {
    return times.sort((one, other) => one - other)[times.length >> 1] ?? 0;
}

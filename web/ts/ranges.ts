/** A table file that is read by ranges. */

import { ArgumentError, NetworkError } from './errors.js';
import type { RangeInput } from './types.js';

/** The first bytes of a file, which tell its size and hold the header of a small table. */
const FIRST = 64 << 10;

/** A file of a known size. */
export interface Ranges {
    readonly size: number;
    /** Bytes that have come from the network so far; undefined for a file of the user's. */
    readonly come: (() => number) | undefined;
    /** The bytes from `start` up to, but without, `end`. */
    readonly read: (start: number, end: number) => Promise<Uint8Array>;
    /** Says that the file is open: the signal ends no reads any more. */
    readonly opened: () => void;
}

/** Finds out how large a file is. A server that sends no ranges has begun to send all of it: that answer is given instead. */
export async function ranges(input: RangeInput, signal: AbortSignal | undefined): Promise<Ranges | Response> {
    if (input instanceof Blob) {
        const read = async (start: number, end: number): Promise<Uint8Array> =>
            new Uint8Array(await input.slice(start, end).arrayBuffer());
        return { size: input.size, come: undefined, read, opened: () => {} };
    }
    if (typeof input !== 'string' && !(input instanceof URL)) {
        throw new ArgumentError('bad-argument', 'a table is opened by a URL or a Blob');
    }
    const address = `${input}`;
    let ending = signal;
    let come = 0;
    const first = await range(address, 0, FIRST, ending);
    if (first instanceof Response) {
        return first;
    }
    come += first.bytes.length;
    const read = async (start: number, end: number): Promise<Uint8Array> => {
        if (end <= first.bytes.length) {
            return first.bytes.slice(start, end);
        }
        const here = first.bytes.subarray(start);
        const next = await range(address, start + here.length, end, ending);
        if (next instanceof Response) {
            await next.body?.cancel();
            throw new NetworkError(`${address}: the server sends no ranges any more`, next.status);
        }
        come += next.bytes.length;
        if (next.size !== first.size) {
            throw new NetworkError(`${address}: the file has changed: it had ${first.size} bytes, and has ${next.size}`);
        }
        if (here.length === 0) {
            return next.bytes;
        }
        const joined = new Uint8Array(here.length + next.bytes.length);
        joined.set(here);
        joined.set(next.bytes, here.length);
        return joined;
    };
    return { size: first.size, come: () => come, read, opened: () => (ending = undefined) };
}

/** Reads a range, and the size of the file, which the server tells beside it; its answer where that is the whole file. */
async function range(address: string, start: number, end: number, signal: AbortSignal | undefined) {
    let response: Response;
    let bytes: Uint8Array;
    try {
        response = await fetch(address, { headers: { Range: `bytes=${start}-${end - 1}` }, ...(signal && { signal }) });
        if (response.status === 200) {
            return response;
        }
        if (response.status !== 206) {
            await response.body?.cancel();
        }
        bytes = response.status === 206 ? new Uint8Array(await response.arrayBuffer()) : new Uint8Array();
    } catch (error) {
        signal?.throwIfAborted();
        throw new NetworkError(`${address}: ${String(error)}`, undefined, { cause: error });
    }
    const { status, statusText } = response;
    if (!response.ok && status !== 416) {
        throw new NetworkError(`${address}: the server answered ${status} ${statusText}`, status);
    }
    const told = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+)$/.exec(response.headers.get('Content-Range') ?? '');
    if (!told) {
        throw new NetworkError(`${address}: the server does not tell the file's size, or CORS does not expose Content-Range`, status);
    }
    const size = Number(told[3]);
    if (status === 206 && (Number(told[1]) !== start || bytes.length !== Math.min(end, size) - start)) {
        throw new NetworkError(`${address}: the server sent another range than ${start} to ${end}`, status);
    }
    return { bytes, size };
}

/** A table file that is read by ranges. */

import { ArgumentError, NetworkError } from './errors.js';
import type { RangeInput } from './types.js';

/** The first bytes of a file, which tell its size and hold the header of a small table. */
const FIRST = 64 << 10;

/** A file of a known size. */
export interface Ranges {
    readonly size: number;
    /** The bytes from `start` up to, but without, `end`. */
    readonly read: (start: number, end: number) => Promise<Uint8Array>;
    /** Says that the file is open: the signal ends no reads any more. */
    readonly opened: () => void;
}

/** Finds out how large a file is. */
export async function ranges(input: RangeInput, signal: AbortSignal | undefined): Promise<Ranges> {
    if (input instanceof Blob) {
        const read = async (start: number, end: number): Promise<Uint8Array> =>
            new Uint8Array(await input.slice(start, end).arrayBuffer());
        return { size: input.size, read, opened: () => {} };
    }
    if (typeof input !== 'string' && !(input instanceof URL)) {
        throw new ArgumentError('bad-argument', 'a table is opened by a URL or a Blob');
    }
    const address = `${input}`;
    let ending = signal;
    const first = await range(address, 0, FIRST, ending);
    const read = async (start: number, end: number): Promise<Uint8Array> => {
        if (end <= first.bytes.length) {
            return first.bytes.slice(start, end);
        }
        const { bytes, size } = await range(address, start, end, ending);
        if (size !== first.size) {
            throw new NetworkError(`${address}: the file has changed: it had ${first.size} bytes, and has ${size}`);
        }
        return bytes;
    };
    return { size: first.size, read, opened: () => (ending = undefined) };
}

/** Reads a range, and the size of the file, which the server tells beside it. */
async function range(address: string, start: number, end: number, signal: AbortSignal | undefined) {
    let response: Response;
    let bytes: Uint8Array;
    try {
        response = await fetch(address, { headers: { Range: `bytes=${start}-${end - 1}` }, ...(signal && { signal }) });
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
    if (status === 200) {
        throw new NetworkError(`${address}: the server sends no ranges; \`load\` takes the file whole`, status);
    }
    if (!told) {
        throw new NetworkError(`${address}: the server does not tell the file's size, or CORS does not expose Content-Range`, status);
    }
    const size = Number(told[3]);
    if (status === 206 && (Number(told[1]) !== start || bytes.length !== Math.min(end, size) - start)) {
        throw new NetworkError(`${address}: the server sent another range than ${start} to ${end}`, status);
    }
    return { bytes, size };
}

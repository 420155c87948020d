/** Bytes of a table file, whatever they come from, in pieces that are small beside a table. */

import { ArgumentError, NetworkError } from './errors.js';
import type { TableInput } from './types.js';

/** The most bytes of a piece, which is what the module's memory has to hold of a file at a time. */
const PIECE = 1 << 20;

/** Gives the pieces in order. Ending early lets go of the stream, and so of the connection. */
export async function* pieces(input: TableInput, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    if (input instanceof ArrayBuffer) {
        yield* cut(new Uint8Array(input));
    } else if (ArrayBuffer.isView(input)) {
        yield* cut(new Uint8Array(input.buffer, input.byteOffset, input.byteLength));
    } else {
        yield* read(await open(input, signal), signal);
    }
}

/** A name for the table: the last part of an address without its ending. */
export function nameOf(input: TableInput): string {
    const address = input instanceof Response ? input.url : input instanceof URL || typeof input === 'string' ? `${input}` : '';
    const file = address.split(/[?#]/, 1)[0]?.split('/').pop() ?? '';
    return file.replace(/\.safetensors$/, '') || 'table';
}

async function open(input: string | URL | Response | Blob | ReadableStream<Uint8Array>, signal: AbortSignal | undefined) {
    if (typeof input === 'string' || input instanceof URL) {
        const address = `${input}`;
        let response: Response;
        try {
            response = await fetch(address, signal ? { signal } : {});
        } catch (error) {
            signal?.throwIfAborted();
            throw new NetworkError(`${address}: ${String(error)}`, undefined, { cause: error });
        }
        return body(response, address);
    }
    if (input instanceof Response) {
        return body(input, input.url || 'the answer');
    }
    if (input instanceof Blob) {
        return input.stream() as ReadableStream<Uint8Array>;
    }
    if (input instanceof ReadableStream) {
        return input;
    }
    throw new ArgumentError('bad-argument', 'a table comes from a URL, a Response, a Blob, bytes or a ReadableStream of bytes');
}

function body(response: Response, address: string): ReadableStream<Uint8Array> {
    if (!response.ok) {
        throw new NetworkError(`${address}: the server answered ${response.status} ${response.statusText}`, response.status);
    }
    if (!response.body) {
        throw new NetworkError(`${address}: the answer has no body`, response.status);
    }
    return response.body;
}

async function* read(stream: ReadableStream<Uint8Array>, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    const reader = stream.getReader();
    // A read that waits for a slow server ends at once.
    const stop = (): void => void reader.cancel(signal?.reason).catch(() => {});
    signal?.addEventListener('abort', stop, { once: true });
    let ended = false;
    try {
        for (;;) {
            signal?.throwIfAborted();
            let next;
            try {
                next = await reader.read();
            } catch (error) {
                ended = true;
                signal?.throwIfAborted();
                throw new NetworkError(`the file broke off: ${String(error)}`, undefined, { cause: error });
            }
            signal?.throwIfAborted();
            if (next.done) {
                ended = true;
                return;
            }
            if (!(next.value instanceof Uint8Array)) {
                throw new ArgumentError('bad-argument', 'a stream must give pieces of type Uint8Array');
            }
            yield* cut(next.value);
        }
    } finally {
        signal?.removeEventListener('abort', stop);
        if (!ended) {
            await reader.cancel().catch(() => {});
        }
        reader.releaseLock();
    }
}

function* cut(bytes: Uint8Array): Generator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += PIECE) {
        yield bytes.subarray(at, at + PIECE);
    }
}

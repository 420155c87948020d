/** The WebAssembly module: loaded once, when first asked for. */

import init, { onPanic } from './wasm/gatherum.js';
import { fromRaw, GatherumError } from './errors.js';

/** Where the module's bytes are: a URL, an answer of `fetch`, bytes or a compiled module. By default the file beside this one. */
export type ModuleSource = string | URL | Request | Response | BufferSource | WebAssembly.Module | Promise<Response>;

let loading: Promise<void> | undefined;
let broken: GatherumError | undefined;
/** How to end the calls that are on their way. */
const pending = new Set<(error: GatherumError) => void>();

/** Loads the module, unless it is there. */
export async function load(source: ModuleSource | undefined): Promise<void> {
    loading ??= start(source);
    try {
        await loading;
    } catch (error) {
        // The next call may find the network in a better state.
        loading = undefined;
        throw new GatherumError('network', `the WebAssembly module could not be loaded: ${String(error)}`, { cause: error });
    }
}

async function start(source: ModuleSource | undefined): Promise<void> {
    await init({ module_or_path: source ?? new URL('./wasm/gatherum_bg.wasm', import.meta.url) });
    onPanic((message: string) => {
        broken = new GatherumError('internal', `a fault of this library, please report it: ${message}`);
        for (const end of pending) {
            end(broken);
        }
        pending.clear();
    });
}

/** Calls the module, and makes its errors ours. */
export function call<T>(run: () => T): T {
    if (broken) {
        throw broken;
    }
    try {
        return run();
    } catch (thrown) {
        // A trap ends the module as a panic does, whose message says more.
        throw broken ?? fromRaw(thrown);
    }
}

/** As {@link call}, for what answers later. It ends in any case: a fault of the module ends all that waits for it. */
export function callAsync<T>(run: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
        const answer = call(run);
        pending.add(reject);
        answer.then(
            (value) => {
                pending.delete(reject);
                resolve(value);
            },
            (thrown: unknown) => {
                pending.delete(reject);
                reject(broken ?? fromRaw(thrown));
            },
        );
    });
}

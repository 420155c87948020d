import { RawEngine, type RawGathers, type RawTable } from './wasm/gatherum.js';
import { ArgumentError, FileError } from './errors.js';
import { nameOf, pieces } from './input.js';
import { call, callAsync, load as loadModule, type ModuleSource } from './module.js';
import { measure, type Bench, type Queue } from './measure.js';
import { ranges } from './ranges.js';
import { Table } from './table.js';
import type {
    LoadOptions,
    Measurement,
    MeasureOptions,
    MemoryReport,
    OpenOptions,
    RangeInput,
    TableInput,
    WebGPUDevice,
} from './types.js';

/** Options of an engine. */
export interface EngineOptions {
    /**
     * What it runs on: the browser's GPU, or the host, which is WebAssembly on this thread. By default (`auto`) the host where
     * there is no GPU, or one that software imitates.
     */
    backend?: 'auto' | 'webgpu' | 'host';
    /** Which of several GPUs to take, as a hint to the browser; by default `high-performance`. */
    powerPreference?: 'high-performance' | 'low-power';
    /** The most bytes that all buffers and host tables of the engine may take together. */
    memoryBudget?: number;
    /** Where the WebAssembly module is; by default the file that lies beside this one. Only the first engine of a page is asked. */
    module?: ModuleSource;
}

/** What an engine runs on. */
export interface Adapter {
    /** As the browser describes it, which may be nothing; `host` on the host. */
    readonly name: string;
    /** `host`, `software` for a GPU that software imitates, or `gpu`. */
    readonly kind: 'gpu' | 'software' | 'host';
}

/** What a browser says of a device's adapter, which may be nothing. */
function told(device: WebGPUDevice | undefined): string {
    const { vendor, architecture, description } = (device?.adapterInfo ?? {}) as Record<string, string | undefined>;
    return description || [vendor, architecture].filter(Boolean).join(' ');
}

/**
 * Where tables live and lookups run: a device of the browser's, or WebAssembly.
 *
 * ```js
 * const engine = await Engine.create();
 * const table = await engine.load('words.safetensors');
 * const { ids } = await table.topK(await table.vector('king'), 10);
 * ```
 */
export class Engine {
    #raw: RawEngine | undefined;
    /** Those that nobody has freed; weakly, so that they may be collected. */
    readonly #tables = new Set<WeakRef<Table>>();
    /** What it runs on: `webgpu` or `host`. */
    readonly backend: 'webgpu' | 'host';
    /** The adapter behind it. */
    readonly adapter: Adapter;
    /** The device, for other work on the rows that it holds; undefined on the host. */
    readonly device: WebGPUDevice | undefined;

    private constructor(raw: RawEngine) {
        this.#raw = raw;
        const { name, kind } = raw.backend() as { name: string; kind: string };
        this.backend = kind === 'host' ? 'host' : 'webgpu';
        this.device = raw.device() as WebGPUDevice | undefined;
        this.adapter = { name: name || told(this.device), kind: kind === 'host' || kind === 'software' ? kind : 'gpu' };
    }

    /**
     * Creates an engine.
     *
     * @throws {@link DeviceError} `no-adapter` where WebGPU is asked for and there is none.
     */
    static async create(options: EngineOptions = {}): Promise<Engine> {
        const { backend = 'auto', powerPreference, memoryBudget, module } = options;
        if (memoryBudget !== undefined && !(memoryBudget >= 0)) {
            throw new ArgumentError('bad-argument', `memoryBudget is ${memoryBudget}; it is a number of bytes`);
        }
        await loadModule(module);
        return new Engine(await callAsync(() => RawEngine.create(backend, powerPreference === 'low-power', memoryBudget)));
    }

    /**
     * Loads a table file, which `gatherum compress` makes. Its bytes go to the device as they come; only on the host is the
     * table in memory whole.
     *
     * @throws {@link FileError}, {@link NetworkError}, {@link MemoryBudgetError}, {@link DeviceError}; the signal's reason
     * where it ends loading. Nothing of the table is left then.
     */
    async load(input: TableInput, options: LoadOptions = {}): Promise<Table> {
        const { signal, onProgress, name = nameOf(input) } = options;
        signal?.throwIfAborted();
        const stream = call(() => this.#live().stream(name));
        let done = false;
        let loaded = 0;
        try {
            for await (const piece of pieces(input, signal)) {
                await callAsync(() => stream.push(piece));
                signal?.throwIfAborted();
                loaded += piece.length;
                onProgress?.({ loaded, total: stream.fileBytes() as number | undefined });
            }
            done = true;
            // Once it ends, well or not, the stream is gone.
            const table = new Table(call(() => stream.finish()), this.#tables, () => loaded);
            if (!this.#raw) {
                table.free();
            }
            this.#live();
            return table;
        } catch (error) {
            if (error instanceof FileError && typeof input === 'string') {
                error.message = `${input}: ${error.message}`;
            }
            throw error;
        } finally {
            if (!done) {
                stream.free();
            }
        }
    }

    /**
     * Opens a table file of which lookups read what they need: its header is read, and nothing else. The server should send ranges
     * of the file, and must, where it is another site's, say in CORS that `Content-Range` may be seen. Of one that sends none the
     * file is loaded whole, after a warning.
     *
     * Lookups, bags and searches answer as those of a table that is loaded; a search reads all of it. What the network fails to
     * bring is asked for again, with waits that double, and then fails the lookups that need it, and no others.
     *
     * @throws {@link FileError}, {@link NetworkError}, {@link DeviceError}; {@link ArgumentError} for a scheme that is loaded whole,
     * or a budget that holds no shard; the signal's reason.
     */
    async open(input: RangeInput, options: OpenOptions = {}): Promise<Table> {
        const { signal, name = nameOf(input), shardBytes = 256 << 10, budget, words = false } = options;
        for (const [what, bytes] of Object.entries({ shardBytes, budget })) {
            if (bytes !== undefined && !(bytes >= 0)) {
                throw new ArgumentError('bad-argument', `${what} is ${bytes}; it is a number of bytes`);
            }
        }
        signal?.throwIfAborted();
        this.#live();
        const found = await ranges(input, signal);
        if (found instanceof Response) {
            const { onWarning = console.warn, onProgress } = options;
            onWarning(`${input}: the server sends no ranges of files: the table is loaded whole`);
            return this.load(found, { name, ...(signal && { signal }), ...(onProgress && { onProgress }) });
        }
        const { size, come, read, opened } = found;
        try {
            const raw = await callAsync(() => this.#live().open(name, size, read, shardBytes, budget, words));
            const table = new Table(raw as RawTable, this.#tables, come);
            if (!this.#raw) {
                table.free();
            }
            this.#live();
            signal?.throwIfAborted();
            return table;
        } catch (error) {
            signal?.throwIfAborted();
            throw error;
        } finally {
            opened();
        }
    }

    /**
     * Measures lookups of random rows of an `int8` table beside the fastest copies of as many bytes, and beside a loop over typed
     * arrays, all in turns. It takes some seconds, and memory: twice the table, and six times the rows that a lookup gives.
     *
     * @throws {@link MemoryBudgetError}, {@link DeviceError}, {@link ArgumentError} for sizes of no table.
     */
    async measure(options: MeasureOptions = {}): Promise<Measurement> {
        const { device } = this;
        const bench: Bench = {
            table: async (scheme, rows, dim, read) => {
                const raw = await callAsync(() => this.#live().loadParts('measure', scheme, rows, dim, read));
                return { raw: raw as RawTable, table: new Table(raw as RawTable, this.#tables) };
            },
            gathers: async (table, ids) => (await callAsync(() => this.#live().gathers(table, ids))) as RawGathers,
            copies: (bytes, span) => call(() => this.#live().copies(bytes, span)),
            queue: device?.queue as Queue | undefined,
        };
        return measure(bench, options);
    }

    /** The ledger: every byte of every buffer and host table of this engine. */
    memory(): MemoryReport {
        return call(() => this.#live().memory() as MemoryReport);
    }

    /** Gives back the memory of buffers that are kept for the next call. */
    trim(): void {
        call(() => this.#live().trim());
    }

    /** Whether the device is known to be lost. */
    get lost(): boolean {
        return call(() => this.#live().lost());
    }

    /** Frees the engine and its tables. Calls that are on their way still end; the device is destroyed after the last. */
    free(): void {
        for (const table of this.#tables) {
            table.deref()?.free();
        }
        this.#raw?.free();
        this.#raw = undefined;
    }

    #live(): RawEngine {
        if (!this.#raw) {
            throw new ArgumentError('freed', 'the engine was freed');
        }
        return this.#raw;
    }
}

import { RawBags, type RawBuffer, type RawTable } from './wasm/gatherum.js';
import { ArgumentError } from './errors.js';
import { call, callAsync } from './module.js';
import type {
    BadIds,
    BagOptions,
    BufferOptions,
    GatherOptions,
    Ids,
    Metric,
    Residency,
    Rows,
    ShardRows,
    TableMemory,
    TopK,
    TopKOptions,
    WebGPUBuffer,
} from './types.js';

interface Description extends TableMemory {
    name: string;
    scheme: string;
    rows: number;
    dim: number;
}

/** Stands where there is no row. */
const NO_ROW = 0xffff_ffff;

/** A table that rows can be looked up in. Made by `Engine.load` and `Engine.open`. */
export class Table {
    #raw: RawTable | undefined;
    readonly #tables: Set<WeakRef<Table>>;
    readonly #self = new WeakRef(this);
    readonly #memory: TableMemory;
    /** Bytes that have come; undefined where the module knows better. */
    readonly #come: (() => number) | undefined;
    /** Its name, in messages and the ledger. */
    readonly name: string;
    /** How its rows are stored: `int8`, `int4:affine,group=32`. */
    readonly scheme: string;
    /** Number of rows. */
    readonly rows: number;
    /** Columns of a row. */
    readonly dim: number;
    /** Number of words, one a row; undefined where the file has none. */
    readonly words: number | undefined;

    /** @internal */
    constructor(raw: RawTable, tables: Set<WeakRef<Table>>, come?: () => number) {
        this.#raw = raw;
        this.#tables = tables;
        this.#come = come;
        tables.add(this.#self);
        const { name, scheme, rows, dim, ...memory } = raw.describe() as Description;
        this.#memory = memory;
        this.name = name;
        this.scheme = scheme;
        this.rows = rows;
        this.dim = dim;
        this.words = raw.wordCount();
    }

    /**
     * Looks rows up: `values` are `[ids, dim]`, row-major, in the order of the ids.
     *
     * @throws {@link BadIdError}, {@link ArgumentError}, {@link MemoryBudgetError}, {@link DeviceError}.
     */
    async gather(ids: Ids, options: GatherOptions = {}): Promise<Rows> {
        return this.#rows(await callAsync(() => this.#live().gather(ids, policyOf(options))));
    }

    /**
     * As {@link gather}, into a buffer of the engine's device, where other work finds the rows. Nothing is copied and nothing
     * waited for: what is submitted to the device's queue later sees them.
     *
     * @throws As {@link gather}; {@link ArgumentError} `host-backend` on the host.
     */
    async gatherToBuffer(ids: Ids, options: BufferOptions = {}): Promise<RowBuffer> {
        const { dtype = 'f32' } = options;
        return new RowBuffer(await callAsync(() => this.#live().gatherToBuffer(ids, policyOf(options), dtype)));
    }

    /**
     * Makes one row of each bag of ids: their sum, mean or maximum, as PyTorch's `EmbeddingBag`. The rows of the ids are not
     * made. A bag without ids is zeros.
     *
     * @param bounds where each bag begins: `[bags]`, the first at 0. See {@link BagOptions.bounds} for other ways to say it.
     * @throws As {@link gather}; {@link ArgumentError} `bad-bags` where bounds or weights do not fit the ids.
     */
    async bag(ids: Ids, bounds: Ids, options: BagOptions = {}): Promise<Rows> {
        return this.#rows(await callAsync(() => this.#live().bag(ids, bagsOf(bounds, options), policyOf(options))));
    }

    /** As {@link bag}, into a buffer: see {@link gatherToBuffer}. */
    async bagToBuffer(ids: Ids, bounds: Ids, options: BagOptions = {}): Promise<RowBuffer> {
        return new RowBuffer(
            await callAsync(() => this.#live().bagToBuffer(ids, bagsOf(bounds, options), policyOf(options))),
        );
    }

    /**
     * Finds the `k` rows nearest to each of `queries`, `[queries, dim]`, of all rows.
     *
     * @param k 1 to 1,024.
     * @throws {@link ArgumentError}, {@link MemoryBudgetError}, {@link DeviceError}.
     */
    async topK(queries: Float32Array | readonly number[], k: number, options: TopKOptions = {}): Promise<TopK> {
        const { metric = 'cosine', rows, leaveOut = [] } = options;
        const values = floats('queries', queries);
        const left = Uint32Array.from(leaveOut as Iterable<number | undefined>, (row) =>
            row === undefined ? NO_ROW : whole('leaveOut', row),
        );
        const range = rows && Uint32Array.from(rows, (row) => whole('rows', row));
        const found = callAsync(() => this.#live().topK(values, whole('k', k), metric, range, left));
        const [ids, scores, places] = (await found) as [Uint32Array, Float32Array, number];
        return { ids, scores, k: places };
    }

    /**
     * Scores rows by each of `queries`, `[queries, dim]`: `[queries, rows]`.
     *
     * @param rows the first row, and the one behind the last; all rows unless said otherwise.
     * @throws As {@link topK}.
     */
    async score(
        queries: Float32Array | readonly number[],
        metric: Metric = 'cosine',
        rows?: readonly [number, number],
    ): Promise<Float32Array> {
        const values = floats('queries', queries);
        const range = rows && Uint32Array.from(rows, (row) => whole('rows', row));
        return (await callAsync(() => this.#live().score(values, metric, range))) as Float32Array;
    }

    /** The word of a row; undefined where the file has none, or the table no such row. */
    word(row: number): string | undefined {
        return call(() => this.#live().word(whole('row', row)));
    }

    /** The first row of a word. */
    find(word: string): number | undefined {
        return call(() => this.#live().find(word));
    }

    /**
     * The row of a word.
     *
     * @throws {@link ArgumentError} where there is no such word; else as {@link gather}.
     */
    async vector(word: string): Promise<Float32Array> {
        const row = this.find(word);
        if (row === undefined) {
            throw new ArgumentError('bad-argument', `table \`${this.name}\` has no word ${JSON.stringify(word)}`);
        }
        return (await this.gather(Uint32Array.of(row))).values;
    }

    /** What of it is there: all, unless it was opened and not loaded. */
    residency(): Residency {
        const residency = call(() => this.#live().residency() as Residency);
        return this.#come ? { ...residency, read: this.#come() } : residency;
    }

    /**
     * Its shards in the order of their rows, and which of them are there. Rows are stored rows, which are fewer than the table's
     * where the scheme is one that shares them.
     */
    shardRows(): ShardRows[] {
        const all = call(() => this.#live().shardRows());
        const shards: ShardRows[] = [];
        for (let at = 0; at < all.length; at += 3) {
            shards.push({ start: all[at]!, end: all[at + 1]!, resident: all[at + 2] === 1 });
        }
        return shards;
    }

    /**
     * Loads the shards that have the rows of `ids`, before they are needed; without ids all, or as many as the budget takes, from
     * row 0 on.
     *
     * @throws {@link NetworkError}, {@link FileError}, {@link MemoryBudgetError}, {@link DeviceError}.
     */
    async prefetch(ids?: Ids): Promise<void> {
        await callAsync(() => this.#live().prefetch(ids));
    }

    /** Lets go of the shards that have any rows from `start` up to, but without, `end`, and says how many bytes those had. */
    evict(start = 0, end: number = this.rows): number {
        return call(() => this.#live().evict(whole('start', start), whole('end', end)));
    }

    /** What it takes. */
    memory(): TableMemory {
        return this.#memory;
    }

    /** Frees its memory. Calls that are on their way still end. */
    free(): void {
        this.#tables.delete(this.#self);
        this.#raw?.free();
        this.#raw = undefined;
    }

    #live(): RawTable {
        if (!this.#raw) {
            throw new ArgumentError('freed', `table \`${this.name}\` was freed`);
        }
        return this.#raw;
    }

    #rows(raw: unknown): Rows {
        const [values, count, first] = raw as [Float32Array, number, number | undefined];
        return { values, rows: values.length / this.dim, dim: this.dim, badIds: { count, first } };
    }
}

/** Rows in a buffer of the engine's device: `[rows, dim]`, row-major, from byte 0 on. The buffer may be longer. */
export class RowBuffer {
    #raw: RawBuffer | undefined;
    /** The buffer, with the usages `STORAGE`, `COPY_SRC` and `COPY_DST`. Once this is freed, its rows are others'. */
    readonly buffer: WebGPUBuffer;
    /** How many rows there are. */
    readonly rows: number;
    /** Columns of a row. */
    readonly dim: number;
    /** Bytes of the rows. */
    readonly bytes: number;
    /** Ids that named no row. */
    readonly badIds: BadIds;

    /** @internal */
    constructor(raw: RawBuffer) {
        this.#raw = raw;
        this.buffer = raw.buffer() as WebGPUBuffer;
        const [rows, dim, bytes, count, first] = raw.describe() as [number, number, number, number, number | undefined];
        this.rows = rows;
        this.dim = dim;
        this.bytes = bytes;
        this.badIds = { count, first };
    }

    /** Gives the buffer back to the engine, for the next call. */
    free(): void {
        this.#raw?.free();
        this.#raw = undefined;
    }
}

function policyOf(options: GatherOptions): string {
    return `${options.policy ?? 'error'}`;
}

function bagsOf(bounds: Ids, options: BagOptions): RawBags {
    const { weights, paddingId } = options;
    const bags = new RawBags(bounds, `${options.bounds ?? 'offsets'}`, `${options.mode ?? 'sum'}`);
    if (weights !== undefined) {
        bags.setWeights(floats('weights', weights));
    }
    if (paddingId !== undefined) {
        if (typeof paddingId !== 'bigint' && !Number.isSafeInteger(paddingId)) {
            throw new ArgumentError('bad-argument', `paddingId is ${paddingId}; it is a whole number or a BigInt`);
        }
        bags.setPadding(BigInt(paddingId));
    }
    if (options.normalise) {
        bags.normalise();
    }
    return bags;
}

function floats(what: string, values: Float32Array | readonly number[]): Float32Array {
    if (values instanceof Float32Array) {
        return values;
    }
    if (Array.isArray(values) && values.every((value) => typeof value === 'number')) {
        return Float32Array.from(values);
    }
    throw new ArgumentError('bad-argument', `${what} must be a Float32Array, or an array of numbers`);
}

/** Refuses what a 32-bit number would only be near to. */
function whole(what: string, value: number): number {
    if (!Number.isInteger(value) || value < 0 || value > NO_ROW) {
        throw new ArgumentError('bad-query', `${what}: ${value} is no whole number from 0 to ${NO_ROW}`);
    }
    return value;
}

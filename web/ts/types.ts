/** What calls take and give. */

// Where the compiler's own library has no WebGPU, its objects are of any type.
/** A `GPUDevice`. */
export type WebGPUDevice = typeof globalThis extends { GPUDevice: { prototype: infer T } } ? T : any;
/** A `GPUBuffer`. */
export type WebGPUBuffer = typeof globalThis extends { GPUBuffer: { prototype: infer T } } ? T : any;

/**
 * Ids of a batch. An id is compared with the table's rows before it is made an address of: one outside of the table never
 * reads another row, and no id is cut to 32 bits.
 */
export type Ids = Uint32Array | BigUint64Array | BigInt64Array;

/**
 * What an id outside of the table does: the call fails with a `BadIdError` (`error`, the default), its row is zeros (`zero`),
 * or negative ids count from the end, -1 being the last row, and others are zeros (`wrap`).
 */
export type IdPolicy = 'error' | 'zero' | 'wrap';

/** How rows are compared with a query. */
export type Metric = 'cosine' | 'dot';

/** Options of a lookup. */
export interface GatherOptions {
    /** What an id outside of the table does. */
    policy?: IdPolicy;
}

/** Options of a lookup to a buffer. */
export interface BufferOptions extends GatherOptions {
    /** Type of the elements; `f32` unless said otherwise. */
    dtype?: 'f32' | 'f16';
}

/** Options of bags. */
export interface BagOptions extends GatherOptions {
    /** How the rows of a bag become one; `sum` unless said otherwise. The mean divides by the number of ids. */
    mode?: 'sum' | 'mean' | 'max';
    /**
     * What the bounds are: where each bag begins (`offsets`, the default), the same with the number of ids behind
     * (`offsets-with-last`), or how many ids each bag has (`lengths`).
     */
    bounds?: 'offsets' | 'offsets-with-last' | 'lengths';
    /** A weight for each id, for sum and mean. */
    weights?: Float32Array;
    /** An id that adds nothing and is not counted. */
    paddingId?: number | bigint;
    /** Whether each result is divided by its L2 norm. */
    normalise?: boolean;
}

/** Options of a search. */
export interface TopKOptions {
    /** How rows are compared; `cosine` unless said otherwise. */
    metric?: Metric;
    /** The rows that are looked at, from the first up to, but without, the second; all unless said otherwise. */
    rows?: readonly [number, number];
    /** A row to leave out for each query, such as the one that it is. */
    leaveOut?: readonly (number | undefined)[] | Uint32Array;
}

/** Rows in memory. */
export interface Rows {
    /** `[rows, dim]`, row-major. */
    readonly values: Float32Array;
    /** How many rows there are: as many as ids, or bags. */
    readonly rows: number;
    /** Columns of a row. */
    readonly dim: number;
    /** Ids that named no row. */
    readonly badIds: BadIds;
}

/** Ids that named no row. */
export interface BadIds {
    /** How many there are. */
    readonly count: number;
    /** Position of the first. */
    readonly first: number | undefined;
}

/** The best rows of each query, the best first. */
export interface TopK {
    /** `[queries, k]`; 4,294,967,295 where fewer rows have a score. */
    readonly ids: Uint32Array;
    /** `[queries, k]`; negative infinity where there is no row. */
    readonly scores: Float32Array;
    /** Places of each query: as many as were asked for, or as there are rows. */
    readonly k: number;
}

/** What bytes are for. */
export type Category = 'payload' | 'scales' | 'index' | 'output' | 'staging' | 'padding';

/** What an engine holds, to the byte. */
export interface MemoryReport {
    /** Bytes now, in all. */
    readonly live: number;
    /** The most there were at a time. */
    readonly peak: number;
    /** The budget, where there is one. */
    readonly budget: number | undefined;
    /** By label and category; rows whose bytes are gone stay, for their peak. */
    readonly rows: readonly {
        readonly label: string;
        readonly category: Category;
        readonly live: number;
        readonly peak: number;
    }[];
}

/** What a table takes. */
export interface TableMemory {
    /** Bytes where it is, padding included. */
    readonly bytes: number;
    /** Bytes that it would take as plain f32. */
    readonly f32Bytes: number;
    /** Buffers that it is split over on a device; 1 on the host. */
    readonly shards: number;
    /** The tensors that it is stored as, without padding. */
    readonly parts: readonly {
        readonly name: string;
        readonly dtype: string;
        readonly category: Category;
        readonly bytes: number;
    }[];
}

/** How far a file has come. */
export interface LoadProgress {
    /** Bytes that have come and are placed. */
    readonly loaded: number;
    /** Bytes of the file, once its header is there. */
    readonly total: number | undefined;
}

/** Options of loading. */
export interface LoadOptions {
    /** Ends loading early; the call then fails with the signal's reason, and nothing of the table is left. */
    signal?: AbortSignal;
    /** Told as bytes are placed. */
    onProgress?: (progress: LoadProgress) => void;
    /** A name for messages and the ledger; by default the last part of the address. */
    name?: string;
}

/** Options of opening a table of which lookups read what they need. */
export interface OpenOptions {
    /** Ends opening early; the call then fails with the signal's reason. */
    signal?: AbortSignal;
    /** A name for messages and the ledger; by default the last part of the address. */
    name?: string;
    /** About the bytes that are read at a time, and let go: a shard of neighbouring rows. 256 KiB unless said otherwise. */
    shardBytes?: number;
    /** The most bytes that shards may take together; the least recently used go first. All may be there unless said otherwise. */
    budget?: number;
    /** Whether the words of the rows are read, all of them, so that `word` and `find` know them; not unless said otherwise. */
    words?: boolean;
    /** Told where the server sends no ranges, and the file is loaded whole for that; by default the console is. */
    onWarning?: (message: string) => void;
    /** Told as bytes are placed where the file is loaded whole. */
    onProgress?: (progress: LoadProgress) => void;
}

/** What of a table is where lookups read it, and what that took. */
export interface Residency {
    /** Shards of the table. */
    readonly shards: number;
    /** Those that are there. */
    readonly residentShards: number;
    /** Bytes of all shards. */
    readonly bytes: number;
    /** Bytes of those that are there. */
    readonly residentBytes: number;
    /** Bytes that have come so far, those of the header among them. */
    readonly read: number;
    /** Shards that lookups needed and found. */
    readonly hits: number;
    /** Shards that lookups needed and had loaded. */
    readonly misses: number;
    /** Shards let go. */
    readonly evictions: number;
}

/** Neighbouring rows that are loaded, and let go, together. */
export interface ShardRows {
    /** The first row. */
    readonly start: number;
    /** The row behind the last. */
    readonly end: number;
    /** Whether it is there. */
    readonly resident: boolean;
}

/** Options of a measurement. */
export interface MeasureOptions {
    /** Rows of the table; 1,000,000 unless said otherwise. */
    rows?: number;
    /** Its columns; 128 unless said otherwise. */
    dim?: number;
    /** Random ids of a lookup; 65,536 unless said otherwise. */
    ids?: number;
}

/** What lookups take on this machine. All times are milliseconds of one lookup of all ids, the median of several. */
export interface Measurement {
    /** Rows of the table, which is `int8`. */
    readonly rows: number;
    /** Its columns. */
    readonly dim: number;
    /** Ids of a lookup. */
    readonly ids: number;
    /** On the device, ids and rows staying there; undefined on the host. */
    readonly gather: number | undefined;
    /** The fastest of some shaders that copy as many bytes; on the host, a copy of a typed array to another. */
    readonly copy: number;
    /** `Table.gather`: ids sent, rows decoded and brought to the page. */
    readonly toPage: number;
    /** The same rows in a new array by a loop in JavaScript over typed arrays that have the table. */
    readonly loop: number;
    /** Values that differ from those of the loop, of all; there should be none. */
    readonly differing: number;
}

/** Where a table file lies that is read by ranges: on a server that sends them, or in a file of the user's. */
export type RangeInput = string | URL | Blob;

/** Where a table file comes from. */
export type TableInput =
    | string
    | URL
    | Response
    | Blob
    | ArrayBuffer
    | ArrayBufferView
    | ReadableStream<Uint8Array>;

/** What can go wrong. Every error of this package is a {@link GatherumError}, but for the reason that an `AbortSignal` carries. */

/** What kind of error it is. */
export type ErrorCode =
    | 'bad-argument'
    | 'bad-bags'
    | 'bad-id'
    | 'bad-query'
    | 'damaged-file'
    | 'device-lost'
    | 'device-refused'
    | 'freed'
    | 'host-backend'
    | 'internal'
    | 'network'
    | 'no-adapter'
    | 'not-a-table'
    | 'out-of-memory'
    | 'over-budget'
    | 'row-too-large'
    | 'too-large'
    | 'unknown-scheme'
    | 'unknown-version';

/** The base of all errors of this package. */
export class GatherumError extends Error {
    override readonly name: string = 'GatherumError';

    constructor(
        /** What kind it is. */
        readonly code: ErrorCode,
        message: string,
        options?: ErrorOptions,
    ) {
        super(message, options);
    }
}

/** An argument that cannot be taken: ids of another type, bags or queries that do not fit, a table that was freed. */
export class ArgumentError extends GatherumError {
    override readonly name = 'ArgumentError';
}

type BadIdDetails = Pick<BadIdError, 'table' | 'position' | 'id' | 'rows' | 'count'>;
type BudgetDetails = Pick<MemoryBudgetError, 'needed' | 'budget' | 'live' | 'largest'>;

/** An id that names no row, where the policy is `error`. There is no output. */
export class BadIdError extends GatherumError {
    override readonly name = 'BadIdError';
    /** The table's name. */
    readonly table: string;
    /** Position of the first bad id in the batch. */
    readonly position: number;
    /** That id. */
    readonly id: bigint | undefined;
    /** Rows of the table. */
    readonly rows: number;
    /** How many bad ids the batch has. */
    readonly count: number;

    constructor(message: string, details: BadIdDetails) {
        super('bad-id', message);
        this.table = details.table;
        this.position = details.position;
        this.id = details.id;
        this.rows = details.rows;
        this.count = details.count;
    }
}

/** A refusal by the memory budget: nothing was allocated. All numbers are bytes. */
export class MemoryBudgetError extends GatherumError {
    override readonly name = 'MemoryBudgetError';
    /** What was asked for, in all. */
    readonly needed: number;
    /** The budget. */
    readonly budget: number;
    /** What is in use already. */
    readonly live: number;
    /** The largest single buffer among what was asked for. */
    readonly largest: number;

    constructor(message: string, details: BudgetDetails) {
        super('over-budget', message);
        this.needed = details.needed;
        this.budget = details.budget;
        this.live = details.live;
        this.largest = details.largest;
    }
}

/** A device that failed, ran out of memory, or is not to be had. */
export class DeviceError extends GatherumError {
    override readonly name: string = 'DeviceError';
}

/** The device is gone with all its buffers: create a new engine and load the tables again. */
export class DeviceLostError extends DeviceError {
    override readonly name = 'DeviceLostError';
}

/** A file that is damaged, or no table that this version reads. */
export class FileError extends GatherumError {
    override readonly name = 'FileError';
}

/** A file that the network did not deliver. */
export class NetworkError extends GatherumError {
    override readonly name = 'NetworkError';

    constructor(
        message: string,
        /** The status of the answer, where there was one. */
        readonly status?: number,
        options?: ErrorOptions,
    ) {
        super('network', message, options);
    }
}

interface RawError extends BadIdDetails, BudgetDetails {
    code: ErrorCode;
    message: string;
}

/** Makes an error of what the module threw. */
export function fromRaw(thrown: unknown): unknown {
    if (typeof thrown !== 'object' || thrown === null || thrown instanceof Error || !('code' in thrown)) {
        return thrown;
    }
    const raw = thrown as RawError;
    switch (raw.code) {
        case 'bad-id':
            return new BadIdError(raw.message, raw);
        case 'over-budget':
            return new MemoryBudgetError(raw.message, raw);
        case 'device-lost':
            return new DeviceLostError(raw.code, raw.message);
        case 'device-refused':
        case 'no-adapter':
        case 'out-of-memory':
        case 'row-too-large':
            return new DeviceError(raw.code, raw.message);
        case 'damaged-file':
        case 'not-a-table':
        case 'unknown-scheme':
        case 'unknown-version':
            return new FileError(raw.code, raw.message);
        case 'network':
            return new NetworkError(raw.message);
        case 'bad-argument':
        case 'bad-bags':
        case 'bad-query':
        case 'freed':
        case 'host-backend':
        case 'too-large':
            return new ArgumentError(raw.code, raw.message);
        default:
            return new GatherumError(raw.code, raw.message);
    }
}

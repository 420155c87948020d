// A table that comes shard by shard, the rows of frequent words first.

import type { Engine, Table } from 'gatherum';

/** A table file of this page. */
export interface Offer {
    scheme: string;
    file: string;
    bytes: number;
}

/** Shards of a table are about a sixteenth of it, within these bytes: few enough to be searched one by one. */
const [LEAST, MOST] = [64 << 10, 4 << 20];
/** Shards that are asked for at a time. */
const AT_ONCE = 2;

export class Opened {
    readonly table: Table;
    readonly offer: Offer;
    /** Why no more of it comes, though it is not all here. */
    #full = false;
    readonly #budget: number | undefined;
    #coming: Promise<void> | undefined;

    private constructor(table: Table, offer: Offer, budget: number | undefined) {
        this.table = table;
        this.offer = offer;
        this.#budget = budget;
    }

    static async open(
        engine: Engine,
        offer: Offer,
        budget: number | undefined,
        onWarning: (message: string) => void,
        onProgress: () => void,
    ): Promise<Opened> {
        const shardBytes = Math.min(MOST, Math.max(LEAST, 2 ** Math.round(Math.log2(offer.bytes / 16))));
        const table = await engine.open(offer.file, { shardBytes, ...(budget && { budget }), onWarning, onProgress });
        return new Opened(table, offer, budget);
    }

    /** The rows from 0 on that are here without a gap. */
    get here(): number {
        const shards = this.table.shardRows();
        const absent = shards.find(({ resident }) => !resident);
        // Where rows share stored ones, a row is here for certain once all of those are.
        const shared = shards.at(-1)?.end !== this.table.rows;
        return absent ? (shared ? 0 : absent.start) : this.table.rows;
    }

    /** Whether all is here. */
    get complete(): boolean {
        return this.here === this.table.rows;
    }

    /** Whether the budget holds no more. */
    get full(): boolean {
        return this.#full && !this.complete;
    }

    /** Loads the next shards, or waits for those that are on their way; says whether there is more to come. */
    async more(): Promise<boolean> {
        this.#coming ??= this.#load().finally(() => (this.#coming = undefined));
        await this.#coming;
        return !this.complete && !this.#full;
    }

    /** Loads on until as many rows are here, or the budget holds no more. */
    async upTo(rows: number): Promise<void> {
        while (this.here < rows && (await this.more())) {
            // Nothing else is to be done.
        }
    }

    async #load(): Promise<void> {
        const { table } = this;
        const shards = table.shardRows();
        if (shards.at(-1)?.end !== table.rows) {
            return table.prefetch();
        }
        const { bytes, residentBytes } = table.residency();
        const room = ((this.#budget ?? Infinity) - residentBytes) / (bytes / shards.length);
        // The first alone: answers wait for it.
        const most = Math.floor(Math.min(room, this.here === 0 ? 1 : AT_ONCE));
        const next = shards.filter(({ resident }) => !resident).slice(0, Math.max(0, most));
        this.#full = most < 1;
        if (next.length > 0) {
            await table.prefetch(Uint32Array.from(next, ({ start }) => start));
        }
    }
}

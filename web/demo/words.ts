// The words of the rows, one file for the tables of all schemes: read by ranges, so that those of the first rows come first.

/** Bytes that are asked for at first, and later. */
const FIRST = 64 << 10;
const NEXT = 512 << 10;

export class Words {
    readonly #address: string;
    /** How many there are, once all are here. */
    readonly total: number;
    /** Each between two newlines. */
    #text = '\n';
    /** Where each begins in the text, and where the next one will. */
    readonly #starts = [1];
    readonly #decoder = new TextDecoder();
    #come = 0;
    #complete = false;
    #reading: Promise<void> = Promise.resolve();

    constructor(address: string, total: number) {
        this.#address = address;
        this.total = total;
    }

    /** Words that are here: those of the first rows. */
    get count(): number {
        return this.#starts.length - 1;
    }

    /** Bytes that have come. */
    get come(): number {
        return this.#come;
    }

    /** Reads on until the words of as many rows are here. */
    upTo(rows: number): Promise<void> {
        const read = async (): Promise<void> => {
            while (this.count < Math.min(rows, this.total) && !this.#complete) {
                await this.#more();
            }
        };
        // Whether the one before failed or not.
        this.#reading = this.#reading.then(read, read);
        return this.#reading;
    }

    word(row: number): string {
        const [start, end] = [this.#starts[row], this.#starts[row + 1]];
        return start === undefined || end === undefined ? '' : this.#text.slice(start, end - 1);
    }

    /** The first row of a word, if it is among those that are here. */
    find(word: string): number | undefined {
        const start = this.#text.indexOf(`\n${word}\n`) + 1;
        if (start === 0) {
            return undefined;
        }
        let [low, high] = [0, this.count];
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.#starts[middle]! < start) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    async #more(): Promise<void> {
        const end = this.#come + (this.#come === 0 ? FIRST : NEXT);
        const response = await fetch(this.#address, { headers: { Range: `bytes=${this.#come}-${end - 1}` } });
        // 416: it ended where the last range did.
        if (!response.ok && response.status !== 416) {
            throw new Error(`${this.#address}: the server answered ${response.status} ${response.statusText}`);
        }
        const bytes = response.status === 416 ? new Uint8Array() : new Uint8Array(await response.arrayBuffer());
        // A server that sends no ranges has sent all.
        this.#complete = response.status !== 206 || bytes.length < end - this.#come;
        this.#come += bytes.length;
        this.#add(this.#decoder.decode(bytes, { stream: !this.#complete }));
    }

    #add(piece: string): void {
        let at = this.#text.length;
        this.#text += piece;
        if (this.#complete && !this.#text.endsWith('\n')) {
            this.#text += '\n';
        }
        for (; (at = this.#text.indexOf('\n', at)) >= 0; at += 1) {
            this.#starts.push(at + 1);
        }
    }
}

// What a visitor asks, as questions to a table.

import type { Table } from 'gatherum';

export interface Found {
    word: string;
    score: number;
}

function row(table: Table, word: string): number {
    const found = table.find(word);
    if (found === undefined) {
        throw new Error(word ? `“${word}” is not among the ${table.rows} words.` : 'Type a word.');
    }
    return found;
}

async function search(table: Table, query: Float32Array, without: number[], places: number): Promise<Found[]> {
    const { ids, scores } = await table.topK(query, places + without.length);
    return [...ids]
        .map((id, at) => ({ id, score: scores[at]! }))
        .filter(({ id }) => !without.includes(id) && id < table.rows)
        .slice(0, places)
        .map(({ id, score }) => ({ word: table.word(id) ?? '', score }));
}

/** The words nearest to a word, without itself. */
export async function nearest(table: Table, word: string, places: number): Promise<Found[]> {
    const id = row(table, word);
    const { values } = await table.gather(Uint32Array.of(id));
    return search(table, values, [id], places);
}

/** What is to `c` as `b` is to `a`: the words nearest to b - a + c, each of length 1, without these three. */
export async function analogy(table: Table, a: string, b: string, c: string, places: number): Promise<Found[]> {
    const ids = [a, b, c].map((word) => row(table, word));
    const one = { bounds: 'lengths', normalise: true } as const;
    const { values } = await table.bag(Uint32Array.from(ids), Uint32Array.of(1, 1, 1), one);
    const { dim } = table;
    const query = Float32Array.from({ length: dim }, (_, at) => values[dim + at]! - values[at]! + values[2 * dim + at]!);
    return search(table, query, ids, places);
}

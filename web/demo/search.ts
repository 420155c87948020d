// What a visitor asks, as questions to the rows of a table that are here.

import type { Opened } from './opened.js';
import type { Words } from './words.js';

export interface Found {
    word: string;
    score: number;
}

/** A question: which words it names, and what is asked of their rows. */
export interface Question {
    readonly words: readonly string[];
    readonly query: (rows: Float32Array, dim: number) => Float32Array;
}

/** The words nearest to a word. */
export function nearest(word: string): Question {
    return { words: [word], query: (rows) => rows };
}

/** What is to `c` as `b` is to `a`: the words nearest to b - a + c, each of length 1. */
export function analogy(a: string, b: string, c: string): Question {
    return {
        words: [a, b, c],
        query: (rows, dim) =>
            Float32Array.from({ length: dim }, (_, at) => rows[dim + at]! - rows[at]! + rows[2 * dim + at]!),
    };
}

/** The row of a word. All words are read before one is said not to be there. */
export async function rowOf(words: Words, word: string): Promise<number> {
    if (!word) {
        throw new Error('Type a word.');
    }
    if (words.find(word) === undefined) {
        await words.upTo(words.total);
    }
    const row = words.find(word);
    if (row === undefined) {
        throw new Error(`“${word}” is not among the ${words.total} words.`);
    }
    return row;
}

/** The answers among the first `rows` of a table, without the words that were asked with. */
export async function ask(question: Question, opened: Opened, words: Words, rows: number, places: number): Promise<Found[]> {
    const { table } = opened;
    await words.upTo(rows);
    const ids = Uint32Array.from(await Promise.all(question.words.map((word) => rowOf(words, word))));
    const bags = new Uint32Array(ids.length).fill(1);
    const { values } = await table.bag(ids, bags, { bounds: 'lengths', normalise: true });
    const query = question.query(values, table.dim);
    const best = await table.topK(query, places + ids.length, { rows: [0, rows] });
    return [...best.ids]
        .map((id, at) => ({ id, score: best.scores[at]! }))
        .filter(({ id }) => !ids.includes(id) && id < rows)
        .slice(0, places)
        .map(({ id, score }) => ({ word: words.word(id), score }));
}

// The page: a search over real word vectors. Every number on it is the running engine's.

import { DeviceLostError, Engine } from 'gatherum';
import { memoryChart } from './chart.js';
import { amount, count, element, fill, share, terms } from './dom.js';
import { showProgress, showShards } from './here.js';
import { describe, tell } from './machine.js';
import { Opened, type Offer } from './opened.js';
import { analogy, ask, nearest, type Found } from './search.js';
import { Words } from './words.js';

const PLACES = 10;
/** Rows of a call whose speed is measured. */
const BATCH = 4096;
/** A table as f32 of at most so many bytes is compared with unasked. */
const SMALL = 8e6;

interface Data {
    words: { file: string; count: number };
    tables: Offer[];
}

/** `?backend=webgpu` or `host`; `?budget=BYTES` that the table may take; `?measure=ROWS` of the table that is measured. */
const wishes = new URLSearchParams(location.search);
const asked = wishes.get('backend');
const backend = asked === 'webgpu' || asked === 'host' ? asked : 'auto';
const budget = Number(wishes.get('budget')) || undefined;
const measured = Number(wishes.get('measure')) || undefined;

const data = (await (await fetch('./tables.json')).json()) as Data;
const words = new Words(data.words.file, data.words.count);
const f32 = data.tables.find(({ scheme }) => scheme === 'f32')!;
const said = element('said');
const compares = element<HTMLInputElement>('compare');
compares.checked = f32.bytes <= SMALL;
element('compare-size').textContent = amount(f32.bytes);

let engine = await Engine.create({ backend });
const chart = memoryChart(element('chart'));
/** The table that answers. */
let current: Opened | undefined;
/** The table as f32, which others are compared with. */
let plain: Promise<Opened> | undefined;
let question = nearest('king');
/** Rows that the answer on the page is from. */
let answered = 0;
/** What the first answer took, once it was there. */
let first: string | undefined;
/** Bytes that have come by file; of tables that are gone, too. */
const come = new Map<string, number>();

function warn(message: string): void {
    element('warning').textContent = message;
}

function open(offer: Offer): Promise<Opened> {
    return Opened.open(engine, offer, budget, warn, view);
}

function exactly(): Promise<Opened> {
    plain ??= open(f32);
    plain.catch(() => (plain = undefined));
    return plain;
}

/** Takes the table that is chosen; the one before goes. It answers once its first rows are here, and the others follow. */
async function choose(): Promise<void> {
    const chosen = document.querySelector<HTMLInputElement>('input[name=scheme]:checked')?.value;
    const offer = data.tables.find(({ scheme }) => scheme === chosen) ?? data.tables[0]!;
    said.textContent = `Loading ${offer.scheme}…`;
    const before = current;
    current = undefined;
    const next = offer === f32 ? await exactly() : await open(offer);
    const kept = await plain?.catch(() => undefined);
    if (before && before !== next && before !== kept) {
        before.table.free();
    }
    current = next;
    element('speed').textContent = '';
    await current.more();
    await answer();
    void follow(current);
}

/** Loads what is not here yet, and answers again as the rows that are searched have doubled, and once all are here. */
async function follow(opened: Opened): Promise<void> {
    const on = (): boolean => opened === current;
    try {
        for (let more = true; more && on(); ) {
            more = await opened.more();
            if (on()) {
                view();
                if (opened.here >= 2 * answered || (!more && opened.here > answered)) {
                    await act(async () => {
                        if (on()) {
                            await answer(!more);
                        }
                    });
                }
            }
        }
    } catch (error) {
        if (on()) {
            said.textContent = error instanceof Error ? error.message : String(error);
        }
    }
}

/** Answers the question from the rows that are here. What changes on the way to all of them is not read out. */
async function answer(aloud = true): Promise<void> {
    const opened = current;
    if (!opened) {
        return;
    }
    const { table } = opened;
    const rows = opened.here;
    const found = await ask(question, opened, words, rows, PLACES);
    answered = rows;
    show(found, undefined);
    const all = rows === table.rows;
    const from = all ? `${count(rows)} words` : `the ${count(rows)} most frequent of ${count(table.rows)} words`;
    element('from').textContent = all
        ? ''
        : opened.full
          ? `The memory budget holds no more of the table than the ${count(rows)} most frequent words.`
          : `Searched so far: ${from}. Answers improve as the others arrive.`;
    if (aloud) {
        said.textContent = `${found.length} answers from ${from}, stored as ${table.scheme}.`;
    }
    first ??= firstly(opened, rows);
    element('first').textContent = first;
    view();
    if (opened.offer === f32) {
        element('kept').textContent = 'These are the answers of plain f32; other schemes are compared with them.';
    } else if (compares.checked) {
        const exact = await exactly();
        await exact.upTo(rows);
        show(found, await ask(question, exact, words, rows, PLACES));
        view();
    } else {
        element('kept').textContent = '';
    }
}

/** What the first answer took. */
function firstly({ table, offer }: Opened, rows: number): string {
    const bytes = table.residency().read + words.come;
    const { f32Bytes } = table.memory();
    return (
        `The first answers were here ${(performance.now() / 1000).toFixed(1)} s after the page was asked for, from ` +
        `${count(rows)} of ${count(table.rows)} words, once ${amount(bytes)} of vectors and words had come as ${offer.scheme}: ` +
        `${share(bytes, f32Bytes)} of the ${amount(f32Bytes)} that f32 takes. Page and library had been ${amount(pageBytes())}.`
    );
}

/** Bytes of page, library and module, as the browser counts them. */
function pageBytes(): number {
    const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
    const own = (entries as PerformanceResourceTiming[]).filter(({ name }) => !/\/tables\//.test(name));
    return own.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
}

function show(found: Found[], exact: Found[] | undefined): void {
    const names = exact && new Set(exact.map(({ word }) => word));
    fill(
        element('results'),
        found.map(({ word, score }) => {
            const item = document.createElement('li');
            item.style.setProperty('--part', `${Math.max(0, score) * 100}%`);
            item.classList.toggle('new', names !== undefined && !names.has(word));
            const number = document.createElement('span');
            number.className = 'score';
            number.textContent = score.toFixed(3);
            item.append(number, word);
            return item;
        }),
    );
    if (exact && names) {
        const kept = found.filter(({ word }) => names.has(word)).length;
        const lost = exact.map(({ word }) => word).filter((word) => !found.some((other) => other.word === word));
        element('kept').textContent =
            `${kept} of the ${exact.length} answers of f32 from the same words are here${lost.length ? `; not ${lost.join(', ')}` : ''}.`;
    }
}

/** Shows the numbers of now. */
function view(): void {
    const memory = engine.memory();
    chart.add(memory.live);
    if (current) {
        const { table, offer } = current;
        const { f32Bytes } = table.memory();
        const { residentBytes, bytes, read } = table.residency();
        come.set(offer.file, Math.max(read, come.get(offer.file) ?? 0));
        showShards(table.shardRows(), table.rows);
        showProgress(read, offer.bytes);
        const all = [...come.values()].reduce((sum, one) => sum + one, words.come);
        fill(
            element('numbers'),
            terms([
                ['Here of the table', `${amount(residentBytes)} of ${amount(bytes)}`],
                ['The table, of f32', `${share(bytes, f32Bytes)} of ${amount(f32Bytes)}`],
                ['Rows and columns', `${count(table.rows)} × ${count(table.dim)}`],
                ['Words here', `${count(words.count)}, ${amount(words.come)}`],
                ['Downloaded, all tables and words', amount(all)],
                ['Page and library', amount(pageBytes())],
                ['Held now, f32 to compare with included', amount(memory.live)],
                ['Held at most so far', amount(memory.peak)],
            ]),
        );
        element('count').textContent = count(table.rows);
    }
    fill(
        element('ledger'),
        memory.rows
            .filter(({ live }) => live > 0)
            .map(({ label, category, live }) => {
                const row = document.createElement('tr');
                for (const text of [label, category, count(live)]) {
                    row.append(Object.assign(document.createElement('td'), { textContent: text }));
                }
                return row;
            }),
    );
}

/** Lookups a second, to the page's memory: the median of some calls. */
async function lookups({ table, here }: Opened): Promise<number> {
    const ids = Uint32Array.from({ length: BATCH }, () => Math.floor(Math.random() * here));
    await table.gather(ids);
    const times: number[] = [];
    for (let time = 0; time < 15; time += 1) {
        const start = performance.now();
        await table.gather(ids);
        times.push(performance.now() - start);
    }
    times.sort((one, other) => one - other);
    return (BATCH / times[7]!) * 1000;
}

async function measure(): Promise<void> {
    if (!current) {
        return;
    }
    await current.upTo(current.table.rows);
    const own = count(Math.round(await lookups(current)));
    let beside = '';
    if (compares.checked) {
        const exact = await exactly();
        await exact.upTo(exact.table.rows);
        beside = `${count(Math.round(await lookups(exact)))} by f32, `;
    }
    element('speed').textContent =
        `${own} lookups a second by ${current.table.scheme}, ${beside}${count(BATCH)} rows a call, results copied to the page.`;
    view();
}

async function measureMachine(): Promise<void> {
    element('machine-said').textContent = 'Measuring; this takes some seconds…';
    try {
        // What was said is painted first.
        await new Promise((resolve) => setTimeout(resolve, 50));
        element('machine-said').textContent = tell(engine, await engine.measure(measured ? { rows: measured } : {}));
    } catch (error) {
        element('machine-said').textContent = error instanceof Error ? error.message : String(error);
        throw error;
    } finally {
        view();
    }
}

/** Does what a visitor asked for, one thing at a time, and says what went wrong. */
let busy = Promise.resolve();
let waiting = 0;
function act(work: () => Promise<void>): Promise<void> {
    waiting += 1;
    document.body.classList.add('busy');
    busy = busy.then(async () => {
        try {
            await work();
        } catch (error) {
            if (error instanceof DeviceLostError) {
                await again();
            } else {
                said.textContent = error instanceof Error ? error.message : String(error);
            }
        } finally {
            waiting -= 1;
            document.body.classList.toggle('busy', waiting > 0);
        }
    });
    return busy;
}

/** The device is gone, as laptops' are after sleep: all is loaded once more. */
async function again(): Promise<void> {
    said.textContent = 'The graphics processor was lost; loading again…';
    engine.free();
    engine = await Engine.create({ backend });
    current = plain = undefined;
    describe(engine);
    await choose();
}

const text = (id: string): string => element<HTMLInputElement>(id).value.trim().toLowerCase();

element('nearest').addEventListener('submit', (event) => {
    event.preventDefault();
    question = nearest(text('word'));
    void act(answer);
});
element('analogy').addEventListener('submit', (event) => {
    event.preventDefault();
    question = analogy(text('a'), text('b'), text('c'));
    void act(answer);
});
compares.addEventListener('change', () => void act(answer));
element('measure').addEventListener('click', () => void act(measure));
element('machine').addEventListener('click', () => void act(measureMachine));

element('schemes').append(
    ...data.tables.map(({ scheme, bytes }, index) => {
        const label = document.createElement('label');
        const input = Object.assign(document.createElement('input'), {
            type: 'radio',
            name: 'scheme',
            value: scheme,
            checked: index === 0,
        });
        input.addEventListener('change', () => void act(choose));
        const size = Object.assign(document.createElement('span'), { className: 'size', textContent: amount(bytes) });
        // Long ones break behind commas.
        label.append(input, scheme.replaceAll(',', ',\u200b'), size);
        return label;
    }),
);
describe(engine);
void act(choose);

// The page: a search over real word vectors. Every number on it is the running engine's.

import { DeviceLostError, Engine, type Table } from 'gatherum';
import { memoryChart } from './chart.js';
import { amount, count, element, fill, share } from './dom.js';
import { analogy, nearest, type Found } from './search.js';

interface Offer {
    scheme: string;
    file: string;
    bytes: number;
}

const PLACES = 10;
/** Rows of a call whose speed is measured. */
const BATCH = 4096;

const offers = (await (await fetch('./tables.json')).json()) as Offer[];
const said = element('said');
const downloaded = new Map<string, number>();

/** What it runs on: chosen by the engine, or by `?backend=webgpu` and `?backend=host`. */
const asked = new URLSearchParams(location.search).get('backend');
const backend = asked === 'webgpu' || asked === 'host' ? asked : 'auto';

let engine = await Engine.create({ backend });
let table: Table | undefined;
/** The table as f32, which others are compared with; there once it was chosen, or measured against. */
let plain: Table | undefined;
let last: (table: Table) => Promise<Found[]> = (table) => nearest(table, 'king', PLACES);
const chart = memoryChart(element('chart'));

function wanted(): Offer {
    const chosen = document.querySelector<HTMLInputElement>('input[name=scheme]:checked')?.value;
    return offers.find((offer) => offer.scheme === chosen) ?? offers[0]!;
}

async function load(offer: Offer): Promise<Table> {
    return engine.load(offer.file, {
        onProgress: ({ loaded }) => {
            downloaded.set(offer.file, loaded);
            numbers();
        },
    });
}

async function comparison(): Promise<Table> {
    plain ??= await load(offers.find((offer) => offer.scheme === 'f32')!);
    return plain;
}

/** Loads what is chosen; the one before goes. */
async function choose(): Promise<void> {
    const offer = wanted();
    said.textContent = `Loading ${offer.scheme}…`;
    const before = table;
    table = offer.scheme === 'f32' ? await comparison() : await load(offer);
    if (before && before !== table && before !== plain) {
        before.free();
    }
    element('speed').textContent = '';
    await answer();
}

async function answer(): Promise<void> {
    if (!table) {
        return;
    }
    const found = await last(table);
    const exact = table.scheme === 'f32' ? found : await last(await comparison());
    const names = new Set(exact.map(({ word }) => word));
    fill(
        element('results'),
        found.map(({ word, score }) => {
            const item = document.createElement('li');
            item.style.setProperty('--part', `${Math.max(0, score) * 100}%`);
            item.classList.toggle('new', !names.has(word));
            const number = document.createElement('span');
            number.className = 'score';
            number.textContent = score.toFixed(3);
            item.append(number, word);
            return item;
        }),
    );
    const kept = found.filter(({ word }) => names.has(word)).length;
    const lost = exact.map(({ word }) => word).filter((word) => !found.some((other) => other.word === word));
    element('kept').textContent =
        table.scheme === 'f32'
            ? 'These are the answers of plain f32; other schemes are compared with them.'
            : `${kept} of the ${exact.length} answers of f32 are here${lost.length ? `; not ${lost.join(', ')}` : ''}.`;
    said.textContent = `${found.length} answers from ${count(table.rows)} words, stored as ${table.scheme}.`;
    numbers();
}

function numbers(): void {
    const memory = engine.memory();
    chart.add(memory.live);
    if (table) {
        const { bytes, f32Bytes, shards } = table.memory();
        const all = [...downloaded.values()].reduce((sum, bytes) => sum + bytes, 0);
        fill(
            element('numbers'),
            terms([
                ['Table here', `${amount(bytes)}, ${share(bytes, f32Bytes)} of f32`],
                ['As f32', amount(f32Bytes)],
                ['Buffers', count(shards)],
                ['Rows and columns', `${count(table.rows)} × ${count(table.dim)}`],
                ['Downloaded on this page', amount(all)],
                ['Held now, f32 to compare with included', amount(memory.live)],
                ['Held at most so far', amount(memory.peak)],
            ]),
        );
        element('count').textContent = count(table.rows);
    }
    const rows = memory.rows.filter(({ live }) => live > 0);
    fill(
        element('ledger'),
        rows.map(({ label, category, live }) => {
            const row = document.createElement('tr');
            for (const text of [label, category, count(live)]) {
                row.append(Object.assign(document.createElement('td'), { textContent: text }));
            }
            return row;
        }),
    );
}

function terms(pairs: [string, string][]): Element[] {
    return pairs.flatMap(([name, value]) => [
        Object.assign(document.createElement('dt'), { textContent: name }),
        Object.assign(document.createElement('dd'), { textContent: value }),
    ]);
}

/** Lookups a second, to the page's memory: the median of some calls. */
async function lookups(table: Table): Promise<number> {
    const ids = Uint32Array.from({ length: BATCH }, () => Math.floor(Math.random() * table.rows));
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
    if (!table) {
        return;
    }
    const [own, f32] = [await lookups(table), await lookups(await comparison())];
    element('speed').textContent =
        `${count(Math.round(own))} lookups a second by ${table.scheme}, ${count(Math.round(f32))} by f32, ` +
        `${count(BATCH)} rows a call, results copied to the page.`;
    numbers();
}

function describe(): void {
    const { adapter, backend, device } = engine;
    const name = adapter.name ? ` (${adapter.name})` : '';
    element('adapter').textContent =
        backend === 'webgpu'
            ? adapter.kind === 'software'
                ? `WebGPU, on an adapter that software imitates${name}.`
                : `WebGPU, on this device's graphics processor${name}.`
            : 'gpu' in navigator
              ? 'WebAssembly on the processor: this browser offers no graphics processor to WebGPU that would be faster.'
              : 'WebAssembly on the processor: this browser has no WebGPU.';
    fill(
        element('limits'),
        device
            ? terms([
                  ['Largest buffer', amount(device.limits.maxBufferSize)],
                  ['Largest part that a kernel sees', amount(device.limits.maxStorageBufferBindingSize)],
              ])
            : [],
    );
}

/** Does what a visitor asked for, one thing at a time, and says what went wrong. */
let busy = Promise.resolve();
function act(work: () => Promise<void>): void {
    const buttons = document.querySelectorAll('button');
    busy = busy.then(async () => {
        buttons.forEach((button) => (button.disabled = true));
        try {
            await work();
        } catch (error) {
            if (error instanceof DeviceLostError) {
                await again();
            } else {
                said.textContent = error instanceof Error ? error.message : String(error);
            }
        } finally {
            buttons.forEach((button) => (button.disabled = false));
        }
    });
}

/** The device is gone, as laptops' are after sleep: all is loaded once more. */
async function again(): Promise<void> {
    said.textContent = 'The graphics processor was lost; loading again…';
    engine.free();
    engine = await Engine.create({ backend });
    table = plain = undefined;
    describe();
    await choose();
}

const text = (id: string): string => element<HTMLInputElement>(id).value.trim().toLowerCase();

element('nearest').addEventListener('submit', (event) => {
    event.preventDefault();
    const word = text('word');
    last = (table) => nearest(table, word, PLACES);
    act(answer);
});
element('analogy').addEventListener('submit', (event) => {
    event.preventDefault();
    const [a, b, c] = [text('a'), text('b'), text('c')];
    last = (table) => analogy(table, a, b, c, PLACES);
    act(answer);
});
element('measure').addEventListener('click', () => act(measure));

element('schemes').append(
    ...offers.map(({ scheme, bytes }, index) => {
        const label = document.createElement('label');
        const input = Object.assign(document.createElement('input'), {
            type: 'radio',
            name: 'scheme',
            value: scheme,
            checked: index === 0,
        });
        input.addEventListener('change', () => act(choose));
        const size = Object.assign(document.createElement('span'), { className: 'size', textContent: amount(bytes) });
        label.append(input, scheme, size);
        return label;
    }),
);
describe();
act(choose);

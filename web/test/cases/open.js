// Tables of which lookups read what they need.

import { ArgumentError, FileError, NetworkError } from '/pkg/index.js';
import { assert, equal, failure, refused, sameBits, settled } from './assert.js';

const whole = (scheme) => /csr|coo|multihash|qr/.test(scheme);

export async function rows_of_tables_that_are_opened({ engine, vectors, tables }) {
    const baseline = settled(engine);
    let refusals = 0;
    for (const wanted of tables) {
        const address = `${vectors}/${wanted.name}.safetensors`;
        const ids = Uint32Array.from(wanted.ids);
        if (whole(wanted.scheme)) {
            await refused(ArgumentError, 'bad-argument', () => engine.open(address), wanted.scheme);
            refusals += 1;
            continue;
        }
        const blob = await (await fetch(address)).blob();
        for (const input of [address, new URL(address, location.href), blob]) {
            const table = await engine.open(input, { shardBytes: 2048 });
            equal([table.rows, table.dim, table.scheme], [wanted.rows, wanted.dim, wanted.scheme], 'the table');
            equal(table.residency().residentShards, 0, 'nothing is there');
            sameBits((await table.gather(ids)).values, wanted.bits, `${wanted.scheme}: rows`);
            assert(table.residency().residentShards > 0, 'some are there');
            const shards = table.shardRows();
            equal(shards.length, table.residency().shards, 'shards');
            equal(shards.filter(({ resident }) => resident).length, table.residency().residentShards, 'those that are there');
            assert(shards.every(({ start }, at) => start === (at === 0 ? 0 : shards[at - 1].end)), 'their rows');
            await table.prefetch();
            equal(table.residency().residentBytes, table.residency().bytes, 'all is there');
            table.free();
        }
    }
    equal(settled(engine), baseline, 'the ledger');
    return `${refusals} schemes are loaded whole`;
}

export async function a_lookup_reads_a_hundredth_of_a_table({ engine, vectors }) {
    const table = await engine.open(`${vectors}/large.safetensors`, { shardBytes: 64 << 10, budget: 1 << 20 });
    const wanted = (row, column) => ((row * 256 + column) % 4093) / 64;
    const check = async (row) => {
        const { values } = await table.gather(Uint32Array.of(row));
        assert(values.every((value, column) => Math.abs(value - wanted(row, column)) <= wanted(row, column) / 2048), `row ${row}`);
    };
    await check(70_000);
    const { read, bytes, residentShards } = table.residency();
    assert(read < bytes / 100, `${read} of ${bytes} bytes read`);
    equal(residentShards, 1, 'a shard');
    await check(70_001);
    equal(table.residency().read, read, 'what is there is not read again');
    for (let row = 0; row < 98_304; row += 4001) {
        await check(row);
    }
    const now = table.residency();
    assert(now.residentBytes <= 1 << 20 && now.evictions > 0, JSON.stringify(now));
    await table.prefetch(Uint32Array.of(5));
    assert(table.evict() > 0, 'bytes that shards had');
    equal(table.residency().residentBytes, 0, 'nothing is left');
    await check(5);
    table.free();
    await refused(ArgumentError, 'freed', () => table.prefetch(Uint32Array.of(1)), 'a table that is freed');
    return `${read} of ${bytes} bytes for the first row`;
}

export async function what_the_network_does_to_an_opened_table({ engine, vectors, tables }) {
    const wanted = tables.find((table) => table.scheme === 'int8' && table.dim === 63);
    const address = `${vectors}/${wanted.name}.safetensors`;
    const baseline = settled(engine);
    const absent = await refused(NetworkError, 'network', () => engine.open(`${vectors}/none.safetensors`), 'no file');
    equal(absent.status, 404, 'the status');
    const warnings = [];
    let loaded = 0;
    const all = await engine.open(`${address}?whole=1`, {
        onWarning: (message) => warnings.push(message),
        onProgress: (progress) => (loaded = progress.loaded),
    });
    equal([warnings.length, /sends no ranges/.test(warnings[0])], [1, true], 'a warning');
    equal([all.residency().read, all.residency().residentBytes], [loaded, all.residency().bytes], 'all is loaded');
    equal(all.name, wanted.name, 'its name');
    equal(all.shardRows(), [{ start: 0, end: wanted.rows, resident: true }], 'its shards');
    sameBits((await all.gather(Uint32Array.from(wanted.ids))).values, wanted.bits, 'rows of a table that was loaded whole');
    all.free();
    const tight = { onWarning: () => {}, signal: AbortSignal.timeout(200) };
    await failure(() => engine.open(`${address}?whole=1&stop=100`, tight), 'a signal while all is loaded');
    await refused(ArgumentError, 'bad-argument', () => engine.open(17), 'a number');
    await refused(ArgumentError, 'bad-argument', () => engine.open(address, { budget: -1 }), 'a budget');
    await refused(ArgumentError, 'bad-argument', () => engine.open(address, { budget: 9 }), 'a budget of no shard');
    await refused(FileError, 'not-a-table', () => engine.open(new Blob(['the quick brown fox'])), 'a text');
    await refused(FileError, 'damaged-file', () => engine.open(new Blob([])), 'nothing');
    const reason = new Error('enough');
    const ended = await failure(() => engine.open(address, { signal: AbortSignal.abort(reason) }), 'a signal');
    equal(ended === reason, true, 'its reason');

    // A server that is busy at each second request, from the first row on.
    const busy = `${vectors}/large.safetensors?busy=2&once=${Math.random()}`;
    const table = await engine.open(busy, { shardBytes: 64 << 10 });
    equal((await table.gather(Uint32Array.of(50_000, 90_000))).rows, 2, 'rows, in the end');
    table.free();
    const damaged = await engine.open(`${vectors}/large.safetensors?flip=40000000`, { shardBytes: 64 << 10 });
    await refused(FileError, 'damaged-file', () => damaged.gather(Uint32Array.of(78_000, 78_100, 78_200)), 'a bit');
    await damaged.gather(Uint32Array.of(3));
    damaged.free();
    equal(settled(engine), baseline, 'the ledger');
}

export async function words_of_an_opened_table({ engine, vectors, tables }) {
    const wanted = tables.find((table) => table.scheme === 'int8' && table.dim === 63);
    const address = `${vectors}/${wanted.name}.safetensors`;
    const without = await engine.open(address);
    equal([without.words, without.find('word 7 é')], [undefined, undefined], 'words that were not asked for');
    without.free();
    const table = await engine.open(address, { words: true });
    equal([table.words, table.word(7), table.find('word 130 é')], [131, 'word 7 é', 130], 'words');
    table.free();
}
